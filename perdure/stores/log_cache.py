"""What one process remembers of the logs that it has read, so that it reads only what is new.

A log only grows, so what was read of it stays true; a file that was deleted, replaced or cut is
recognized and read again. Memory is bounded over all logs: those that were used last keep their
entries. What an append needs, the IDs that a log holds, is small and is kept longer.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from dataclasses import dataclass

from perdure.entries import Entry
from perdure.stores.log_file import LogPiece

FINGERPRINT_SIZE = 256
"""Bytes before the known end that are compared before it is believed that a log only grew."""

ID_COST = 128
"""Bytes that an ID costs in the set of a log, roughly."""

LOG_COST = 1024
"""Bytes that it costs to remember a log at all, roughly."""


@dataclass(frozen=True, slots=True)
class Mark:
    """How far a log was known at one moment."""

    end: int = 0
    line_count: int = 0
    identity: tuple[int, int] = (0, 0)
    changed_at: int = -1
    """The file's time of change when it ended at `end` (nanoseconds); -1 when that was not seen."""
    fingerprint: bytes = b""

    @classmethod
    def of(cls, descriptor: int, status: os.stat_result, piece: LogPiece) -> Mark:
        """Return the mark at the end of what was read of a file that had this status."""
        return cls(
            end=piece.end,
            line_count=piece.line_count,
            identity=_identity_of(status),
            changed_at=status.st_ctime_ns if status.st_size == piece.end else -1,
            fingerprint=_fingerprint(descriptor, piece.end),
        )

    def fits(self, descriptor: int, status: os.stat_result) -> bool:
        """Whether the open file is the one that was read, and has only grown since."""
        if self.end == 0:
            return True
        if self.identity != _identity_of(status) or status.st_size < self.end:
            return False
        if status.st_size == self.end:
            return status.st_ctime_ns == self.changed_at
        return _fingerprint(descriptor, self.end) == self.fingerprint


class KnownLog:
    """What is known of one log, from its start to the end of a line. Threads may share it."""

    def __init__(self) -> None:
        self.mark = Mark()
        self.name_is_durable = False
        """Whether the folder was flushed since the file was found in it."""
        self.reported_tail = (0, 0)
        """Offset and size of the torn tail that was logged last."""
        self._ids: set[str] = set()
        self._entries: list[Entry] | None = []
        self._lock = threading.Lock()

    def __contains__(self, entry_id: str) -> bool:
        return entry_id in self._ids

    @property
    def has_entries(self) -> bool:
        """Whether the entries are there, or only their IDs."""
        return self._entries is not None

    @property
    def size(self) -> int:
        """What this costs in memory: bytes of lines, or of IDs when those are all that is left."""
        return LOG_COST + (self.mark.end if self.has_entries else ID_COST * len(self._ids))

    def copy_entries(self, status: os.stat_result | None = None) -> list[Entry] | None:
        """Return the entries; nothing if they were dropped or, given a status, the file changed."""
        with self._lock:
            if self._entries is None or (status is not None and not self._is_at(status)):
                return None
            return self._entries.copy()

    def extend(self, known: Mark, piece: LogPiece, after: Mark) -> int | None:
        """Add what was read behind `known`; nothing if another thread was quicker.

        Of entries with one ID the first stands. Returns how many others there were.
        """
        with self._lock:
            if self.mark.end != known.end:
                return None
            repeated = 0
            for entry in piece.entries:
                if entry.id:
                    if entry.id in self._ids:
                        repeated += 1
                        continue
                    self._ids.add(entry.id)
                if self._entries is not None:
                    self._entries.append(entry)
            self.mark = after
            return repeated

    def drop_entries(self) -> None:
        """Keep only the IDs."""
        with self._lock:
            self._entries = None

    def _is_at(self, status: os.stat_result) -> bool:
        return (self.mark.identity, self.mark.end, self.mark.changed_at) == (
            _identity_of(status),
            status.st_size,
            status.st_ctime_ns,
        )


class LogCache:
    """The logs that were used last, by file name, in about `max_bytes` of memory."""

    def __init__(self, max_bytes: int) -> None:
        self._lock = threading.Lock()
        self._whole = _Shelf(max_bytes)
        self._ids_only = _Shelf(max_bytes // 4)

    def get(self, name: bytes) -> KnownLog | None:
        """Return what is known of the log."""
        with self._lock:
            return self._whole.get(name) or self._ids_only.get(name)

    def put(self, name: bytes, known: KnownLog) -> None:
        """Remember a log, as the one used last, at the size that it has now."""
        with self._lock:
            self._whole.remove(name)
            self._ids_only.remove(name)
            if known.has_entries:
                self._whole.put(name, known)
            else:
                self._ids_only.put(name, known)
            while self._whole.is_full:
                oldest, log = self._whole.pop_oldest()
                log.drop_entries()
                self._ids_only.put(oldest, log)
            # The log that was used last stays: without its IDs every append would read all of it.
            while self._ids_only.is_full and len(self._ids_only) > 1:
                self._ids_only.pop_oldest()


class _Shelf:
    """Logs in the order of their last use, with the sum of their sizes."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._bytes = 0
        self._logs: OrderedDict[bytes, tuple[KnownLog, int]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._logs)

    @property
    def is_full(self) -> bool:
        return self._bytes > self._max_bytes

    def get(self, name: bytes) -> KnownLog | None:
        if name not in self._logs:
            return None
        self._logs.move_to_end(name)
        return self._logs[name][0]

    def put(self, name: bytes, known: KnownLog) -> None:
        size = known.size
        self._logs[name] = (known, size)
        self._bytes += size

    def remove(self, name: bytes) -> None:
        if name in self._logs:
            self._bytes -= self._logs.pop(name)[1]

    def pop_oldest(self) -> tuple[bytes, KnownLog]:
        name, (known, size) = self._logs.popitem(last=False)
        self._bytes -= size
        return name, known


def _identity_of(status: os.stat_result) -> tuple[int, int]:
    """Return what tells two files apart: device and inode."""
    return status.st_dev, status.st_ino


def _fingerprint(descriptor: int, end: int) -> bytes:
    """Return the bytes before `end` that tell whether a log was replaced."""
    start = max(0, end - FINGERPRINT_SIZE)
    return os.pread(descriptor, end - start, start)
