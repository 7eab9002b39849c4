"""Run events on the workflow's stream: kept for subscribers, within bounds, until the workflow
continues as new.
"""

from __future__ import annotations

from collections import deque

from temporalio.contrib.workflow_streams import WorkflowStream, WorkflowStreamState

from perdure.names import run_topic
from perdure.protocol import EventRecord

_KEPT_BYTES = 1_000_000


class RunStream:
    """Publishes run events. A subscriber who falls behind what is kept reads the rest from the
    store.
    """

    def __init__(self, stream: WorkflowStream, prior: WorkflowStreamState | None) -> None:
        self._stream = stream
        self._offset = prior.base_offset if prior else 0
        self._sizes = deque[int]()
        self._bytes = 0

    def publish(self, events: list[EventRecord]) -> None:
        """Make events visible to subscribers; whatever they report is stored already."""
        for event in events:
            payload = event.to_payload()
            self._stream.topic(run_topic(event.run_id)).publish(payload)
            size = payload.ByteSize() * 4 // 3
            self._sizes.append(size)
            self._bytes += size
        while self._bytes > _KEPT_BYTES:
            self._drop(1)

    def carry(self) -> WorkflowStreamState:
        """What the next run of the workflow starts with: the place in the stream, and no events.

        They would be written into history twice, at every continue-as-new. Who missed one sees the
        gap at the next event, or at the end of the run, and reads it from the store.
        """
        self._drop(len(self._sizes))
        return self._stream.get_state()

    def detach(self) -> None:
        """Let waiting subscribers go; they come back to the next run of the workflow."""
        self._stream.detach_pollers()

    def _drop(self, count: int) -> None:
        for _ in range(count):
            self._bytes -= self._sizes.popleft()
        self._offset += count
        self._stream.truncate(self._offset)
