"""Which leaves this worker knows to be the store's own, because it put them there."""

from __future__ import annotations

from collections import OrderedDict

_MOST = 20_000


class RecentLeaves:
    """Leaves of sessions that nobody else has appended to, as far as this worker's own appends
    tell; those that were not used for long are forgotten.
    """

    def __init__(self) -> None:
        self._leaves: OrderedDict[tuple[str, str], None] = OrderedDict()

    def has(self, session_id: str, leaf_id: str) -> bool:
        """Whether the leaf is one of them."""
        return (session_id, leaf_id) in self._leaves

    def add(self, session_id: str, leaf_id: str) -> None:
        """The store was just seen to end there."""
        self._leaves[session_id, leaf_id] = None
        while len(self._leaves) > _MOST:
            self._leaves.popitem(last=False)

    def forget(self, session_id: str, leaf_id: str) -> None:
        """Something may come after it now."""
        self._leaves.pop((session_id, leaf_id), None)
