"""Sessions as files: one log of JSON lines for each, shared with other processes and programs."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import ClassVar

from perdure.codec import encode_record
from perdure.entries import Entry, SessionRecord
from perdure.errors import StoreError
from perdure.stores.file_errors import explained
from perdure.stores.file_names import LOG_SUFFIX, log_file_name, session_id_of_log
from perdure.stores.lanes import Lanes
from perdure.stores.lines import new_record, storable_lines
from perdure.stores.log_cache import LogCache
from perdure.stores.log_writer import make_folder
from perdure.stores.session_log import SessionLog

CACHE_SIZE = 64 * 1024 * 1024
"""Bytes of lines whose entries a store keeps decoded, unless told otherwise."""

WRITING_THREADS = 64
"""Sessions that are appended to at the same moment; more of them take turns."""

READING_THREADS = 16
"""Sessions that are loaded at the same moment."""


class FileStore:
    """A store in a folder, `<root>/<session ID>.jsonl` for each session.

    - Any number of processes may use one folder. Appends to a log exclude each other by a lock on
      the file; writers that do not take it, such as other programs, are not held up by it.
    - An append is on disk when it returns. A load sees whole appends only, and only what is on
      disk: it waits for the append that is being written to the same log, for no other.
    - A torn last line, left by a crash or a power cut, is not loaded; the logger `perdure.stores`
      says so once. The next append moves it to `<log>.torn-<n>`. Other damage is an error.
    - Decoded entries are kept in memory, `cache_size` bytes of lines over all logs, so that
      loading again reads only what was appended since, by whichever process.
    - No session ID leads to a file outside the folder; links in the folder are not followed.
    - Files are made with mode 0644 and the folder with 0755, less the umask. A process that dies
      while it creates a session may leave a file `.new-…`, which can be deleted.

    Raises:
        StoreError: `root` is something else than a folder.
    """

    loads_what_is_new: ClassVar[bool] = True

    def __init__(self, root: str | os.PathLike[str], *, cache_size: int = CACHE_SIZE) -> None:
        # Absolute, because the working directory may change and the store must not move with it.
        self.root = Path(os.path.abspath(root))
        if self.root.exists() and not self.root.is_dir():
            raise StoreError(f"{self.root} is not a folder; name a folder for the store")
        self._folder = os.fsencode(self.root)
        self._folder_is_durable = False
        self._cache = LogCache(cache_size)
        self._writers = Lanes(WRITING_THREADS, "perdure-append")
        self._readers = Lanes(READING_THREADS, "perdure-load")

    def __repr__(self) -> str:
        return f"FileStore({str(self.root)!r})"

    async def create_session(self, session_id: str, parent_id: str = "") -> None:
        """See `Store.create_session`. A file without a complete first line is no session."""
        await self.restore_session(new_record(session_id, parent_id))

    async def restore_session(self, record: SessionRecord) -> None:
        """Register a session with the record that it had in another store.

        Raises:
            SessionExistsError: the ID is taken. Nothing changed.
        """
        log = self._log(record.id)
        line = encode_record(record) + b"\n"
        await self._writers.run(log.path, partial(self._create, log, line))

    async def load_session(self, session_id: str) -> SessionRecord:
        """Return the session's record.

        Raises:
            SessionNotFoundError: nobody created the session.
            DamagedLogError: the first line is not the record of this session.
        """
        log = self._log(session_id)
        return await self._readers.run(log.path, log.load_record)

    async def load_entries(self, session_id: str) -> list[Entry]:
        """See `Store.load_entries`.

        Raises:
            DamagedLogError: a line is damaged, other than by a crash while it was written.
        """
        log = self._log(session_id)
        return await self._readers.run(log.path, log.load)

    async def append_entries(self, session_id: str, entries: Sequence[Entry]) -> None:
        """See `Store.append_entries`.

        Raises:
            DamagedLogError: a line of the log is damaged; nothing was added.
            StoreError: it could not be written; nothing was added.
        """
        log = self._log(session_id)
        await self._writers.run(log.path, partial(_append, log, tuple(entries)))

    async def list_sessions(self, *, prefix: str = "") -> list[str]:
        """Return the IDs of the sessions that start so, in order.

        They are read from the names in the folder; no log is opened. One that is being created at
        this moment, or is damaged, is among them.

        Raises:
            StoreError: the folder cannot be read.
        """
        return await self._readers.run(self._folder, partial(self._list, prefix))

    def _list(self, prefix: str) -> list[str]:
        suffix = LOG_SUFFIX.encode()
        with explained("", self._folder, creating=True):
            try:
                with os.scandir(self._folder) as files:
                    names = [
                        file.name.decode(errors="surrogateescape")
                        for file in files
                        if file.name.endswith(suffix) and file.is_file(follow_symlinks=False)
                    ]
            except FileNotFoundError:
                return []  # The first session makes the folder.
        session_ids = [session_id for name in names if (session_id := session_id_of_log(name))]
        return sorted(known for known in session_ids if known.startswith(prefix))

    def _log(self, session_id: str) -> SessionLog:
        # Bytes, so that a name does not depend on the locale of the process.
        name = log_file_name(session_id).encode()
        return SessionLog(session_id, os.path.join(self._folder, name), self._cache)

    def _create(self, log: SessionLog, record_line: bytes) -> None:
        with explained(log.session_id, self._folder, creating=True):
            if not self._folder_is_durable or not os.path.isdir(self._folder):
                make_folder(self._folder)
                self._folder_is_durable = True
        log.create(record_line)


def _append(log: SessionLog, entries: Sequence[Entry]) -> None:
    log.append(storable_lines(entries))
