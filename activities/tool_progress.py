"""A tool call while it runs: how it gets on, and whether anybody still waits for it."""

from __future__ import annotations

import math
import threading
import time
from collections import deque

from perdure.activities.live_events import LiveEvents
from perdure.protocol import PlannedCall, RunPlace
from perdure.run_events import TOOL_EXECUTION_UPDATE

INTERVAL = 0.5
"""Seconds between two batches of reports, at first."""

_SLOWDOWN = 30
"""The longer a tool runs, the rarer are its reports: one in so many parts of its time. A tool that
reports for a day then costs some 300 batches, and history has room for them."""

_MOST_AT_ONCE = 20
_LONGEST = 2_000


class ToolProgress:
    """Passes a call's reports on. The last ones of each interval count; whatever comes before them,
    or after the end of the call, is dropped.
    """

    def __init__(self, call: PlannedCall, place: RunPlace | None) -> None:
        self.live = LiveEvents(place, INTERVAL, collect=self._tell, pause=self._pause)
        self._call = call
        self._reports: deque[tuple[str, float | None]] = deque(maxlen=_MOST_AT_ONCE)
        self._began = time.monotonic()
        self._over = threading.Event()

    @property
    def is_cancelled(self) -> bool:
        """Whether nobody waits for the result any more."""
        return self._over.is_set()

    def end(self) -> None:
        """The call has its result, or will never have one."""
        self._over.set()

    def report(self, text: str, fraction: float | None) -> None:
        """Pass on how the call gets on; from any thread."""
        if not self.live.is_on or self.is_cancelled:
            return
        share = None if fraction is None else float(fraction)
        if share is not None:
            share = min(max(share, 0.0), 1.0) if math.isfinite(share) else None
        self._reports.append((str(text)[:_LONGEST], share))

    def _pause(self) -> float:
        return max(INTERVAL, (time.monotonic() - self._began) / _SLOWDOWN)

    def _tell(self) -> None:
        while self._reports:
            text, fraction = self._reports.popleft()
            self.live.tell(
                TOOL_EXECUTION_UPDATE,
                tool_call_id=self._call.id,
                tool_name=self._call.name,
                progress=text,
                fraction=fraction,
            )
