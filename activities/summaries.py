"""The summary for a compaction, written by the agent's model."""

from __future__ import annotations

from temporalio import activity

from perdure import names
from perdure.activities.agents import AgentRegistry, model_of
from perdure.activities.asking import ask
from perdure.activities.failures import as_failure
from perdure.activities.heartbeats import Heart
from perdure.activities.toolboxes import Toolboxes
from perdure.compaction import DEFAULT_PROMPT, find_cut
from perdure.errors import ModelError, PerdureError
from perdure.messages import Message
from perdure.models.protocol import ModelRequest
from perdure.protocol import Summarize, Summary
from perdure.transcript_cache import Transcripts


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
        """A summary of what lies before the last turns, or an empty one when nothing does."""
        try:
            async with self._heart.beating():
                return await self._summarize(request)
        except PerdureError as error:
            raise as_failure(error) from None

    async def _summarize(self, request: Summarize) -> Summary:
        agent = self._agents.find(request.agent)
        model = agent.compaction_model() or model_of(agent)
        transcript = await self._transcripts.holding(request.session_id, request.leaf_id)
        cut = find_cut(transcript.path(request.leaf_id), request.keep_turns)
        if cut is None:
            return Summary()
        prompt = Message(role="user", content=request.prompt or DEFAULT_PROMPT)
        # The same instructions and tools as in the conversation, so that its prefix stays what the
        # provider has cached.
        answer = await ask(
            model,
            ModelRequest(
                messages=[*cut.messages, prompt],
                instructions=agent.instructions,
                tools=self._toolboxes.latest(agent).specs,
            ),
        )
        if not answer.text.strip():
            raise ModelError(f"{model.name} wrote no summary; nothing was compacted")
        return Summary(
            text=answer.text,
            first_kept_id=cut.first_kept_id,
            tokens_before=cut.tokens_before,
            usage=answer.usage,
        )
