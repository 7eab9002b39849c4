"""A pool of connections, and calls that are tried again when it may help."""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any, TypeVar

from perdure.errors import PerdureError, StoreError
from perdure.stores.postgres.address import Address
from perdure.stores.postgres.failures import BusyError, explained

CONNECT_TIMEOUT = 5.0
"""Seconds that a new connection may take."""

ANSWER_TIMEOUT = 45.0
"""Seconds for the answer to one statement, and for a connection to become free."""

RETRY_FOR = 8.0
"""Seconds that a call is tried again when the database cannot be reached, unless told otherwise.
Whoever opens a session hears why it fails before they give up waiting."""

RETRY_FOR_WHEN_DOWN = 0.5
"""The same, after a call that was in vain."""

_PAUSES = (0.05, 1.0)
"""Seconds between attempts: at first, and at most."""

_IDLE = 300.0
"""Seconds after which a connection that nobody needs is closed."""

Result = TypeVar("Result")
Job = Callable[[Any], Awaitable[Result]]


def driver() -> Any:
    """Return asyncpg, which comes with an extra.

    Raises:
        StoreError: it is not installed.
    """
    try:
        import asyncpg
    except ImportError:
        raise StoreError(
            "PostgreSQL needs a driver; install it with: pip install 'perdure[postgres]'"
        ) from None
    return asyncpg


@contextlib.asynccontextmanager
async def connected(address: Address) -> AsyncIterator[Any]:
    """Have one connection, without a pool and without a second attempt.

    Raises:
        StoreError: it cannot be had, or the database refuses what the block asks for.
    """
    try:
        connection = await driver().connect(address.url, timeout=CONNECT_TIMEOUT)
        try:
            yield connection
        finally:
            await connection.close(timeout=CONNECT_TIMEOUT)
    except PerdureError:
        raise
    except Exception as error:
        if (failure := explained(error, address.place)) is None:
            raise
        raise failure.error from None


class Connections:
    """The connections of one store. All is used in one event loop, and closed with it."""

    def __init__(self, address: Address, size: int, retry_for: float) -> None:
        self._address = address
        self._size = size
        self._retry_for = retry_for
        self._is_down = False
        self._pool: Any = None

    async def call(self, job: Job[Result]) -> Result:
        """Return what the job makes of a connection; it may be run several times.

        A lost connection, a server that restarts, a failover, a deadlock and the like are tried
        again for a while, which is short when the last call was in vain already.

        Raises:
            StoreError: the database cannot be reached, or refuses. Whether something was done by
                an attempt whose answer was lost is not known.
        """
        started = time.monotonic()
        for pause in _pauses():
            try:
                result = await self._attempt(job)
            except PerdureError:
                raise
            except Exception as error:
                if (failure := explained(error, self._address.place)) is None:
                    raise
            else:
                self._is_down = False
                return result
            if not failure.is_transient:
                raise failure.error
            patience = self._retry_for
            if self._is_down:
                patience = min(patience, RETRY_FOR_WHEN_DOWN)
            if time.monotonic() + pause - started > patience:
                self._is_down = True
                raise failure.error
            await asyncio.sleep(pause)
        raise AssertionError("pauses have no end")

    def terminate(self) -> None:
        """Drop all connections at once."""
        if self._pool is not None:
            self._pool.terminate()
            self._pool = None

    async def _attempt(self, job: Job[Result]) -> Result:
        connection = await self._acquired()
        try:
            async with asyncio.timeout(ANSWER_TIMEOUT):
                return await job(connection)
        except BaseException as error:
            if not isinstance(error, PerdureError) and not getattr(error, "sqlstate", None):
                # Whatever it still waits for, nobody else should.
                connection.terminate()
            raise
        finally:
            if self._pool is not None:
                await self._pool.release(connection)

    async def _acquired(self) -> Any:
        if self._pool is None:
            self._pool = driver().create_pool(
                self._address.url,
                min_size=0,
                max_size=self._size,
                timeout=CONNECT_TIMEOUT,
                max_inactive_connection_lifetime=_IDLE,
                reset=_leave_as_it_is,
            )
            await self._pool
        try:
            async with asyncio.timeout(ANSWER_TIMEOUT) as waiting:
                return await self._pool.acquire()
        except TimeoutError:
            if waiting.expired():
                busy = f"all {self._size} connections were busy for {ANSWER_TIMEOUT:g} seconds"
                raise BusyError(busy) from None
            raise


def _pauses() -> Iterator[float]:
    first, longest = _PAUSES
    pause = first
    while True:
        # Those who failed together should not come back together.
        yield pause * random.uniform(0.5, 1)
        pause = min(pause * 2, longest)


async def _leave_as_it_is(connection: object) -> None:
    """Statements leave nothing behind in a connection, so it need not be cleaned."""
