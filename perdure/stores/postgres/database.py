"""A schema of a database, as whoever keeps something there uses it: connections in a thread of
their own, and tables that are looked for before the first use.
"""

from __future__ import annotations

import asyncio
import logging
import weakref
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from perdure.errors import StoreError
from perdure.stores.postgres.address import Address, check_pool_size
from perdure.stores.postgres.connections import Connections, Job, driver
from perdure.stores.postgres.failures import is_refusal, misses_tables
from perdure.stores.postgres.loop_thread import LoopThread, StoppedError
from perdure.stores.postgres.migration import migrate
from perdure.stores.postgres.schema import check_version, find_version

POOL_SIZE = 10
"""Connections that are opened at most, unless told otherwise."""

logger = logging.getLogger("perdure.stores")

Result = TypeVar("Result")


class Database:
    """Connections to one schema, for any event loop of the process.

    `needs` is the lowest version of the tables that the owner can work with. Where there are no
    tables, and the role may make them, the first use does, unless `create_schema` is false.
    `owner` names the owner to whoever reads its errors.

    Raises:
        StoreError: the URL cannot be read, or the driver is not installed. Nothing is connected
            to before the first use.
    """

    def __init__(
        self,
        url: str,
        *,
        owner: str,
        needs: int,
        schema: str | None,
        pool_size: int | None,
        retry_for: float,
        create_schema: bool,
    ) -> None:
        driver()
        address = Address.of(url)
        size = address.pool_size if pool_size is None else check_pool_size(pool_size)
        self.schema = schema if schema is not None else address.schema
        self.place = address.place
        self.connections = Connections(address, size or POOL_SIZE, retry_for)
        self.thread = LoopThread("perdure-postgres")
        self._owner = owner
        self._needs = needs
        self._creates_schema = create_schema
        self._has_schema = False
        self._end = weakref.finalize(self, self.thread.stop, self.connections.terminate)

    def __repr__(self) -> str:
        return f"{self._owner}({self.place!r}, schema={self.schema!r})"

    async def close(self) -> None:
        """Close all connections; calls that are under way are cancelled. Closing again is
        nothing.
        """
        await asyncio.to_thread(self._end)

    async def run(self, job: Callable[[], Awaitable[Result]]) -> Result:
        """Return what the job returns, from the thread in which `call` may be used."""
        try:
            return await self.thread.run(job)
        except StoppedError:
            raise StoreError(
                f"{self!r} is closed, or was opened before a fork; make another"
            ) from None

    async def call(self, job: Job[Result]) -> Result:
        """Return what the job makes of a connection, as `Connections.call` does."""

        async def checked(connection: Any) -> Result:
            if not self._has_schema:
                await self._find_schema(connection)
            try:
                return await job(connection)
            except Exception as error:
                if misses_tables(error):
                    self._has_schema = False
                raise

        return await self.connections.call(checked)

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
        check_version(found, self.schema, needs=self._needs)
        self._has_schema = True
