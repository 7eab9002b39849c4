"""The model call: load the path, project it, ask, store the answer."""

from __future__ import annotations

import asyncio
import time
from datetime import timedelta

from temporalio import activity
from temporalio.exceptions import ApplicationError

from perdure import names
from perdure.activities.agents import AgentRegistry, model_of
from perdure.activities.appending import Appends, entries_after, is_message_after, message_after
from perdure.activities.asking import ask
from perdure.activities.failures import as_failure
from perdure.activities.heard import Heard
from perdure.activities.heartbeats import Beat, Heart
from perdure.activities.outputs import faults_of
from perdure.activities.sub_agents import child_id
from perdure.activities.toolboxes import Toolbox, Toolboxes
from perdure.agent import Agent
from perdure.codec import encode_entry, entry_from_json
from perdure.entries import Entry, MessageEntry
from perdure.errors import ModelError, PerdureError
from perdure.large_payloads import result_limit
from perdure.messages import Message, ToolCallBlock
from perdure.models.protocol import ModelRequest
from perdure.protocol import (
    CallModel,
    EntryJson,
    ModelReply,
    PlannedCall,
    StoredAs,
)
from perdure.sub_agents import SubAgent
from perdure.timestamps import Timestamp
from perdure.transcript_cache import Transcripts


class ModelActivities:
    """Calls an agent's model with the conversation up to a leaf, which it reads from the store."""

    def __init__(
        self,
        agents: AgentRegistry,
        toolboxes: Toolboxes,
        transcripts: Transcripts,
        appends: Appends,
        heart: Heart,
    ) -> None:
        self._agents = agents
        self._toolboxes = toolboxes
        self._transcripts = transcripts
        self._appends = appends
        self._heart = heart

    @activity.defn(name=names.CALL_MODEL)
    async def call_model(self, request: CallModel) -> ModelReply:
        """The model's next message, which is stored when this returns, unless the store does not
        answer. A call that is made again because its worker died looks first whether the log has
        its answer. A call that is cancelled hands over the text that it has.
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
            async with self._heart.beating() as beat, heard.live:
                return await self._ask(agent, request, heard, beat)
        except asyncio.CancelledError:
            details = activity.cancellation_details()
            partial = heard.as_message()
            if partial is None or details is None or not details.cancel_requested:
                raise
            return ModelReply(message=partial)

    async def _ask(self, agent: Agent, request: CallModel, heard: Heard, beat: Beat) -> ModelReply:
        began = time.monotonic()
        toolbox = await self._toolboxes.of_run(agent, request.tools)
        stored = await self._stored_before(request) if activity.info().attempt > 1 else None
        if stored is not None:
            return await _reply(request, toolbox, stored.message, _stored_as(stored))
        message = await self._answer(agent, request, toolbox, heard)
        entry = _entry(request, message, time.monotonic() - began)
        _check_size(model_of(agent).name, encode_entry(entry))
        if beat.is_given_up:
            # Another attempt has gone on; the log must not end with what this one has to say.
            raise ApplicationError("nothing was heard of this worker for too long", type=_SILENT)
        adding = asyncio.create_task(self._add(request.session_id, entry))
        try:
            stored_as = await asyncio.shield(adding)
        except asyncio.CancelledError:
            # The answer is whole. Whoever cancels finds it in the log and not beside it.
            stored_as = await adding
        return await _reply(request, toolbox, message, stored_as)

    async def _stored_before(self, request: CallModel) -> MessageEntry | None:
        """What an earlier attempt, whose worker was not heard of again, had stored."""
        transcript = await self._transcripts.latest(request.session_id)
        for entry in entries_after(transcript.entries, request.leaf_id):
            if isinstance(entry, MessageEntry) and is_message_after(
                request.leaf_id, entry, session_id=request.session_id, author=request.run_id
            ):
                return entry
        return None

    async def _answer(
        self, agent: Agent, request: CallModel, toolbox: Toolbox, heard: Heard
    ) -> Message:
        ephemeral = [_ephemeral(entry) for entry in request.ephemeral]
        transcript = await self._transcripts.for_model(
            request.session_id, request.leaf_id, [entry.parent_id for entry in ephemeral]
        )
        messages = transcript.model_view(request.leaf_id, ephemeral=ephemeral)
        model = model_of(agent)
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
        return message

    async def _add(self, session_id: str, entry: Entry) -> StoredAs | None:
        """How the store has the entry. If it did not take it, the workflow goes on trying; the
        answer is not lost, nor is the model asked again.
        """
        try:
            async with asyncio.timeout(_PATIENCE):
                earlier = await self._appends.add(session_id, [entry])
        except PerdureError as error:
            activity.logger.warning(f"an answer waits for the store: {error}")
            return None
        except Exception:  # noqa: BLE001 - a store of the application may raise anything
            activity.logger.exception("an answer waits for the store, which raised")
            return None
        return StoredAs(id=entry.id, created_at=earlier.get(entry.id, str(entry.created_at)))


_SILENT = "WorkerSilent"
_PATIENCE = 20.0
"""Seconds that the store has to take an answer before the workflow sees to it."""


async def _reply(
    request: CallModel, toolbox: Toolbox, message: Message, stored: StoredAs | None
) -> ModelReply:
    calls = [
        await _planned(toolbox, request, call, place)
        for place, call in enumerate(message.tool_calls)
    ]
    output = request.output if not calls else None
    return ModelReply(
        message=message.to_wire(),
        stored=stored,
        calls=calls,
        faults=faults_of(output, message.text) if output is not None else "",
    )


def _entry(request: CallModel, message: Message, seconds: float) -> Entry:
    # By the clock of the server, as the workflow has it for the entries before and after.
    now = activity.info().started_time + timedelta(seconds=seconds)
    return message_after(
        request.leaf_id,
        message.to_wire(),
        session_id=request.session_id,
        author=request.run_id,
        created_at=str(Timestamp.of(now)),
    )


def _check_size(model: str, line: bytes) -> None:
    limit = result_limit(activity.client())
    if len(line) > limit:
        raise ModelError(
            f"{model} answered with {len(line):,} bytes; the engine carries no more than "
            f"{limit:,} in one message"
        )


def _stored_as(entry: Entry) -> StoredAs:
    return StoredAs(id=entry.id, created_at=str(entry.created_at))


async def _planned(
    toolbox: Toolbox, request: CallModel, call: ToolCallBlock, place: int
) -> PlannedCall:
    tool = toolbox.find(call.name)
    is_sub_agent = isinstance(tool, SubAgent)
    return PlannedCall(
        id=call.id,
        name=call.name,
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
