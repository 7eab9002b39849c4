"""Logs as rows: appended to, and loaded as far as they are not known."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any

from perdure.codec import decode_entries
from perdure.entries import Entry
from perdure.errors import DamagedLogError, EntryDecodeError, SessionNotFoundError
from perdure.stores.lines import Line, storable_lines
from perdure.stores.postgres.appends import Append, Appends
from perdure.stores.postgres.connections import Job
from perdure.stores.postgres.recent_logs import RecentLog, RecentLogs
from perdure.stores.postgres.statements import Statements, id_bytes
from perdure.stores.postgres.turns import Turns

_FIRST_PAGE, _LARGEST_PAGE = 100, 20_000
"""Rows that a load asks for at first, and at most."""

_PAGE_BYTES = 8 * 1024 * 1024
"""Bytes of lines that a page should have, roughly."""

_CODED_AT_ONCE = 300
"""Lines that are encoded or decoded in the loop; more of them go to a thread."""


class Logs:
    """The logs of a store, and what is remembered of them. All is used in one event loop.

    `call` does something with a connection; `place` names the database in errors.
    """

    def __init__(
        self,
        call: Callable[[Job[Any]], Awaitable[Any]],
        statements: Statements,
        cache_size: int,
        place: str,
    ) -> None:
        self._call = call
        self._statements = statements
        self._place = place
        self._cache = RecentLogs(cache_size)
        self._appends = Appends(call, statements)
        self._appending, self._loading = Turns(), Turns()

    async def append(self, session_id: str, entries: Sequence[Entry]) -> None:
        """See `Store.append_entries`."""
        if len(entries) <= _CODED_AT_ONCE:
            lines = storable_lines(entries)
        else:
            lines = await asyncio.to_thread(storable_lines, entries)
        append = Append(
            session_id,
            [id_bytes(entry_id) for entry_id in lines],
            [id_bytes(line.entry.parent_id) for line in lines.values()],
            [line.data for line in lines.values()],
        )
        # In a process one connection waits for a session, whoever else wants to append to it.
        async with self._appending.turn(session_id):
            row = await self._appends.append(append)
        if row is None:
            raise SessionNotFoundError(session_id)
        self._note(session_id, row, list(lines.values()))

    def _note(self, session_id: str, row: Any, lines: Sequence[Line]) -> None:
        """Add what was appended to what is known, where nothing lies between."""
        log = self._cache.get(session_id)
        start = row["last_seq"] - len(lines)
        if log is None or log.key != row["key"] or log.end != start:
            return
        added = [(seq, lines[seq - start - 1]) for seq in row["added"] or ()]
        if added:
            last_seq, last = added[-1]
            log.extend(
                [line.entry for _, line in added],
                sum(len(line.data) for _, line in added),
                (last_seq, id_bytes(last.entry.id)),
            )
        log.end = row["last_seq"]
        self._cache.put(session_id, log)

    async def load(self, session_id: str) -> list[Entry]:
        """See `Store.load_entries`."""
        async with self._loading.turn(session_id):
            log = self._cache.get(session_id) or RecentLog()
            page_size = _FIRST_PAGE
            while True:
                start = log.end
                rows = await self._call(partial(self._page, session_id, log.last_seq, page_size))
                if not rows:
                    self._cache.forget(session_id)
                    raise SessionNotFoundError(session_id)
                if not _goes_on(log, rows):
                    # Deleted and made again, or a standby took over that did not have it all.
                    log = RecentLog()
                    self._cache.forget(session_id)
                    continue
                lines = [row["line"] for row in rows if row["line"] is not None]
                entries = await self._decoded(session_id, rows, lines)
                if log.end != start:
                    continue  # An append was quicker, and added what it wrote.
                size = sum(map(len, lines))
                last = (rows[-1]["seq"], id_bytes(entries[-1].id)) if entries else None
                log.key = rows[0]["key"]
                log.extend(entries, size, last)
                whole = rows[0]["last_seq"]
                is_whole = len(rows) < page_size or log.last_seq == whole
                log.end = whole if is_whole else log.last_seq
                if is_whole:
                    self._cache.put(session_id, log)
                    return log.copy_entries()
                page_size = _next_page_size(page_size, size)

    async def load_path(
        self, session_id: str, leaf_id: str | None, limit: int | None
    ) -> list[Entry]:
        """See `PostgresStore.load_path`. Nothing is taken from the cache, and nothing put there."""
        upwards: list[list[Any]] = []
        seen: set[int] = set()
        wanted = sys.maxsize if limit is None else limit
        page_size = _FIRST_PAGE
        entry_id = None if leaf_id is None else id_bytes(leaf_id)
        while len(seen) < wanted:
            page_size = min(page_size, wanted - len(seen))
            found = await self._call(partial(self._path_page, session_id, entry_id, page_size))
            if not found:
                raise SessionNotFoundError(session_id)
            rows = [row for row in found if row["seq"] is not None and row["seq"] not in seen]
            rows = _without_circle(rows)
            if not rows:
                break
            upwards.append(rows)
            seen.update(row["seq"] for row in rows)
            if len(rows) < page_size:
                break
            entry_id = rows[0]["parent_id"]
            page_size = _next_page_size(page_size, sum(len(row["line"]) for row in rows))
        path = [row for rows in reversed(upwards) for row in rows]
        return await self._decoded(session_id, path, [row["line"] for row in path])

    async def _path_page(
        self, session_id: str, leaf: bytes | None, size: int, connection: Any
    ) -> list[Any]:
        rows: list[Any]
        if leaf is None:
            rows = await connection.fetch(self._statements.last_path, session_id, size)
        else:
            rows = await connection.fetch(self._statements.path, session_id, size, leaf)
        return rows

    async def _page(self, session_id: str, last_seq: int, size: int, connection: Any) -> list[Any]:
        rows: list[Any] = await connection.fetch(self._statements.load, session_id, last_seq, size)
        return rows

    async def _decoded(
        self, session_id: str, rows: Sequence[Any], lines: Sequence[bytes]
    ) -> list[Entry]:
        try:
            if len(lines) <= _CODED_AT_ONCE:
                return decode_entries(lines)
            return await asyncio.to_thread(decode_entries, lines)
        except EntryDecodeError as error:
            seq = rows[len(rows) - len(lines) + error.index]["seq"]
            log = f"session {session_id!r} in PostgreSQL at {self._place}"
            raise DamagedLogError(log, seq, str(error)) from None


def _goes_on(log: RecentLog, rows: Sequence[Any]) -> bool:
    """Whether the rows are of the log that is known, from its last known entry on."""
    if not log.key:
        return True
    if rows[0]["key"] != log.key:
        return False
    return not log.last_seq or (rows[0]["seq"], rows[0]["id"]) == (log.last_seq, log.last_id)


def _without_circle(rows: Sequence[Any]) -> list[Any]:
    """The rows of a walk to the root, the last one first; it ends where it meets itself."""
    kept: dict[int, Any] = {}
    for row in reversed(rows):
        if row["seq"] in kept:
            break
        kept[row["seq"]] = row
    return list(reversed(kept.values()))


def _next_page_size(page_size: int, size: int) -> int:
    """Grow, but not beyond what fits the bytes of a page at the size that lines have here."""
    fitting = _PAGE_BYTES * page_size // max(size, 1)
    return max(1, min(page_size * 8, fitting, _LARGEST_PAGE))
