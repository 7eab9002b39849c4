"""The log of one session on disk: created once, read, added to. Everything here blocks."""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass

from perdure.entries import Entry, SessionRecord
from perdure.errors import SessionExistsError, SessionNotFoundError
from perdure.stores import log_writer
from perdure.stores.file_errors import explained
from perdure.stores.lines import Line
from perdure.stores.log_cache import KnownLog, LogCache, Mark
from perdure.stores.log_file import LogPiece, LogReader, NoRecordError, Tail

logger = logging.getLogger("perdure.stores")


@dataclass(frozen=True, slots=True)
class SessionLog:
    """One log by its place. `cache` is shared by all logs of a store."""

    session_id: str
    path: bytes
    cache: LogCache

    def create(self, record_line: bytes) -> None:
        """Bring the session into being, with its record as the first line.

        Raises:
            SessionExistsError: the file holds a complete first line.
            DamagedLogError: it does, but that is not the record of this session.
            StoreError: it could not be written.
        """
        with explained(self.session_id, self.path, creating=True):
            while True:
                try:
                    log_writer.publish(self.path, record_line)
                except FileExistsError:
                    with contextlib.suppress(FileNotFoundError):  # deleted again meanwhile
                        self._claim(record_line)
                        return
                else:
                    return

    def load_record(self) -> SessionRecord:
        """Return the first line."""
        with (
            explained(self.session_id, self.path),
            log_writer.open_for_reading(self.path) as descriptor,
        ):
            return self._record(descriptor, log_writer.settled_status(descriptor))

    def load(self) -> list[Entry]:
        """Return the entries of all whole lines; of those with one ID the first stands."""
        with explained(self.session_id, self.path):
            known = self.cache.get(self.path)
            if known and (entries := known.copy_entries(os.lstat(self.path))) is not None:
                return entries
            with log_writer.open_for_reading(self.path) as descriptor:
                known, tail, entries = self._catch_up(descriptor, for_reading=True)
        if tail.entry is not None and tail.entry.id not in known:
            entries.append(tail.entry)
        return entries

    def append(self, lines: Mapping[str, Line]) -> None:
        """Add the lines whose IDs the log does not hold, in one write, and flush."""
        with (
            explained(self.session_id, self.path),
            log_writer.open_for_writing(self.path) as descriptor,
        ):
            known, tail, _ = self._catch_up(descriptor, for_reading=False)
            present = tail.entry.id if tail.entry else ""
            missing = [line for key, line in lines.items() if key != present and key not in known]
            self._write(descriptor, known, tail, missing)
            if not known.name_is_durable:
                # Whoever created the session may not have come so far as to flush its name.
                log_writer.flush_folder(os.path.dirname(self.path))
                known.name_is_durable = True

    def _write(self, descriptor: int, known: KnownLog, tail: Tail, missing: list[Line]) -> None:
        start = known.mark
        if tail.is_torn:
            self._set_aside(descriptor, tail.data, start.end)
        line_end = b"\n" if tail.data and not tail.is_torn else b""
        data = line_end + b"".join([line.data + b"\n" for line in missing])
        # Also without anything to add: what is there may not have been flushed by who wrote it.
        log_writer.write_or_undo(descriptor, data)
        if start.end == 0:
            return  # The record had no line end: the next reader starts from the top.
        status = os.fstat(descriptor)
        piece = LogPiece(
            end=status.st_size,
            line_count=start.line_count + len(line_end) + len(missing),
            entries=[tail.entry] if tail.entry else [],
        )
        piece.entries += [line.entry for line in missing]
        known.extend(start, piece, Mark.of(descriptor, status, piece))
        self.cache.put(self.path, known)

    def _catch_up(
        self, descriptor: int, *, for_reading: bool
    ) -> tuple[KnownLog, Tail, list[Entry]]:
        """Read what was appended since the log was last read; all of it if that is not known.

        Returns what is known then, what follows it, and for reading the entries as well.
        """
        reader = self._reader(descriptor)
        while True:
            known = self.cache.get(self.path)
            if known is None or (for_reading and not known.has_entries):
                known = KnownLog()
            start = known.mark
            settled = log_writer.settled_status if for_reading else os.fstat
            status = settled(descriptor)
            if not start.fits(descriptor, status):
                known = KnownLog()
                start = known.mark
            try:
                piece = reader.read(start.end, start.line_count, status.st_size)
            except NoRecordError:
                raise SessionNotFoundError(self.session_id) from None
            repeated = known.extend(start, piece, Mark.of(descriptor, status, piece))
            if repeated is None:
                continue  # Another thread was quicker; what it knows is in the cache.
            # Before it is put in the cache, which may have no room for them.
            entries = known.copy_entries() if for_reading else []
            if entries is None:
                continue  # They had to make room for another log just now.
            self._report(known, piece, repeated)
            if piece.end:
                self.cache.put(self.path, known)
            return known, piece.tail, entries

    def _report(self, known: KnownLog, piece: LogPiece, repeated: int) -> None:
        name = os.fsdecode(self.path)
        if repeated:
            logger.warning(
                "%s: lines that repeat an earlier ID and are not loaded: %d", name, repeated
            )
        found = (piece.end, len(piece.tail.data))
        if piece.tail.is_torn and known.reported_tail != found:
            known.reported_tail = found
            logger.warning(
                "%s: the last line is torn; its %d bytes from byte %d on are not loaded,"
                " and are moved aside by the next append",
                name,
                found[1],
                found[0],
            )

    def _claim(self, record_line: bytes) -> None:
        """Create the session in a file that is there, unless it is one already."""
        with log_writer.open_for_writing(self.path) as descriptor:
            status = os.fstat(descriptor)
            try:
                self._record(descriptor, status)
            except SessionNotFoundError:
                pass
            else:
                raise SessionExistsError(self.session_id)
            piece = os.pread(descriptor, status.st_size, 0)
            if piece:
                self._set_aside(descriptor, piece, 0)
            log_writer.write_or_undo(descriptor, record_line)
            log_writer.flush_folder(os.path.dirname(self.path))

    def _record(self, descriptor: int, status: os.stat_result) -> SessionRecord:
        try:
            return self._reader(descriptor).read_record(status.st_size)
        except NoRecordError:
            raise SessionNotFoundError(self.session_id) from None

    def _set_aside(self, descriptor: int, piece: bytes, end: int) -> None:
        kept = log_writer.set_aside(self.path, piece)
        log_writer.cut(descriptor, end)
        logger.warning(
            "%s: moved a torn piece of %d bytes to %s",
            os.fsdecode(self.path),
            len(piece),
            os.fsdecode(kept),
        )

    def _reader(self, descriptor: int) -> LogReader:
        return LogReader(descriptor, os.fsdecode(self.path), self.session_id)
