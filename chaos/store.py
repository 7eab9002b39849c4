"""A store that fails: before the commit, after it, slowly, or because the disk is full."""

from __future__ import annotations

import asyncio
import errno
import os
import random
import signal
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from chaos.journal import Journal
from chaos.schedule import Kind
from chaos.weather import Forecast
from perdure.entries import Entry
from perdure.errors import StoreError
from perdure.stores import log_writer
from perdure.stores.contract import Store
from perdure.stores.extensions import loads_what_is_new


class FailingStore:
    """Another store, in the weather."""

    def __init__(self, store: Store, forecast: Forecast, journal: Journal) -> None:
        self._store = store
        self._forecast = forecast
        self._journal = journal
        self._chance = random.Random()
        self.loads_what_is_new = loads_what_is_new(store)

    async def create_session(self, session_id: str, parent_id: str = "") -> None:
        """See `Store`."""
        async with self._struck("create"):
            await self._store.create_session(session_id, parent_id)

    async def load_entries(self, session_id: str) -> list[Entry]:
        """See `Store`."""
        async with self._struck("load"):
            return await self._store.load_entries(session_id)

    async def append_entries(self, session_id: str, entries: Sequence[Entry]) -> None:
        """See `Store`."""
        async with self._struck("append"):
            await self._store.append_entries(session_id, entries)

    @asynccontextmanager
    async def _struck(self, call: str) -> AsyncIterator[None]:
        weather = self._forecast.now()
        if weather.store_seconds:
            self._journal.note("fault", fault=Kind.SLOW_STORE, call=call)
            await asyncio.sleep(self._chance.uniform(0, weather.store_seconds))
        if self._chance.random() < weather.store_error_before:
            self._journal.note("fault", fault=Kind.STORE_ERROR_BEFORE, call=call)
            raise StoreError("chaos: the store failed before the commit")
        yield
        if self._chance.random() < weather.store_error_after:
            self._journal.note("fault", fault=Kind.STORE_ERROR_AFTER, call=call)
            raise StoreError("chaos: the store failed after the commit")
        if weather.store_seconds:
            await asyncio.sleep(self._chance.uniform(0, weather.store_seconds))


def spoil_the_disk(forecast: Forecast, journal: Journal) -> None:
    """From now on this process's writes to logs may end half-way: with no space left, or with its
    death. The half is really written; what the file store does about it is its own.
    """
    chance = random.Random()
    write_all = log_writer._write_all

    def write_some(descriptor: int, data: bytes) -> None:
        is_full = bool(data) and chance.random() < forecast.now().full_disk
        dies = bool(data) and not is_full and forecast.takes_the_torn_append()
        if not is_full and not dies:
            write_all(descriptor, data)
            return
        os.write(descriptor, data[: chance.randrange(len(data))])
        journal.note("fault", fault=Kind.TORN_APPEND if dies else Kind.FULL_DISK)
        if dies:
            os.kill(os.getpid(), signal.SIGKILL)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    log_writer._write_all = write_some
