"""Which leaves this worker knows to be the store's own, because it put them there."""

from __future__ import annotations

import time
from collections import OrderedDict

_MOST = 20_000

_FRESH = 1.0
"""Seconds for which a leaf is known. Another worker takes a session over when nothing was heard of
this one for longer: it may have added something, and died before anyone was told."""


class RecentLeaves:
    """Leaves of sessions that nobody else has appended to, as far as this worker's own appends of
    the last second tell.
    """

    def __init__(self) -> None:
        self._leaves: OrderedDict[tuple[str, str], float] = OrderedDict()

    def has(self, session_id: str, leaf_id: str) -> bool:
        """Whether the leaf is one of them."""
        added_at = self._leaves.get((session_id, leaf_id))
        return added_at is not None and time.monotonic() - added_at < _FRESH

    def add(self, session_id: str, leaf_id: str) -> None:
        """The store was just seen to end there."""
        self._leaves[session_id, leaf_id] = time.monotonic()
        self._leaves.move_to_end((session_id, leaf_id))
        while len(self._leaves) > _MOST:
            self._leaves.popitem(last=False)

    def forget(self, session_id: str, leaf_id: str) -> None:
        """Something may come after it now."""
        self._leaves.pop((session_id, leaf_id), None)
