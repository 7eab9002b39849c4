"""The model call: load the path, project it, ask."""

from __future__ import annotations

import asyncio

from temporalio import activity

from perdure import names
from perdure.activities.agents import AgentRegistry, model_of
from perdure.activities.asking import ask
from perdure.activities.failures import as_failure
from perdure.activities.heartbeats import Heart
from perdure.agent import Agent
from perdure.codec import dumps_json, entry_from_json
from perdure.entries import MessageEntry
from perdure.errors import ModelError, PerdureError
from perdure.large_payloads import result_limit
from perdure.messages import Message, Role, StopReason, ToolCallBlock
from perdure.models.protocol import Delta, ModelRequest
from perdure.protocol import (
    CallModel,
    EntryJson,
    MessageJson,
    ModelReply,
    PlannedCall,
)
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
        no trace of the first. A call that is cancelled hands over the text that it has.
        """
        heard = PartialText()
        try:
            async with self._heart.beating():
                return await self._call(request, heard)
        except PerdureError as error:
            raise as_failure(error) from None
        except asyncio.CancelledError:
            details = activity.cancellation_details()
            if not heard.text or details is None or not details.cancel_requested:
                raise
            return ModelReply(message=heard.as_message())

    async def _call(self, request: CallModel, heard: PartialText) -> ModelReply:
        agent = self._agents.find(request.agent)
        transcript = await self._transcripts.holding(request.session_id, request.leaf_id)
        messages = transcript.model_view(
            request.leaf_id, ephemeral=[_ephemeral(entry) for entry in request.ephemeral]
        )
        model = model_of(agent)
        message = await ask(
            model,
            ModelRequest(
                messages=messages,
                instructions=agent.instructions,
                tools=agent.tool_specs,
                cache_key=request.session_id,
            ),
            heard.add if request.stream else None,
        )
        if not message.content:
            raise ModelError(f"{model.name} returned an empty message; run again to ask once more")
        size = len(dumps_json(message.to_wire()))
        limit = result_limit(activity.client())
        if size > limit:
            raise ModelError(
                f"{model.name} answered with {size:,} bytes; the engine carries no more than "
                f"{limit:,} in one message"
            )
        return ModelReply(
            message=message.to_wire(),
            calls=[_planned(agent, call) for call in message.tool_calls],
        )


class PartialText:
    """What a model has said so far, while it speaks."""

    def __init__(self) -> None:
        self.text = ""

    def add(self, delta: Delta) -> None:
        """Hear a piece; only text is kept, a half tool call is of no use."""
        if delta.kind == "text":
            self.text += delta.text

    def as_message(self) -> MessageJson:
        """The text as a message that was aborted."""
        message = Message(role=Role.ASSISTANT, content=self.text, stop_reason=StopReason.ABORTED)
        return message.model_dump(mode="json", by_alias=True)


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
