"""A store whose calls are measured, and are spans of whatever they are part of."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial

from opentelemetry.trace import get_current_span

from perdure.entries import Entry
from perdure.stores.contract import Store
from perdure.stores.extensions import LoadPath, below, loads_what_is_new
from perdure.telemetry.conventions import CONVERSATION, ENTRIES, Attributes
from perdure.telemetry.setup import Telemetry


class MeasuredStore:
    """The store, and how long it takes."""

    def __init__(self, store: Store, telemetry: Telemetry) -> None:
        self._store = store
        self._spans = telemetry.spans
        self._metrics = telemetry.metrics

    def __repr__(self) -> str:
        return repr(self._store)

    @property
    def loads_what_is_new(self) -> bool:
        """See `extensions`."""
        return loads_what_is_new(self._store)

    async def create_session(self, session_id: str, parent_id: str = "") -> None:
        """See `Store`."""
        with self._measured("create_session", {CONVERSATION: session_id}):
            await self._store.create_session(session_id, parent_id)

    async def load_entries(self, session_id: str) -> list[Entry]:
        """See `Store`."""
        with self._measured("load_entries", {CONVERSATION: session_id}):
            return await self._store.load_entries(session_id)

    async def append_entries(self, session_id: str, entries: Sequence[Entry]) -> None:
        """See `Store`."""
        about = {CONVERSATION: session_id, ENTRIES: len(entries)}
        with self._measured("append_entries", about):
            await self._store.append_entries(session_id, entries)

    @property
    def load_path(self) -> LoadPath:
        """See `LoadsPaths.load_path`; missing when the store loads no paths."""
        return partial(self._load_path, below(self, self._store, "load_path"))

    async def _load_path(
        self,
        load: LoadPath,
        session_id: str,
        leaf_id: str | None = None,
        *,
        limit: int | None = None,
    ) -> list[Entry]:
        with self._measured("load_path", {CONVERSATION: session_id}):
            return await load(session_id, leaf_id, limit=limit)

    @contextmanager
    def _measured(self, operation: str, about: Attributes) -> Iterator[None]:
        began, error = time.monotonic(), ""
        try:
            if get_current_span().get_span_context().is_valid:
                with self._spans.span(operation, about):
                    yield
            else:  # nobody traces what it is part of
                yield
        except BaseException as failure:
            error = type(failure).__name__
            raise
        finally:
            self._metrics.store_called(time.monotonic() - began, operation, error)
