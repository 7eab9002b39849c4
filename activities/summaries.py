"""The summary for a compaction, written by the agent's model."""

from __future__ import annotations

from temporalio import activity

from perdure import names
from perdure.activities.agents import AgentRegistry, model_of
from perdure.activities.asking import ask
from perdure.activities.failures import as_failure
from perdure.activities.heartbeats import Heart
from perdure.activities.toolboxes import Toolboxes
from perdure.compaction import DEFAULT_PROMPT, as_text, find_cut, part_prompt
from perdure.errors import ContextOverflowError, ModelError, PerdureError
from perdure.messages import Message
from perdure.models.protocol import LanguageModel, ModelRequest
from perdure.protocol import Summarize, Summary
from perdure.transcript_cache import Transcripts
from perdure.usage import Usage

SMALLEST_PART = 1_000
"""Characters; a model that cannot take so many cannot summarize anything."""


class SummaryActivities:
    """Summarizes a path. Nothing is stored here."""

    def __init__(
        self, agents: AgentRegistry, toolboxes: Toolboxes, transcripts: Transcripts, heart: Heart
    ) -> None:
        self._agents = agents
        self._toolboxes = toolboxes
        self._transcripts = transcripts
        self._heart = heart

    @activity.defn(name=names.SUMMARIZE)
    async def summarize(self, request: Summarize) -> Summary:
        """A summary of what lies before the last turns, or an empty one when nothing does.

        A conversation that is too long for the model is summarized part by part.
        """
        try:
            async with self._heart.beating():
                return await self._summarize(request)
        except PerdureError as error:
            raise as_failure(error) from None

    async def _summarize(self, request: Summarize) -> Summary:
        agent = self._agents.find(request.agent)
        model = agent.compaction_model() or model_of(agent)
        transcript = await self._transcripts.for_model(request.session_id, request.leaf_id)
        cut = find_cut(transcript.path(request.leaf_id), request.keep_turns)
        if cut is None:
            return Summary()
        prompt = request.prompt or DEFAULT_PROMPT
        try:
            answer = await _summary(
                model,
                # The same instructions and tools as in the conversation, so that its prefix stays
                # what the provider has cached.
                ModelRequest(
                    messages=[*cut.messages, Message(role="user", content=prompt)],
                    instructions=agent.instructions,
                    tools=self._toolboxes.latest(agent).specs,
                    cache_key=request.session_id,
                ),
            )
        except ContextOverflowError:
            answer = await _in_parts(model, as_text(cut.messages), prompt)
        return Summary(
            text=answer.text,
            first_kept_id=cut.first_kept_id,
            tokens_before=cut.tokens_before,
            usage=answer.usage,
        )


async def _in_parts(model: LanguageModel, conversation: str, prompt: str) -> Message:
    """A summary of a conversation that is too long to be sent: of its first part, then of that
    summary and the next part, to the end. How large a part may be is found by halving it.

    The parts are plain text, so they can be cut anywhere, in the middle of a message that is too
    long by itself, too.
    """
    summary = Message(role="assistant", content="")
    usage = Usage()
    size = max(len(conversation) // 2, 1)
    place = 0
    while place < len(conversation):
        part = conversation[place : place + size]
        content = part_prompt(summary.text, part, prompt)
        request = ModelRequest(messages=[Message(role="user", content=content)])
        try:
            summary = await _summary(model, request)
        except ContextOverflowError:
            size //= 2
            if size < SMALLEST_PART:
                raise
            continue
        usage = usage + (summary.usage or Usage())
        place += size
    return summary.model_copy(update={"usage": usage})


async def _summary(model: LanguageModel, request: ModelRequest) -> Message:
    answer = await ask(model, request)
    if not answer.text.strip():
        raise ModelError(f"{model.name} wrote no summary; nothing was compacted")
    return answer
