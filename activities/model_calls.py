"""The model call: load the path, project it, ask."""

from __future__ import annotations

import asyncio

from temporalio import activity

from perdure import names
from perdure.activities.agents import AgentRegistry, model_of
from perdure.activities.asking import ask
from perdure.activities.failures import as_failure
from perdure.activities.heard import Heard
from perdure.activities.heartbeats import Heart
from perdure.activities.outputs import faults_of
from perdure.activities.sub_agents import child_id
from perdure.activities.toolboxes import Toolbox, Toolboxes
from perdure.agent import Agent
from perdure.codec import dumps_json, entry_from_json
from perdure.entries import MessageEntry
from perdure.errors import ModelError, PerdureError
from perdure.large_payloads import result_limit
from perdure.messages import ToolCallBlock
from perdure.models.protocol import ModelRequest
from perdure.protocol import (
    CallModel,
    EntryJson,
    ModelReply,
    PlannedCall,
)
from perdure.sub_agents import SubAgent
from perdure.transcript_cache import Transcripts


class ModelActivities:
    """Calls an agent's model with the conversation up to a leaf, which it reads from the store."""

    def __init__(
        self, agents: AgentRegistry, toolboxes: Toolboxes, transcripts: Transcripts, heart: Heart
    ) -> None:
        self._agents = agents
        self._toolboxes = toolboxes
        self._transcripts = transcripts
        self._heart = heart

    @activity.defn(name=names.CALL_MODEL)
    async def call_model(self, request: CallModel) -> ModelReply:
        """The model's next message. Nothing is stored here, so a call that is made again leaves
        no trace of the first. A call that is cancelled hands over the text that it has.
        """
        try:
            agent = self._agents.find(request.agent)
            heard = Heard(request.place, agent.stream_interval)
            reply = await self._call(agent, request, heard)
        except PerdureError as error:
            raise as_failure(error) from None
        reply.events = heard.live.take_rest()
        reply.batches = heard.live.batches
        return reply

    async def _call(self, agent: Agent, request: CallModel, heard: Heard) -> ModelReply:
        try:
            async with self._heart.beating(), heard.live:
                return await self._ask(agent, request, heard)
        except asyncio.CancelledError:
            details = activity.cancellation_details()
            partial = heard.as_message()
            if partial is None or details is None or not details.cancel_requested:
                raise
            return ModelReply(message=partial)

    async def _ask(self, agent: Agent, request: CallModel, heard: Heard) -> ModelReply:
        transcript = await self._transcripts.holding(request.session_id, request.leaf_id)
        messages = transcript.model_view(
            request.leaf_id, ephemeral=[_ephemeral(entry) for entry in request.ephemeral]
        )
        model = model_of(agent)
        toolbox = await self._toolboxes.of_run(agent, request.tools)
        message = await ask(
            model,
            ModelRequest(
                messages=messages,
                instructions=agent.instructions,
                tools=toolbox.specs,
                cache_key=request.session_id,
                output_schema=request.output.json_schema if request.output is not None else None,
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
        calls = [
            await _planned(toolbox, request, call, place)
            for place, call in enumerate(message.tool_calls)
        ]
        output = request.output if not calls else None
        return ModelReply(
            message=message.to_wire(),
            calls=calls,
            faults=faults_of(output, message.text) if output is not None else "",
        )


async def _planned(
    toolbox: Toolbox, request: CallModel, call: ToolCallBlock, place: int
) -> PlannedCall:
    tool = toolbox.find(call.name)
    is_sub_agent = isinstance(tool, SubAgent)
    return PlannedCall(
        id=call.id,
        name=call.name,
        arguments=call.arguments,
        idempotent=tool is not None and tool.idempotent,
        timeout=tool.timeout if tool is not None else None,
        needs_approval=tool is not None and await tool.wants_approval(call.arguments),
        parallel=tool is None or tool.parallel,
        sub_agent=tool.agent_name if isinstance(tool, SubAgent) else "",
        child_id=child_id(request, call.name, call.id, place) if is_sub_agent else "",
    )


def _ephemeral(entry: EntryJson) -> MessageEntry:
    decoded = entry_from_json(entry)
    if not isinstance(decoded, MessageEntry):
        raise ModelError("only messages can be ephemeral; append other entries instead")
    return decoded
