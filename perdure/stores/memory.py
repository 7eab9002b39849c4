"""Sessions in the memory of one process: for tests, notebooks and throwaway conversations."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from perdure.codec import decode_entries, decode_record, encode_record
from perdure.entries import Entry, SessionRecord
from perdure.errors import SessionExistsError, SessionNotFoundError
from perdure.session_id import check_session_id
from perdure.stores.lines import new_record, storable_lines


class MemoryStore:
    """A store that ends with its process.

    It keeps the encoded lines, not the objects: whatever it returns is a copy, and it refuses what
    a file would refuse. Every operation is one step for any other task or thread.
    """

    def __init__(self) -> None:
        self._records: dict[str, bytes] = {}
        self._logs: dict[str, dict[str, bytes]] = {}
        self._lock = threading.Lock()

    async def create_session(self, session_id: str, parent_id: str = "") -> None:
        """See `Store.create_session`."""
        record = new_record(session_id, parent_id)
        with self._lock:
            if session_id in self._records:
                raise SessionExistsError(session_id)
            self._records[session_id] = encode_record(record)
            self._logs[session_id] = {}

    async def load_session(self, session_id: str) -> SessionRecord:
        """Return the session's record.

        Raises:
            SessionNotFoundError: nobody created the session.
        """
        with self._lock:
            record = self._records.get(check_session_id(session_id))
        if record is None:
            raise SessionNotFoundError(session_id)
        return decode_record(record)

    async def load_entries(self, session_id: str) -> list[Entry]:
        """See `Store.load_entries`."""
        with self._lock:
            lines = list(self._log(session_id).values())
        return decode_entries(lines)

    async def append_entries(self, session_id: str, entries: Sequence[Entry]) -> None:
        """See `Store.append_entries`; durable here means as long as the process."""
        lines = storable_lines(entries)
        with self._lock:
            log = self._log(session_id)
            for entry_id, line in lines.items():
                log.setdefault(entry_id, line.data)

    async def list_sessions(self, *, prefix: str = "") -> list[str]:
        """Return the IDs of the sessions that start so, in order."""
        with self._lock:
            return sorted(known for known in self._records if known.startswith(prefix))

    def _log(self, session_id: str) -> dict[str, bytes]:
        log = self._logs.get(check_session_id(session_id))
        if log is None:
            raise SessionNotFoundError(session_id)
        return log
