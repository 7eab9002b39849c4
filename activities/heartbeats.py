"""Heartbeats that do not stop when the application blocks the event loop.

A beat normally goes out through the SDK, on the worker's event loop, which is also how a
cancellation comes back. A tool that computes for seconds without awaiting stops that loop, and the
server would take its worker for dead. A thread watches the beat of each running activity, and
while one is late it reports for it over the client's own connection, for as long as a worker may
reasonably be stuck.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

from temporalio import activity
from temporalio.api.workflowservice.v1 import RecordActivityTaskHeartbeatRequest
from temporalio.client import Client
from temporalio.service import RPCError

logger = logging.getLogger("perdure.activities")

INTERVAL = 0.5
"""Seconds between two beats."""

_LATE = 3 * INTERVAL
_STUCK = 60.0


@dataclass(eq=False)
class Beat:
    """One activity's heartbeats."""

    client: Client
    namespace: str
    task_token: bytes
    timeout: float
    """Seconds of silence after which the server gives the activity up."""

    last: float = field(default_factory=time.monotonic)
    """When the event loop last reported."""

    _heard: float = field(default_factory=time.monotonic)
    _was_silent: bool = False

    @property
    def is_given_up(self) -> bool:
        """Whether nothing was heard of this attempt for so long that another may be under way:
        the process was stopped for a while.
        """
        return self._was_silent or time.monotonic() - self._heard > self.timeout

    def note(self) -> None:
        """Something is heard of it now."""
        self._was_silent = self.is_given_up
        self._heard = time.monotonic()


class Heart:
    """Beats for the activities of one worker. `close` it when the worker is shut down."""

    def __init__(self) -> None:
        self._beats: set[Beat] = set()
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None

    @contextlib.asynccontextmanager
    async def beating(self) -> AsyncIterator[Beat]:
        """Report the current activity as alive until the block ends."""
        info = activity.info()
        timeout = info.heartbeat_timeout
        silence = timeout.total_seconds() if timeout is not None else float("inf")
        beat = Beat(activity.client(), info.namespace, info.task_token, silence)
        self._watch(beat)
        pulse = asyncio.create_task(_pulse(beat))
        try:
            yield beat
        finally:
            pulse.cancel()
            with self._lock:
                self._beats.discard(beat)

    def close(self) -> None:
        """Stop watching."""
        self._stopped.set()

    def _watch(self, beat: Beat) -> None:
        with self._lock:
            self._beats.add(beat)
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._stand_in, name="perdure-heartbeats", daemon=True
                )
                self._thread.start()

    def _stand_in(self) -> None:
        loop = asyncio.new_event_loop()
        try:
            while not self._stopped.wait(INTERVAL):
                with self._lock:
                    late = [beat for beat in self._beats if _is_late(beat)]
                if late:
                    loop.run_until_complete(_report_all(late))
        finally:
            loop.close()


def _is_late(beat: Beat) -> bool:
    return _LATE < time.monotonic() - beat.last < _STUCK


async def _pulse(beat: Beat) -> None:
    # The start of the activity counts as a beat, so a short one needs none.
    while True:
        await asyncio.sleep(INTERVAL)
        beat.note()
        activity.heartbeat()
        beat.last = time.monotonic()


async def _report_all(beats: list[Beat]) -> None:
    await asyncio.gather(*(_report(beat) for beat in beats))


async def _report(beat: Beat) -> None:
    beat.note()
    request = RecordActivityTaskHeartbeatRequest(
        namespace=beat.namespace, task_token=beat.task_token, identity=beat.client.identity
    )
    try:
        await asyncio.wait_for(
            beat.client.workflow_service.record_activity_task_heartbeat(request), INTERVAL
        )
    except (RPCError, TimeoutError) as error:
        # The activity may be over by now, or the server out of reach; the next beat will tell.
        logger.debug("a late heartbeat was not recorded: %s", error)
