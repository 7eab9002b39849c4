"""What a store remembers of the logs that it loaded, so that it asks only for what is new."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

from perdure.entries import Entry

LOG_COST = 1024
"""Bytes that it costs to remember a log at all, roughly."""


class RecentLog:
    """The beginning of one log, as it was in the database at some moment."""

    def __init__(self, key: int = 0) -> None:
        self.key = key
        """The row of the session; another one if it was deleted and made again."""
        self.end = 0
        """All entries up to this sequence number are here."""
        self.last_seq = 0
        """The number of the last entry; it may lie before `end`."""
        self.last_id = b""
        self.size = LOG_COST
        self._entries: list[Entry] = []

    def __len__(self) -> int:
        return len(self._entries)

    def copy_entries(self) -> list[Entry]:
        """Return the entries, in a list for the caller."""
        return self._entries.copy()

    def extend(self, entries: Sequence[Entry], size: int, last: tuple[int, bytes] | None) -> None:
        """Add entries, of `size` bytes; the number and ID of the last one."""
        self._entries += entries
        self.size += size
        if last is not None:
            self.last_seq, self.last_id = last


class RecentLogs:
    """The logs that were used last, by session, in about `max_bytes` of lines.

    For one thread only.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._bytes = 0
        self._logs: OrderedDict[str, tuple[RecentLog, int]] = OrderedDict()

    def get(self, session_id: str) -> RecentLog | None:
        """Return what is known of the session's log."""
        if session_id not in self._logs:
            return None
        self._logs.move_to_end(session_id)
        return self._logs[session_id][0]

    def put(self, session_id: str, log: RecentLog) -> None:
        """Remember a log, as the one used last, at the size that it has now."""
        self.forget(session_id)
        self._logs[session_id] = (log, log.size)
        self._bytes += log.size
        while self._bytes > self._max_bytes:
            self.forget(next(iter(self._logs)))

    def forget(self, session_id: str) -> None:
        """Drop what is known of the session's log."""
        if session_id in self._logs:
            self._bytes -= self._logs.pop(session_id)[1]
