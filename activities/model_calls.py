"""The model call: load the path, project it, ask."""

from __future__ import annotations

from temporalio import activity

from perdure import names
from perdure.activities.agents import AgentRegistry, model_of
from perdure.activities.failures import as_failure
from perdure.activities.heartbeats import Heart
from perdure.agent import Agent
from perdure.codec import entry_from_json
from perdure.entries import MessageEntry
from perdure.errors import ModelError, PerdureError
from perdure.messages import Message, ToolCallBlock
from perdure.models.protocol import LanguageModel, ModelRequest
from perdure.protocol import CallModel, EntryJson, ModelReply, PlannedCall
from perdure.transcript_cache import Transcripts


class ModelActivities:
    """Calls an agent's model with the conversation up to a leaf, which it reads from the store."""

    def __init__(self, agents: AgentRegistry, transcripts: Transcripts, heart: Heart) -> None:
        self._agents = agents
        self._transcripts = transcripts
        self._heart = heart

    @activity.defn(name=names.CALL_MODEL)
    async def call_model(self, request: CallModel) -> ModelReply:
        """The model's next message. Nothing is stored here, so a call that is made again leaves
        no trace of the first.
        """
        try:
            async with self._heart.beating():
                return await self._call(request)
        except PerdureError as error:
            raise as_failure(error) from None

    async def _call(self, request: CallModel) -> ModelReply:
        agent = self._agents.find(request.agent)
        transcript = await self._transcripts.holding(request.session_id, request.leaf_id)
        messages = transcript.model_view(
            request.leaf_id, ephemeral=[_ephemeral(entry) for entry in request.ephemeral]
        )
        model = model_of(agent)
        message = await _ask(model, agent, messages)
        if not message.content:
            raise ModelError(f"{model.name} returned an empty message; run again to ask once more")
        return ModelReply(
            message=message.model_dump(mode="json", by_alias=True),
            calls=[_planned(agent, call) for call in message.tool_calls],
        )


async def _ask(model: LanguageModel, agent: Agent, messages: list[Message]) -> Message:
    request = ModelRequest(
        messages=messages, instructions=agent.instructions, tools=agent.tool_specs
    )
    try:
        return await model.respond(request)
    except PerdureError:
        raise
    except Exception as error:
        # A model of the application's own may raise anything. Which kind it was is said, its text
        # is not: it may hold what must not reach workflow history.
        activity.logger.exception("the model %s raised", model.name)
        raise ModelError(
            f"{model.name} raised {type(error).__name__}; see the worker's log"
        ) from error


def _planned(agent: Agent, call: ToolCallBlock) -> PlannedCall:
    tool = agent.tool(call.name)
    return PlannedCall(
        id=call.id,
        name=call.name,
        arguments=call.arguments,
        idempotent=tool is not None and tool.idempotent,
        timeout=tool.timeout if tool is not None else None,
    )


def _ephemeral(entry: EntryJson) -> MessageEntry:
    decoded = entry_from_json(entry)
    if not isinstance(decoded, MessageEntry):
        raise ModelError("only messages can be ephemeral; append other entries instead")
    return decoded
