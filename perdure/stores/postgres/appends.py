"""Appends to several sessions in one transaction, where they would wait for each other's anyway."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from perdure.errors import StoreError
from perdure.stores.postgres.connections import Job
from perdure.stores.postgres.statements import Statements

AT_ONCE = 2
"""Transactions under way at a time: while one is made durable, the next is written."""

_MOST_BYTES, _MOST_LINES = 1024 * 1024, 500
"""What is gathered into one transaction, roughly. A larger append has one to itself."""


@dataclass(eq=False, slots=True)
class Append:
    """Lines for one session, and the IDs of their entries and of those before them."""

    session_id: str
    ids: Sequence[bytes]
    parent_ids: Sequence[bytes]
    lines: Sequence[bytes]
    row: asyncio.Future[Any] = field(default_factory=lambda: asyncio.Future())

    @property
    def size(self) -> int:
        """Bytes of lines."""
        return sum(map(len, self.lines))


class Appends:
    """Gathers appends while others are under way. All is used in one event loop.

    A commit costs much the same whatever is in it, so what came while the last ones were written
    is written together. Nobody waits for another's session in that: one that is locked, as another
    process appends to it, is left out, and has a transaction of its own, which waits.
    """

    def __init__(self, call: Callable[[Job[Any]], Awaitable[Any]], statements: Statements) -> None:
        self._call = call
        self._statements = statements
        self._waiting: deque[Append] = deque()
        self._under_way: set[asyncio.Task[None]] = set()

    async def append(self, append: Append) -> Any:
        """Return the row of the session, as `Statements.append` does; nothing without it."""
        self._waiting.append(append)
        # Not at once: who else is about to append comes along.
        asyncio.get_running_loop().call_soon(self._start)
        row = await append.row
        if row is not None:
            return row
        arguments = (append.session_id, append.ids, append.parent_ids, append.lines)
        return await self._call(lambda db: db.fetchrow(self._statements.append, *arguments))

    def _start(self) -> None:
        while self._waiting and len(self._under_way) < AT_ONCE:
            task = asyncio.create_task(self._write(self._next()))
            self._under_way.add(task)
            task.add_done_callback(self._end)

    def _end(self, task: asyncio.Task[None]) -> None:
        self._under_way.discard(task)
        self._start()

    def _next(self) -> list[Append]:
        found: list[Append] = []
        size = lines = 0
        while self._waiting:
            append = self._waiting[0]
            size, lines = size + append.size, lines + len(append.lines)
            if found and (size > _MOST_BYTES or lines > _MOST_LINES):
                break
            self._waiting.popleft()
            if not append.row.done():  # else who wanted it has gone
                found.append(append)
        return found

    async def _write(self, appends: Sequence[Append]) -> None:
        columns = _columns(appends)
        try:
            rows = await self._call(lambda db: db.fetch(self._statements.appends, *columns))
        except StoreError as error:
            for append in appends:
                # Whose fault it is, each finds out alone.
                _tell(append, None if len(appends) > 1 else error)
        except BaseException as error:
            for append in appends:
                _tell(append, error)
            raise
        else:
            by_session = {row["id"]: row for row in rows}
            for append in appends:
                _tell(append, by_session.get(append.session_id))


def _columns(appends: Sequence[Append]) -> tuple[list[str], list[bytes], list[bytes], list[bytes]]:
    return (
        [append.session_id for append in appends for _ in append.lines],
        [entry_id for append in appends for entry_id in append.ids],
        [parent_id for append in appends for parent_id in append.parent_ids],
        [line for append in appends for line in append.lines],
    )


def _tell(append: Append, row: Any) -> None:
    if append.row.done():
        return
    if isinstance(row, asyncio.CancelledError):
        append.row.cancel()
    elif isinstance(row, BaseException):
        append.row.set_exception(row)
    else:
        append.row.set_result(row)
