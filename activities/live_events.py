"""What an activity tells whoever watches the run, while it is at work."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import logging
from collections.abc import Callable
from datetime import timedelta
from types import TracebackType
from typing import Any, Final, Self

from temporalio import activity
from temporalio.client import WorkflowHandle
from temporalio.contrib.workflow_streams import PublishEntry, PublishInput
from temporalio.service import RPCError

from perdure.names import STREAM_PUBLISH, run_topic
from perdure.protocol import EventRecord, RunPlace

logger = logging.getLogger("perdure.activities")

AT_THE_INTERVAL: Final = 100
"""Batches of one activity that are sent at its interval. After these each pause is a hundredth
longer than the one before, so that an hour, the longest that a model call may take, is some 620
batches of 0.2 seconds at first: the engine takes 10,000 signals in one run of a workflow, and,
which is nearer, 2,000 polls of those who watch."""

_SLOWER: Final = 1.01
_BATCH_BYTES: Final = 300_000
"""What a batch may hold, in bytes of JSON; with its last event it may be a little more."""

_RESULT_BYTES: Final = 50_000

_PATIENCE: Final = timedelta(seconds=5)


class LiveEvents:
    """Publishes events that pass to the stream of the session whose activity this is, in batches.

    A batch is a signal, and with its workflow task four events of history; `batches` counts them.
    `interval` is the time between two, in seconds, which grows as they become many. Without a place
    in a run nobody asked, and nothing is sent. What cannot be delivered is dropped: the activity is
    about something else.

    What waits when the activity is done goes out with a last batch; or, with `ends_in_result`, the
    activity takes it (`take_rest`) into its result, which costs nothing, unless it is large.
    `collect` is called before a batch is sent, for whoever would rather tell then what has come
    together; `pause` says how long to wait for the next one, for whoever knows better.
    """

    def __init__(
        self,
        place: RunPlace | None,
        interval: float,
        *,
        ends_in_result: bool = False,
        collect: Callable[[], None] = lambda: None,
        pause: Callable[[], float] | None = None,
    ) -> None:
        self.batches = 0
        self._ends_in_result = ends_in_result
        self._collect = collect
        self._pause = pause or (lambda: pause_after(self.batches, interval))
        self._place = place
        self._waiting: list[EventRecord] = []
        self._is_over = asyncio.Event()
        self._sending: asyncio.Task[None] | None = None

    @property
    def is_on(self) -> bool:
        """Whether anyone asked."""
        return self._place is not None

    async def __aenter__(self) -> Self:
        if self.is_on:
            self._sending = asyncio.create_task(self._send_regularly())
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._sending is not None:
            self._is_over.set()
            await self._sending  # a batch that is on its way arrives before the result does
            self._collect()
            if error is None and not (self._ends_in_result and self._is_little()):
                await self._send()

    def tell(self, type_: str, **fields: Any) -> None:
        """Publish an event that passes, with the next batch."""
        place = self._place
        if place is None:
            return
        self._waiting.append(
            EventRecord(
                type=type_,
                run_id=place.run_id,
                index=place.next_index,
                is_passing=True,
                call=place.call,
                attempt=activity.info().attempt,
                start_id=place.start_id,
                input_count=place.input_count,
                turn=place.turn,
                **fields,
            )
        )

    def tell_latest(self, type_: str, **fields: Any) -> None:
        """The same, in place of one of its type that still waits at the end."""
        if self._waiting and self._waiting[-1].type == type_:
            self._waiting.pop()
        self.tell(type_, **fields)

    def take_rest(self) -> list[EventRecord]:
        """The events that were not sent, for the activity's result."""
        events = self._waiting if self._is_little() else []
        self._waiting = []
        return events

    def _is_little(self) -> bool:
        return sum(map(_size, self._waiting)) <= _RESULT_BYTES

    async def _send_regularly(self) -> None:
        while not self._is_over.is_set():
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._is_over.wait(), self._pause())
                return
            await self._send()

    async def _send(self) -> None:
        self._collect()
        while self._waiting:
            events: list[EventRecord] = []
            size = 0
            while self._waiting and size < _BATCH_BYTES:
                events.append(self._waiting.pop(0))
                size += _size(events[-1])
            self.batches += 1
            batch = PublishInput(items=[_entry(event) for event in events])
            try:
                await _session().signal(STREAM_PUBLISH, batch, rpc_timeout=_PATIENCE)
            except RPCError as error:
                logger.warning("events of a run were not delivered: %s", error.message)


def pause_after(batches: int, interval: float) -> float:
    """The time until the next batch, in seconds."""
    return interval * _SLOWER ** max(batches - AT_THE_INTERVAL, 0)


def _session() -> WorkflowHandle[Any, Any]:
    workflow_id = activity.info().workflow_id
    assert workflow_id is not None
    return activity.client().get_workflow_handle(workflow_id)


def _entry(event: EventRecord) -> PublishEntry:
    data = base64.b64encode(event.to_payload().SerializeToString()).decode()
    return PublishEntry(topic=run_topic(event.run_id), data=data)


def _size(event: EventRecord) -> int:
    return len(event.to_json())
