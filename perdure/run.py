"""A run, as its caller holds it: iterate its events, or await its messages."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from temporalio.client import WorkflowUpdateFailedError, WorkflowUpdateHandle
from temporalio.contrib.workflow_streams import WorkflowStreamClient
from temporalio.service import RPCError

from perdure.codec import entry_from_json
from perdure.entries import Entry, MessageEntry
from perdure.errors import PerdureError, restored
from perdure.following import place_after
from perdure.messages import Message
from perdure.models.protocol import Delta
from perdure.names import run_topic
from perdure.protocol import EventRecord, Outcome, PendingApproval
from perdure.remote import RemoteSession
from perdure.run_events import (
    AGENT_END,
    LAST_EVENTS,
    MESSAGE_UPDATE,
    PROGRESS,
    RESTARTED,
    RUN_FAILED,
    rebuild_events,
)
from perdure.transcript_cache import Transcripts
from perdure.usage import Usage

_POLL_PAUSE = timedelta(milliseconds=100)
_LAST_PIECES = 1.0
"""Seconds that a watcher of a streamed run waits for what its stream still holds at its end."""


@dataclass(frozen=True, slots=True)
class RunEvent:
    """Something that happened in a run. What it reports is in the store: its entries are the
    receipt.

    One that `is_passing` tells what is under way: nothing is stored of it, and only who watches at
    the time gets it. `message_update` is such: `delta` is a piece of the message in progress; with
    `is_reset` the model begins the message anew, and the pieces up to here are void. `leaf_id` is
    the leaf after the event. `message` is the message that ended (on `message_end`), `messages` are
    all new messages of the run (on `agent_end`). `approval` is what a person is asked (on
    `approval_requested`), `approved` whether they agreed (on `approval_answered`); `progress` and
    `fraction` are a tool's own words (on `tool_execution_update`).
    """

    type: str
    run_id: str
    turn: int = 0
    entries: list[Entry] = field(default_factory=list)
    leaf_id: str = ""
    tool_call_id: str = ""
    tool_name: str = ""
    arguments: dict[str, Any] | None = None
    is_error: bool = False
    usage: Usage | None = None
    messages: list[Message] = field(default_factory=list)
    is_passing: bool = False
    delta: Delta | None = None
    is_reset: bool = False
    approval: PendingApproval | None = None
    approved: bool | None = None
    progress: str = ""
    fraction: float | None = None

    @property
    def message(self) -> Message | None:
        """The message that this event is the receipt for."""
        for entry in self.entries:
            if isinstance(entry, MessageEntry):
                return entry.message
        return None


class Run:
    """A run that the session has accepted. It goes on whether or not anyone watches.

    `await run` gives the new messages; `async for event in run` gives the events, from the first,
    whenever it starts. Both raise the error with which the run failed. Neither can miss anything:
    what the stream no longer holds is read from the store.
    """

    def __init__(
        self,
        session_id: str,
        run_id: str,
        remote: RemoteSession,
        transcripts: Transcripts,
        *,
        is_streamed: bool = False,
        accepted: WorkflowUpdateHandle[Outcome] | None = None,
        when_ended: Callable[[Outcome], None] | None = None,
    ) -> None:
        self.session_id = session_id
        self.id = run_id
        self._remote = remote
        self._transcripts = transcripts
        self._is_streamed = is_streamed
        self._accepted = accepted
        self._when_ended = when_ended
        self._ended: Outcome | None = None

    def __await__(self) -> Generator[Any, None, list[Message]]:
        return self.messages().__await__()

    async def messages(self) -> list[Message]:
        """The new messages, once the run is over."""
        outcome = await self.outcome()
        _, added = await self._entries(outcome)
        if outcome.error is not None:
            raise _failure(outcome)
        return _messages(added)

    async def outcome(self) -> Outcome:
        """What became of the run, failed or not, once it is over."""
        if self._ended is None:
            self._ended = await self._remote.outcome(self.id, self._accepted)
            if self._when_ended is not None:
                self._when_ended(self._ended)
        return self._ended

    async def __aiter__(self) -> AsyncIterator[RunEvent]:
        position = restarts = 0
        draft = Draft()
        ending = asyncio.create_task(self.outcome())
        live = self._live()
        try:
            async for record in self._until(ending, live):
                if record.type == PROGRESS:
                    if record.restarts < restarts:
                        continue  # of an attempt that was given up
                    if record.restarts > restarts and position > 1:
                        yield _restarted(record.run_id)
                        position = 1
                    restarts = record.restarts
                # One that passes may come from a tool that began when less had happened.
                is_late = not record.is_passing or record.type == MESSAGE_UPDATE
                if (record.index < position and is_late) or not draft.goes_on_with(record):
                    continue
                if draft.is_void:
                    yield _reset(record)
                async for event in self._from(position, record):
                    position += not event.is_passing
                    yield event
            outcome = await ending
            if outcome.restarts > restarts and position > 1:
                yield _restarted(self.id)
                position = 1
            for record in await self._rebuilt(outcome) if _has_started(outcome) else ():
                if record.index >= position:
                    yield await self._event(record)
            if outcome.error is not None:
                raise _failure(outcome)
        finally:
            ending.cancel()
            with contextlib.suppress(asyncio.CancelledError, PerdureError):
                await ending
            await live.aclose()

    async def _live(self) -> AsyncGenerator[EventRecord]:
        stream = WorkflowStreamClient.create(self._remote.client, self._remote.workflow_id)
        topic = stream.topic(run_topic(self.id), type=EventRecord)
        async for item in topic.subscribe(poll_cooldown=_POLL_PAUSE):
            yield item.data

    async def _until(
        self, ending: asyncio.Task[Outcome], live: AsyncIterator[EventRecord]
    ) -> AsyncIterator[EventRecord]:
        """Live events until the run is over or the stream breaks; what counts among those that it
        did not deliver is in the store. The pieces of an answer are not, so where there are any the
        stream is read to its end, if that comes soon.
        """
        while True:
            following = asyncio.ensure_future(anext(live))
            try:
                await asyncio.wait((following, ending), return_when=asyncio.FIRST_COMPLETED)
                if not following.done() and self._is_streamed:
                    await asyncio.wait((following,), timeout=_LAST_PIECES)
                if not following.done():
                    return
                record = following.result()
                self._is_streamed |= record.is_passing
                if record.type in LAST_EVENTS:
                    return
                yield record
            except (StopAsyncIteration, RPCError, WorkflowUpdateFailedError):
                return
            finally:
                if not following.done():
                    following.cancel()
                    with contextlib.suppress(asyncio.CancelledError):
                        await following

    async def _from(self, position: int, record: EventRecord) -> AsyncIterator[RunEvent]:
        """The event, and before it those that the stream dropped."""
        if record.index > position:
            for missed in await self._rebuilt(_so_far(record)):
                if position <= missed.index < record.index:
                    yield await self._event(missed)
        if record.type != PROGRESS:
            yield await self._event(record)

    async def _event(self, record: EventRecord) -> RunEvent:
        messages: list[Message] = []
        if record.type == AGENT_END:
            outcome = await self.outcome()
            messages = _messages((await self._entries(outcome))[1])
        return RunEvent(
            type=record.type,
            run_id=record.run_id,
            turn=record.turn,
            entries=[entry_from_json(entry) for entry in record.entries],
            leaf_id=record.leaf_id,
            tool_call_id=record.tool_call_id,
            tool_name=record.tool_name,
            arguments=record.arguments,
            is_error=bool(record.is_error),
            usage=record.usage,
            messages=messages,
            is_passing=record.is_passing,
            delta=_delta(record),
            approval=record.approval,
            approved=record.approved,
            progress=record.progress,
            fraction=record.fraction,
        )

    async def _rebuilt(self, outcome: Outcome) -> list[EventRecord]:
        given, added = await self._entries(outcome)
        records = rebuild_events(
            outcome, [_as_json(entry) for entry in given], [_as_json(entry) for entry in added]
        )
        return [record for record in records if record.type != RUN_FAILED]

    async def _entries(self, outcome: Outcome) -> tuple[list[Entry], list[Entry]]:
        """What the run was given and what it added, as the store has it.

        An event that does not tell the leaf comes from a run that was not over: the log's end is.
        """
        path = await self._transcripts.path(
            self.session_id,
            outcome.leaf_id or await self._transcripts.last_id(self.session_id),
            lambda end: place_after(end, outcome.start_id) > 0,
        )
        entries = path[place_after(path, outcome.start_id) :]
        return entries[: outcome.input_count], entries[outcome.input_count :]


class Draft:
    """The message in progress, as a watcher has it: of several attempts to write it only the latest
    counts. Pieces of an earlier one may arrive late, from a worker that was taken for dead.
    """

    def __init__(self) -> None:
        self._index = -1
        self._begun = (0, 0)
        self.is_void = False
        """Whether what the watcher has was just begun anew."""

    def goes_on_with(self, record: EventRecord) -> bool:
        """Whether the event is for the watcher; only late pieces are not."""
        self.is_void = False
        if record.type != MESSAGE_UPDATE:
            return True
        begun = (record.call, record.attempt)
        if record.index == self._index:
            if begun < self._begun:
                return False
            self.is_void = begun > self._begun
        self._index, self._begun = record.index, begun
        return True


def _restarted(run_id: str) -> RunEvent:
    return RunEvent(type=RESTARTED, run_id=run_id, is_passing=True)


def _reset(record: EventRecord) -> RunEvent:
    return RunEvent(
        type=MESSAGE_UPDATE,
        run_id=record.run_id,
        turn=record.turn,
        is_passing=True,
        is_reset=True,
    )


def _delta(record: EventRecord) -> Delta | None:
    piece = record.delta
    if piece is None:
        return None
    return Delta(piece.kind, piece.text, piece.index, record.tool_call_id, record.tool_name)


def _has_started(outcome: Outcome) -> bool:
    """Whether the run got as far as to store its input; one that did not has no events."""
    return outcome.error is None or bool(outcome.leaf_id or outcome.turns)


def _so_far(record: EventRecord) -> Outcome:
    return Outcome(
        command_id=record.run_id,
        verb="run",
        status="pending",
        start_id=record.start_id,
        input_count=record.input_count,
        leaf_id=record.leaf_id,
        turns=record.turn,
    )


def _messages(entries: list[Entry]) -> list[Message]:
    return [entry.message for entry in entries if isinstance(entry, MessageEntry)]


def _as_json(entry: Entry) -> dict[str, Any]:
    return entry.model_dump(mode="json", by_alias=True)


def _failure(outcome: Outcome) -> PerdureError:
    assert outcome.error is not None
    return restored(outcome.error.type, outcome.error.message)
