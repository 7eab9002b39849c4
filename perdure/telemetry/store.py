"""A store whose calls are measured."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from perdure.entries import Entry
from perdure.stores.contract import Store
from perdure.telemetry.metrics import Metrics


class MeasuredStore:
    """The store, and how long it takes."""

    def __init__(self, store: Store, metrics: Metrics) -> None:
        self._store = store
        self._metrics = metrics

    def __repr__(self) -> str:
        return repr(self._store)

    async def create_session(self, session_id: str, parent_id: str = "") -> None:
        """See `Store`."""
        with self._measured("create"):
            await self._store.create_session(session_id, parent_id)

    async def load_entries(self, session_id: str) -> list[Entry]:
        """See `Store`."""
        with self._measured("load"):
            return await self._store.load_entries(session_id)

    async def append_entries(self, session_id: str, entries: Sequence[Entry]) -> None:
        """See `Store`."""
        with self._measured("append"):
            await self._store.append_entries(session_id, entries)

    @contextmanager
    def _measured(self, operation: str) -> Iterator[None]:
        began, error = time.monotonic(), ""
        try:
            yield
        except BaseException as failure:
            error = type(failure).__name__
            raise
        finally:
            self._metrics.store_called(time.monotonic() - began, operation, error)
