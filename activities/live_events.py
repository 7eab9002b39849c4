"""What an activity tells whoever watches the run, while it is at work."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import logging
from types import TracebackType
from typing import Any, Self

from temporalio import activity
from temporalio.client import WorkflowHandle
from temporalio.contrib.workflow_streams import PublishEntry, PublishInput
from temporalio.service import RPCError

from perdure.names import STREAM_PUBLISH, run_topic
from perdure.protocol import EventRecord, RunPlace

logger = logging.getLogger("perdure.activities")


class LiveEvents:
    """Publishes events that pass to the stream of the session whose activity this is, in batches.

    A batch is a signal, and with its workflow task four events of history; `batches` counts them.
    `interval` is the time between two, in seconds. Without a place in a run nobody asked, and
    nothing is sent. What cannot be delivered is dropped: the activity is about something else.
    """

    def __init__(self, place: RunPlace | None, interval: float) -> None:
        self.batches = 0
        self._place = place
        self._interval = interval
        self._waiting: list[EventRecord] = []
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
            self._sending.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._sending
            if error is None:
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
                start_id=place.start_id,
                input_count=place.input_count,
                turn=place.turn,
                **fields,
            )
        )

    def pause(self) -> float:
        """Seconds until the next batch."""
        return self._interval

    def collect(self) -> None:
        """Called before each batch, for whoever keeps what there is to tell until then."""

    async def _send_regularly(self) -> None:
        while True:
            await asyncio.sleep(self.pause())
            await self._send()

    async def _send(self) -> None:
        self.collect()
        events, self._waiting = self._waiting, []
        if not events:
            return
        self.batches += 1
        batch = PublishInput(items=[_entry(event) for event in events])
        try:
            await _session().signal(STREAM_PUBLISH, batch)
        except RPCError as error:
            logger.warning("events of a run were not delivered: %s", error.message)


def _session() -> WorkflowHandle[Any, Any]:
    workflow_id = activity.info().workflow_id
    assert workflow_id is not None
    return activity.client().get_workflow_handle(workflow_id)


def _entry(event: EventRecord) -> PublishEntry:
    data = base64.b64encode(event.to_payload().SerializeToString()).decode()
    return PublishEntry(topic=run_topic(event.run_id), data=data)
