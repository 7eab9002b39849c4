"""The store: what the contract asks for, in statements."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from types import TracebackType
from typing import Any, ClassVar, Self

from perdure.codec import decode_record, encode_record
from perdure.entries import Entry, SessionRecord
from perdure.errors import SessionExistsError, SessionNotFoundError
from perdure.session_id import check_session_id
from perdure.stores.lines import new_record
from perdure.stores.postgres.connections import RETRY_FOR
from perdure.stores.postgres.database import Database
from perdure.stores.postgres.logs import Logs
from perdure.stores.postgres.schema import SESSIONS_NEED
from perdure.stores.postgres.statements import Statements

CACHE_SIZE = 64 * 1024 * 1024
"""Bytes of lines whose entries a store keeps decoded, unless told otherwise."""

_LISTED_AT_ONCE = 1000


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
        StoreError: the URL cannot be read, `pool_size` is not from 1 to 1000, or the driver is not
            installed. Nothing is connected to before the first use.
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
        self._database = Database(
            url,
            owner=type(self).__name__,
            needs=SESSIONS_NEED,
            schema=schema,
            pool_size=pool_size,
            retry_for=retry_for,
            create_schema=create_schema,
        )
        self.schema = self._database.schema
        self._statements = Statements.of(self.schema)
        self._logs = Logs(self._database.call, self._statements, cache_size, self._database.place)

    def __repr__(self) -> str:
        return repr(self._database)

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
        await self._database.close()

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

        await self._database.run(partial(self._database.call, create))

    async def load_session(self, session_id: str) -> SessionRecord:
        """Return the session's record.

        Raises:
            SessionNotFoundError: nobody created the session.
        """
        check_session_id(session_id)
        line = await self._database.run(
            partial(
                self._database.call, lambda db: db.fetchval(self._statements.record, session_id)
            )
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
        return await self._database.run(partial(self._logs.load, check_session_id(session_id)))

    async def load_path(
        self, session_id: str, leaf_id: str | None = None, *, limit: int | None = None
    ) -> list[Entry]:
        """See `LoadsPaths.load_path`.

        Raises:
            DamagedLogError: a line of the path is damaged.
            StoreError: the database cannot be reached.
        """
        check_session_id(session_id)
        return await self._database.run(partial(self._logs.load_path, session_id, leaf_id, limit))

    async def append_entries(self, session_id: str, entries: Sequence[Entry]) -> None:
        """See `Store.append_entries`.

        Raises:
            StoreError: the database cannot be reached, or refuses. If the answer to it was lost,
                the entries may be there; appending them again is safe.
        """
        await self._database.run(
            partial(self._logs.append, check_session_id(session_id), tuple(entries))
        )

    async def list_sessions(self, *, prefix: str = "") -> list[str]:
        """Return the IDs of the sessions that start so, in order.

        It is not part of the contract. Sessions that are created meanwhile may be missing.
        """
        found: list[str] = []
        last = 0
        while True:
            rows = await self._database.run(
                partial(self._database.call, partial(self._listed, last))
            )
            found += [session_id for _, session_id in rows if session_id.startswith(prefix)]
            if len(rows) < _LISTED_AT_ONCE:
                return sorted(found)
            last = rows[-1][0]

    async def _listed(self, last: int, connection: Any) -> list[tuple[int, str]]:
        rows = await connection.fetch(self._statements.list, last, _LISTED_AT_ONCE)
        return [(row["key"], row["id"]) for row in rows]
