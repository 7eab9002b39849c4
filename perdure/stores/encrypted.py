"""A store whose entries are encrypted on their way into another.

The log below holds custom entries of the kind `perdure.encrypted`. Their header is that of the
entry inside, and `entry_type` its type, so that the tree can be seen without keys; all else is in
`sealed`. To programs that do not know the kind they are valid entries, kept and passed on, and
shown to no model.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any, Final

from perdure.codec import decode_entry, dumps_json
from perdure.encryption.keys import FILE_VARIABLE, VARIABLE, Keys
from perdure.entries import CustomEntry, Entry, SessionRecord
from perdure.errors import EncryptionError, EntryDecodeError
from perdure.stores.contract import Store
from perdure.stores.extensions import LoadPath, RestoreSession, below, extension
from perdure.stores.lines import Line, storable_lines

KIND: Final = "perdure.encrypted"
"""The kind of the entries that hold encrypted ones."""

CACHE_SIZE = 64 * 1024 * 1024
"""Bytes of lines that a store keeps decrypted, unless told otherwise."""

_MANY = 200
"""Entries that are decrypted beside the event loop and not on it."""


class EncryptedStore:
    """Keeps entries in another store, encrypted under the current of the keys.

    Readable without keys: the sessions' records, and of each entry its ID, its parent's, when it
    was created and its type. What is in a log unencrypted is read as it is, so encryption can be
    turned on for sessions that are there. An entry is sealed to its place: in another session, or
    under another header, it cannot be decrypted.

    Decrypted entries are kept in memory, `cache_size` bytes of lines over all logs.
    """

    def __init__(self, store: Store, keys: Keys, *, cache_size: int = CACHE_SIZE) -> None:
        self.store = store
        self.keys = keys
        self._cache_size = cache_size
        self._opened: OrderedDict[str, _OpenedLog] = OrderedDict()
        self._size = 0

    def __repr__(self) -> str:
        return f"EncryptedStore({self.store!r}, {self.keys!r})"

    async def create_session(self, session_id: str, parent_id: str = "") -> None:
        """See `Store.create_session`."""
        await self.store.create_session(session_id, parent_id)

    async def load_entries(self, session_id: str) -> list[Entry]:
        """See `Store.load_entries`.

        Raises:
            EncryptionError: a key is missing, is another one, or the log was tampered with.
        """
        kept = await self.store.load_entries(session_id)
        log = self._opened.get(session_id)
        if log is None or not log.begins(kept):
            log = _OpenedLog([], b"")
        new = kept[len(log.entries) :]
        if new:
            plain = await self._plain_entries(session_id, new)
            log = _OpenedLog([*log.entries, *plain], kept[-1].source_line or b"")
        self._keep(session_id, log)
        return list(log.entries)

    async def append_entries(self, session_id: str, entries: Sequence[Entry]) -> None:
        """See `Store.append_entries`."""
        lines = storable_lines(entries)
        await self.store.append_entries(
            session_id, [self._sealed(session_id, line) for line in lines.values()]
        )

    @property
    def load_path(self) -> LoadPath:
        """See `LoadsPaths.load_path`; missing when the store below loads no paths.

        Nothing of it is kept in memory here.
        """
        return partial(self._load_path, below(self, self.store, "load_path"))

    async def _load_path(
        self,
        load: LoadPath,
        session_id: str,
        leaf_id: str | None = None,
        *,
        limit: int | None = None,
    ) -> list[Entry]:
        kept = await load(session_id, leaf_id, limit=limit)
        return await self._plain_entries(session_id, kept)

    @property
    def restore_session(self) -> RestoreSession:
        """Register a session with the record that it had in another store; missing when the store
        below cannot do that.
        """
        restore: RestoreSession = below(self, self.store, "restore_session")
        return restore

    async def load_session(self, session_id: str) -> SessionRecord:
        """Return the session's record. Raises SessionNotFoundError, or StoreError when the store
        below cannot tell.
        """
        load: Any = extension(self.store, "load_session", "load records")
        record: SessionRecord = await load(session_id)
        return record

    async def list_sessions(self, *, prefix: str = "") -> list[str]:
        """Return the IDs of the sessions that start so. Raises StoreError when the store below
        cannot tell.
        """
        listing: Any = extension(self.store, "list_sessions", "list its sessions")
        session_ids: list[str] = await listing(prefix=prefix)
        return session_ids

    def _sealed(self, session_id: str, line: Line) -> Entry:
        header = {
            "type": "custom",
            "kind": KIND,
            "id": line.entry.id,
            "parent_id": line.entry.parent_id,
            "created_at": line.entry.created_at,
            "entry_type": line.entry.type,
            "key_id": self.keys.current,
        }
        bare = CustomEntry.model_validate(header)
        sealed = self.keys.seal(line.data, _place(session_id, bare))
        return CustomEntry.model_validate(header | {"sealed": base64.b64encode(sealed).decode()})

    async def _plain_entries(self, session_id: str, entries: Sequence[Entry]) -> list[Entry]:
        if len(entries) < _MANY:
            return [self._plain(session_id, entry) for entry in entries]
        # A long log takes a second or two, in which others would have to wait.
        return await asyncio.to_thread(
            lambda: [self._plain(session_id, entry) for entry in entries]
        )

    def _plain(self, session_id: str, entry: Entry) -> Entry:
        if not is_sealed(entry):
            return entry
        fields: dict[str, Any] = entry.model_extra or {}
        key_id, sealed = fields.get("key_id"), fields.get("sealed")
        try:
            data = base64.b64decode(str(sealed), validate=True)
        except (binascii.Error, ValueError):
            data = b""
        line = self.keys.open(str(key_id), data, _place(session_id, entry))
        try:
            return decode_entry(line)
        except EntryDecodeError as error:
            raise EncryptionError(
                f"entry {entry.id!r} holds no entry: {error}", key_id=str(key_id)
            ) from None

    def _keep(self, session_id: str, log: _OpenedLog) -> None:
        before = self._opened.pop(session_id, None)
        self._size += log.size - (before.size if before is not None else 0)
        self._opened[session_id] = log
        while self._size > self._cache_size and len(self._opened) > 1:
            _, dropped = self._opened.popitem(last=False)
            self._size -= dropped.size


class _OpenedLog:
    """The beginning of a log, decrypted. Logs only grow, so it does not become wrong."""

    def __init__(self, entries: list[Entry], last_line: bytes) -> None:
        self.entries = entries
        self.size = sum(len(entry.source_line or b"") for entry in entries)
        self._last_line = last_line

    def begins(self, kept: Sequence[Entry]) -> bool:
        """Whether the log that is kept so begins with what is here."""
        count = len(self.entries)
        if not 0 < count <= len(kept):
            return False
        # As many entries before it, and the same one: a nonce makes each line the only one of its
        # kind.
        return bool(self._last_line) and kept[count - 1].source_line == self._last_line


def is_sealed(entry: Entry) -> bool:
    """Whether the entry holds an encrypted one."""
    return isinstance(entry, CustomEntry) and entry.kind == KIND


def check_readable(session_id: str, entries: Iterable[Entry]) -> None:
    """Raise EncryptionError when one of the entries is encrypted still: whoever reads the log would
    take it for one that says nothing.
    """
    for entry in entries:
        if is_sealed(entry):
            key_id = str((entry.model_extra or {}).get("key_id", ""))
            raise EncryptionError(
                f"session {session_id!r} is kept encrypted, under key {key_id[:64]!r}, and this "
                "store does not decrypt it: name the store as encrypted:…, or wrap it in "
                f"EncryptedStore, with that key in {VARIABLE} or {FILE_VARIABLE}",
                key_id=key_id,
            )


def _place(session_id: str, entry: Entry) -> bytes:
    """What an entry is sealed to."""
    entry_type = (entry.model_extra or {}).get("entry_type")
    place = [session_id, entry.id, entry.parent_id, str(entry.created_at), entry_type]
    return b"perdure entry\0" + dumps_json(place)
