"""The workflow's stream: run events and lifecycle events, kept for subscribers, within bounds,
until the workflow continues as new.
"""

from __future__ import annotations

import base64
import contextlib
from collections import deque
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from google.protobuf.message import DecodeError
from temporalio import workflow
from temporalio.api.common.v1 import Payload
from temporalio.contrib.workflow_streams import PublishInput, WorkflowStream, WorkflowStreamState
from temporalio.exceptions import ApplicationError

from perdure.names import LIFECYCLE_TOPIC, STREAM_OFFSET, STREAM_PUBLISH, run_topic
from perdure.protocol import EventMark, EventRecord, LifecycleEvent, SessionState
from perdure.wire import Wire

_KEPT_BYTES = 1_000_000
_CARRIED_IN_A_RUN = 16_000
_CARRIED_BETWEEN_RUNS = 4_000
_BETWEEN_POLLS = 0.5
"""Seconds for which a lifecycle event is kept at least, for whoever is between two polls."""


class SessionStream:
    """Publishes events, and takes those that activities publish while they are at work. A
    subscriber to a run who falls behind what is kept reads the rest from the store.
    """

    def __init__(self, stream: WorkflowStream, state: SessionState) -> None:
        prior = state.stream
        self._stream = stream
        self._offset = prior.base_offset if prior else 0
        self._sizes = deque(len(item.data) for item in prior.log) if prior else deque[int]()
        self._bytes = sum(self._sizes)
        self._fresh_from = self._end()
        self._has_pieces = False
        self.heard: Callable[[EventRecord], None] | None = None
        """Who is told of what an activity publishes."""
        self._state = state
        self._recent = state.recent_events
        self._take: Any = workflow.get_signal_handler(STREAM_PUBLISH)
        self._length: Any = workflow.get_query_handler(STREAM_OFFSET)
        workflow.set_signal_handler(STREAM_PUBLISH, self._on_publish)

    def publish(self, events: list[EventRecord]) -> None:
        """Make events visible to subscribers; whatever they report is stored already, or passes."""
        for event in events:
            self._has_pieces |= event.is_passing
            self._publish(run_topic(event.run_id), event)

    def publish_lifecycle(self, event: LifecycleEvent) -> None:
        """Make an event visible that belongs to no run."""
        self._recent.append(EventMark(offset=self._end(), at=workflow.time()))
        self._publish(LIFECYCLE_TOPIC, event)

    def begin_step(self) -> None:
        """What is published from now on may not have been seen by anyone at the next step."""
        self._fresh_from = self._end()
        self._has_pieces = False

    def carry(self) -> WorkflowStreamState:
        """What the next run of the workflow starts with: the place in the stream, recent lifecycle
        events, and, within bounds, of a run in progress or a streamed one its last step, of another
        its end.

        What is carried is written into history twice, at every continue-as-new, so it is little. A
        subscriber to a run who missed an event sees the gap at the next one, or at the end of the
        run, and reads it from the store.
        """
        since = workflow.time() - _BETWEEN_POLLS
        self._recent[:] = [mark for mark in self._recent if mark.at >= since]
        is_running = self._state.active is not None
        limit = _CARRIED_IN_A_RUN if is_running else _CARRIED_BETWEEN_RUNS
        has_more = is_running or self._has_pieces
        unseen = self._fresh_from if has_more else self._end() - 1
        first = min([unseen, *(mark.offset for mark in self._recent)])
        self._drop(max(first - self._offset, 0))
        while self._bytes > limit:
            self._drop(1)
        # Who publishes from outside is an activity, and none is at work between two steps: there is
        # nobody to be remembered for the sake of a batch sent twice.
        return self._stream.get_state(publisher_ttl=timedelta(0))

    def detach(self) -> None:
        """Let waiting subscribers go; they come back to the next run of the workflow."""
        self._stream.detach_pollers()

    def _publish(self, topic: str, event: Wire) -> None:
        payload = event.to_payload()
        self._stream.topic(topic).publish(payload)
        self._note(payload.ByteSize() * 4 // 3)

    def _on_publish(self, batch: PublishInput) -> None:
        self._take(batch)
        if self._length() > self._end():  # else it is a batch that came before
            for item in batch.items:
                self._note(len(item.data))
            if self.heard is not None:
                self._tell(batch, self.heard)

    def _tell(self, batch: PublishInput, hear: Callable[[EventRecord], None]) -> None:
        """The last event of a batch, to the run whose activity it is."""
        for item in batch.items[-1:]:
            # Anybody may publish anything.
            with contextlib.suppress(ValueError, DecodeError, ApplicationError):
                payload = Payload.FromString(base64.b64decode(item.data))
                hear(EventRecord.from_json(payload.data))

    def _note(self, size: int) -> None:
        self._sizes.append(size)
        self._bytes += size
        while self._bytes > _KEPT_BYTES:
            self._drop(1)

    def _end(self) -> int:
        return self._offset + len(self._sizes)

    def _drop(self, count: int) -> None:
        for _ in range(count):
            self._bytes -= self._sizes.popleft()
        self._offset += count
        self._stream.truncate(self._offset)
