"""The store: what the contract asks for, in statements."""

from __future__ import annotations

import asyncio
import logging
import weakref
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from types import TracebackType
from typing import Any, ClassVar, Self, TypeVar

from perdure.codec import decode_record, encode_record
from perdure.entries import Entry, SessionRecord
from perdure.errors import (
    SessionExistsError,
    SessionNotFoundError,
    StoreError,
)
from perdure.session_id import check_session_id
from perdure.stores.lines import new_record
from perdure.stores.postgres.address import Address
from perdure.stores.postgres.connections import RETRY_FOR, Connections, Job, driver
from perdure.stores.postgres.failures import is_refusal, misses_tables
from perdure.stores.postgres.logs import Logs
from perdure.stores.postgres.loop_thread import LoopThread, StoppedError
from perdure.stores.postgres.migration import migrate
from perdure.stores.postgres.schema import check_version, find_version
from perdure.stores.postgres.statements import Statements

CACHE_SIZE = 64 * 1024 * 1024
"""Bytes of lines whose entries a store keeps decoded, unless told otherwise."""

POOL_SIZE = 10
"""Connections that a store opens at most, unless told otherwise."""

_LISTED_AT_ONCE = 1000

logger = logging.getLogger("perdure.stores")

Result = TypeVar("Result")


class PostgresStore:
    """A store in a schema of a PostgreSQL database, shared by any number of machines.

    - An append is one statement, with those to other sessions that come at the same time: it is
      committed when it returns, as durable as the server's settings make a commit. Within a session
      the order of appends is the order of commits; each takes the lock of its session's row, and
      waits for no other's.
    - Lines are kept byte for byte.
    - Decoded entries are kept in memory, `cache_size` bytes of lines over all logs, so that loading
      again asks only for what was appended since, by whichever process.
    - A path is loaded without the rest of its log, by `load_path`.
    - A connection that is lost, a restart or a failover of the server, a deadlock and the like are
      tried again for `retry_for` seconds; then the call is a `StoreError`.
    - Any event loop of the process may use it: connections live in a thread of their own, up to
      `pool_size`, opened when they are needed. `close` ends it; so does the end of the process.

    The tables are made at the first use where there are none and the role may make them, unless
    `create_schema` is false. They are never brought to another version but by `perdure store
    migrate`. In the URL, the options `schema` and `pool_size` do what the arguments of these names
    do, which have precedence.

    Raises:
        StoreError: the URL cannot be read, or the driver is not installed. Nothing is connected
            to before the first use.
    """

    loads_what_is_new: ClassVar[bool] = True

    def __init__(
        self,
        url: str,
        *,
        schema: str | None = None,
        pool_size: int | None = None,
        cache_size: int = CACHE_SIZE,
        retry_for: float = RETRY_FOR,
        create_schema: bool = True,
    ) -> None:
        driver()
        address = Address.of(url)
        self.schema = schema if schema is not None else address.schema
        self._statements = Statements.of(self.schema)
        self._place = address.place
        self._creates_schema = create_schema
        self._has_schema = False
        self._thread = LoopThread("perdure-postgres")
        self._connections = Connections(
            address, pool_size or address.pool_size or POOL_SIZE, retry_for
        )
        self._logs = Logs(self._call, self._statements, cache_size, self._place)
        self._end = weakref.finalize(self, self._thread.stop, self._connections.terminate)

    def __repr__(self) -> str:
        return f"PostgresStore({self._place!r}, schema={self.schema!r})"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close all connections; calls that are under way are cancelled. Closing again is
        nothing.
        """
        await asyncio.to_thread(self._end)

    async def create_session(self, session_id: str, parent_id: str = "") -> None:
        """See `Store.create_session`."""
        await self.restore_session(new_record(session_id, parent_id))

    async def restore_session(self, record: SessionRecord) -> None:
        """Register a session with the record that it had in another store.

        Raises:
            SessionExistsError: the ID is taken. Nothing changed.
            InvalidSessionIdError: the ID cannot name a session.
        """
        session_id = check_session_id(record.id)
        line = encode_record(record)
        attempts = 0

        async def create(db: Any) -> None:
            nonlocal attempts
            attempts += 1
            row = (session_id, record.parent_id, line)
            if await db.fetchval(self._statements.create, *row) is not None:
                return
            # It is no other's, but our own if the answer to an earlier attempt was lost.
            if attempts == 1 or await db.fetchval(self._statements.record, session_id) != line:
                raise SessionExistsError(session_id)

        await self._run(partial(self._call, create))

    async def load_session(self, session_id: str) -> SessionRecord:
        """Return the session's record.

        Raises:
            SessionNotFoundError: nobody created the session.
        """
        check_session_id(session_id)
        line = await self._run(
            partial(self._call, lambda db: db.fetchval(self._statements.record, session_id))
        )
        if line is None:
            raise SessionNotFoundError(session_id)
        return decode_record(line)

    async def load_entries(self, session_id: str) -> list[Entry]:
        """See `Store.load_entries`.

        Raises:
            DamagedLogError: somebody changed a line so that it is none any more.
            StoreError: the database cannot be reached.
        """
        return await self._run(partial(self._logs.load, check_session_id(session_id)))

    async def load_path(
        self, session_id: str, leaf_id: str | None = None, *, limit: int | None = None
    ) -> list[Entry]:
        """See `LoadsPaths.load_path`.

        Raises:
            DamagedLogError: a line of the path is damaged.
            StoreError: the database cannot be reached.
        """
        check_session_id(session_id)
        return await self._run(partial(self._logs.load_path, session_id, leaf_id, limit))

    async def append_entries(self, session_id: str, entries: Sequence[Entry]) -> None:
        """See `Store.append_entries`.

        Raises:
            StoreError: the database cannot be reached, or refuses. If the answer to it was lost,
                the entries may be there; appending them again is safe.
        """
        await self._run(partial(self._logs.append, check_session_id(session_id), tuple(entries)))

    async def list_sessions(self, *, prefix: str = "") -> list[str]:
        """Return the IDs of the sessions that start so, in order.

        It is not part of the contract. Sessions that are created meanwhile may be missing.
        """
        found: list[str] = []
        last = 0
        while True:
            rows = await self._run(partial(self._call, partial(self._listed, last)))
            found += [session_id for _, session_id in rows if session_id.startswith(prefix)]
            if len(rows) < _LISTED_AT_ONCE:
                return sorted(found)
            last = rows[-1][0]

    async def _listed(self, last: int, connection: Any) -> list[tuple[int, str]]:
        rows = await connection.fetch(self._statements.list, last, _LISTED_AT_ONCE)
        return [(row["key"], row["id"]) for row in rows]

    async def _run(self, job: Callable[[], Awaitable[Result]]) -> Result:
        try:
            return await self._thread.run(job)
        except StoppedError:
            raise StoreError(
                f"{self!r} is closed, or was opened before a fork; make another"
            ) from None

    async def _call(self, job: Job[Result]) -> Result:
        async def checked(connection: Any) -> Result:
            if not self._has_schema:
                await self._find_schema(connection)
            try:
                return await job(connection)
            except Exception as error:
                if misses_tables(error):
                    self._has_schema = False
                raise

        return await self._connections.call(checked)

    async def _find_schema(self, connection: Any) -> None:
        found = await find_version(connection, self.schema)
        if not found.version and self._creates_schema:
            try:
                _, found = await migrate(connection, self.schema)
            except Exception as error:
                if not is_refusal(error):
                    raise
            else:
                logger.info("%r: made the tables", self)
        check_version(found, self.schema)
        self._has_schema = True
