"""What commands read from a store. Nothing here needs a server."""

from __future__ import annotations

import asyncio
from typing import Any

from perdure.cli.place import Where
from perdure.entries import Entry, SessionRecord
from perdure.errors import CommandError, StoreError
from perdure.stores import in_tenant, open_store
from perdure.stores.contract import Store
from perdure.transcript import Transcript

SHORTEST_ID = 6
"""Characters of an entry's ID that are shown at least, and taken as its beginning."""


def opened(where: Where) -> Store:
    """The store that a command line names; of one with tenants, the tenant's part. Raises
    StoreError, EncryptionError, TenantError.
    """
    return in_tenant(open_store(where.store_spec), where.tenant_name)


def load(where: Where, session_id: str) -> tuple[SessionRecord, Transcript]:
    """A stored session.

    Raises SessionNotFoundError, DamagedLogError when the log cannot be read, StoreError.
    """
    return asyncio.run(load_from(opened(where), session_id))


async def load_from(store: Store, session_id: str) -> tuple[SessionRecord, Transcript]:
    """A session of that store; raises as `load` does."""
    entries = await store.load_entries(session_id)
    return await record_of(store, session_id), Transcript(entries)


async def record_of(store: Store, session_id: str) -> SessionRecord:
    """The session's record, as far as the store can tell it."""
    load_session: Any = getattr(store, "load_session", None)
    if load_session is None:
        return SessionRecord(id=session_id)
    record: SessionRecord = await load_session(session_id)
    return record


def session_ids(where: Where, *, prefix: str = "") -> list[str]:
    """The IDs of the sessions in a store. Raises StoreError when it cannot list them."""
    return asyncio.run(list_sessions(opened(where), prefix=prefix))


async def list_sessions(store: Store, *, prefix: str = "") -> list[str]:
    """The IDs of the sessions in that store. Raises StoreError when it cannot list them."""
    listing: Any = getattr(store, "list_sessions", None)
    if listing is None:
        raise StoreError(f"{store!r} cannot list its sessions; name them")
    found: list[str] = await listing(prefix=prefix)
    return found


def entry_id(transcript: Transcript, given: str) -> str:
    """The ID that begins so, if it is the only one.

    Raises CommandError when several do. One that none begins with is given back as it is.
    """
    if given in transcript or len(given) < SHORTEST_ID:
        return given
    found = [entry.id for entry in transcript.entries if entry.id.startswith(given)]
    if len(set(found)) > 1:
        raise CommandError(f"{len(set(found))} entries begin with {given!r}; type more of its ID")
    return found[0] if found else given


def id_length(entries: list[Entry]) -> int:
    """How many characters tell the IDs of the entries apart."""
    ids = {entry.id for entry in entries}
    for length in range(SHORTEST_ID, 17):
        if len({entry_id[:length] for entry_id in ids}) == len(ids):
            return length
    return max(map(len, ids), default=0)
