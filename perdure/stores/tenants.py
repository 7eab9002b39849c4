"""One tenant's part of a store that several share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from perdure.entries import Entry, SessionRecord
from perdure.errors import (
    InvalidSessionIdError,
    SessionExistsError,
    SessionNotFoundError,
    TenantError,
)
from perdure.session_id import check_session_id
from perdure.stores.contract import Store
from perdure.stores.extensions import LoadPath, RestoreSession, below, extension
from perdure.tenant import check_tenant


class TenantStore:
    """The sessions of one tenant: `acme`'s session `x` is the session `acme:x` of the store below.

    Records and errors name sessions as the tenant does.
    """

    def __init__(self, store: Store, tenant: str) -> None:
        """Raises TenantError when the tenant's name is none."""
        self.store = store
        self.tenant = check_tenant(tenant)
        self._prefix = f"{tenant}:"

    def __repr__(self) -> str:
        return f"TenantStore({self.store!r}, {self.tenant!r})"

    async def create_session(self, session_id: str, parent_id: str = "") -> None:
        """See `Store.create_session`."""
        with self._own_names(session_id):
            await self.store.create_session(
                self._key(session_id), self._key(parent_id) if parent_id else ""
            )

    async def load_entries(self, session_id: str) -> list[Entry]:
        """See `Store.load_entries`."""
        with self._own_names(session_id):
            return await self.store.load_entries(self._key(session_id))

    async def append_entries(self, session_id: str, entries: Sequence[Entry]) -> None:
        """See `Store.append_entries`."""
        with self._own_names(session_id):
            await self.store.append_entries(self._key(session_id), entries)

    @property
    def load_path(self) -> LoadPath:
        """See `LoadsPaths.load_path`; missing when the store below loads no paths."""
        return partial(self._load_path, below(self, self.store, "load_path"))

    async def _load_path(
        self,
        load: LoadPath,
        session_id: str,
        leaf_id: str | None = None,
        *,
        limit: int | None = None,
    ) -> list[Entry]:
        with self._own_names(session_id):
            return await load(self._key(session_id), leaf_id, limit=limit)

    @property
    def restore_session(self) -> RestoreSession:
        """Register a session with the record that it had in another store; missing when the store
        below cannot do that.
        """
        return partial(self._restore, below(self, self.store, "restore_session"))

    async def _restore(self, restore: RestoreSession, record: SessionRecord) -> None:
        names = {
            "id": self._key(record.id),
            "parent_id": self._key(record.parent_id) if record.parent_id else "",
        }
        with self._own_names(record.id):
            await restore(record.model_copy(update=names))

    async def load_session(self, session_id: str) -> SessionRecord:
        """Return the session's record. Raises SessionNotFoundError, or StoreError when the store
        below cannot tell.
        """
        load: Any = extension(self.store, "load_session", "load records")
        with self._own_names(session_id):
            record: SessionRecord = await load(self._key(session_id))
        names = {
            "id": record.id.removeprefix(self._prefix),
            "parent_id": record.parent_id.removeprefix(self._prefix),
        }
        return record.model_copy(update=names)

    async def list_sessions(self, *, prefix: str = "") -> list[str]:
        """Return the IDs of the tenant's sessions that start so. Raises StoreError when the store
        below cannot tell.
        """
        listing: Any = extension(self.store, "list_sessions", "list its sessions")
        keys: list[str] = await listing(prefix=self._prefix + prefix)
        return [key.removeprefix(self._prefix) for key in keys]

    def _key(self, session_id: str) -> str:
        return self._prefix + check_session_id(session_id)

    @contextmanager
    def _own_names(self, session_id: str) -> Iterator[None]:
        """Errors of the store below in the tenant's words."""
        try:
            yield
        except SessionExistsError:
            raise SessionExistsError(session_id) from None
        except SessionNotFoundError:
            raise SessionNotFoundError(session_id) from None
        except InvalidSessionIdError as error:
            if error.session_id == session_id:
                raise
            raise InvalidSessionIdError(
                session_id, "is too long, with the tenant before it; choose a shorter one"
            ) from None


def in_tenant(store: Store, tenant: str) -> Store:
    """The tenant's part of the store; all of it when the name is empty.

    Raises TenantError when the store is another tenant's part already.
    """
    if not tenant:
        return store
    if isinstance(store, TenantStore):
        if store.tenant != tenant:
            raise TenantError(f"the store is that of tenant {store.tenant!r}, not {tenant!r}'s")
        return store
    return TenantStore(store, tenant)
