"""Where sessions are kept: the contract of a store, and the stores that come with perdure."""

from __future__ import annotations

import os

from perdure.encryption.keys import FILE_VARIABLE, VARIABLE, Keys
from perdure.errors import EncryptionError, StoreError
from perdure.stores.contract import Store
from perdure.stores.encrypted import EncryptedStore
from perdure.stores.files import FileStore
from perdure.stores.memory import MemoryStore
from perdure.stores.postgres import PostgresStore
from perdure.stores.tenants import TenantStore, in_tenant

__all__ = [
    "DEFAULT_STORE",
    "EncryptedStore",
    "FileStore",
    "MemoryStore",
    "PostgresStore",
    "Store",
    "TenantStore",
    "given_store",
    "in_tenant",
    "open_store",
]

DEFAULT_STORE = "files:./sessions"
"""Where the command line keeps sessions, unless it is told otherwise."""

_ACCEPTED = "name a store as files:DIR, postgresql://… or memory:"


def open_store(
    spec: str, *, keys: Keys | None = None
) -> FileStore | MemoryStore | PostgresStore | EncryptedStore:
    """Return the store that a text names: `files:DIR`, the URL of a PostgreSQL database, or
    `memory:` for a fresh one.

    A leading `~` of the folder is the home folder. `PostgresStore` says what the URL may ask for.
    With `encrypted:` before it, entries are encrypted under `keys`, or those of the environment
    (PERDURE_KEYS, PERDURE_KEYS_FILE).

    A memory store lives in one process: two that are opened share nothing, and a worker elsewhere
    does not see it.

    Raises:
        StoreError: the text names no store, or one that cannot be opened.
        EncryptionError: it is to be encrypted, and there are no keys.
    """
    kind, _, place = spec.partition(":")
    if kind == "encrypted":
        keys = keys or Keys.from_environment()
        if keys is None:
            raise EncryptionError(
                f"an encrypted store needs keys; set {VARIABLE} or {FILE_VARIABLE}"
            )
        return EncryptedStore(open_store(place), keys)
    if kind == "files" and place:
        # No shell has seen what comes from a file of settings.
        return FileStore(os.path.expanduser(place))
    if spec == "memory:":
        return MemoryStore()
    if kind in ("postgresql", "postgres"):
        return PostgresStore(spec)
    if kind == "files":
        raise StoreError(f"{spec!r} names no folder; write files:DIR, for example {DEFAULT_STORE}")
    # Only its kind is repeated: what follows may be a password.
    raise StoreError(f"{kind!r} is no kind of store; {_ACCEPTED}")


def given_store(store: Store | str, *, keys: Keys | None = None) -> Store:
    """Return the store as it is, or the one that a text names.

    Raises:
        StoreError: it is neither; or as `open_store` does.
        EncryptionError: as `open_store` does.
    """
    if isinstance(store, str):
        return open_store(store, keys=keys)
    given: object = store
    if not isinstance(given, Store) or isinstance(given, type):
        raise StoreError(
            f"{given!r} is no store: it needs create_session, load_entries and append_entries; "
            f"{_ACCEPTED}"
        )
    return store
