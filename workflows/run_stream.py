"""Run events on the workflow's stream: kept for subscribers, bounded, carried over a
continue-as-new.
"""

from __future__ import annotations

from collections import deque

from temporalio import workflow
from temporalio.contrib.workflow_streams import WorkflowStream, WorkflowStreamState

from perdure.names import run_topic
from perdure.protocol import EventRecord

_KEPT_BYTES = 1_000_000
_CARRIED_BYTES = 200_000


class RunStream:
    """Publishes run events. A subscriber who falls behind what is kept reads the rest from the
    store.
    """

    def __init__(self, stream: WorkflowStream, prior: WorkflowStreamState | None) -> None:
        self._stream = stream
        self._offset = prior.base_offset if prior else 0
        self._sizes = deque(len(item.data) for item in prior.log) if prior else deque[int]()
        self._bytes = sum(self._sizes)

    def publish(self, events: list[EventRecord]) -> None:
        """Make events visible to subscribers; whatever they report is stored already."""
        converter = workflow.payload_converter()
        for event in events:
            payload = converter.to_payload(event)
            self._stream.topic(run_topic(event.run_id)).publish(payload)
            size = payload.ByteSize() * 4 // 3
            self._sizes.append(size)
            self._bytes += size
        self._trim(_KEPT_BYTES)

    def carry(self) -> WorkflowStreamState:
        """What the next run of the workflow starts with."""
        self._trim(_CARRIED_BYTES)
        return self._stream.get_state()

    def detach(self) -> None:
        """Let waiting subscribers go; they come back to the next run of the workflow."""
        self._stream.detach_pollers()

    def _trim(self, limit: int) -> None:
        dropped = 0
        while self._bytes > limit and len(self._sizes) > 1:
            self._bytes -= self._sizes.popleft()
            dropped += 1
        if dropped:
            self._offset += dropped
            self._stream.truncate(self._offset)
