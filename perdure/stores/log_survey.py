"""Everything that is wrong with a log on disk. A load stops at the first damage, since nothing may
be guessed; whoever mends a log wants to see all of it.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

from perdure.codec import decode_entries
from perdure.entries import Entry, SessionRecord
from perdure.errors import DamagedLogError, EntryDecodeError, SessionNotFoundError
from perdure.stores import log_writer
from perdure.stores.file_errors import explained
from perdure.stores.log_file import (
    BLANK,
    BYTE_ORDER_MARK,
    LogReader,
    NoRecordError,
    Tail,
    is_whole,
)


@dataclass(slots=True)
class Survey:
    """A log, line by line.

    `numbers` are the lines of the `entries`, `damages` are lines that do not decode, each with the
    reason; both count from 1, which is the record's when nothing stands before it. `tail_start` is
    where the tail begins, in bytes.
    """

    path: str
    record: SessionRecord | None = None
    entries: list[Entry] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)
    damages: list[tuple[int, str]] = field(default_factory=list)
    blank_lines: int = 0
    tail: Tail = field(default_factory=Tail)
    tail_start: int = 0


def survey(path: Path, session_id: str) -> Survey:
    """Look at every line of a session's log.

    Raises:
        SessionNotFoundError: there is no such file, or it holds no complete first line.
        StoreError: it cannot be read.
    """
    place = os.fsencode(path)
    with explained(session_id, place), log_writer.open_for_reading(place) as descriptor:
        size = log_writer.settled_status(descriptor).st_size
        data = os.pread(descriptor, size, 0)
        while len(data) < size and (more := os.pread(descriptor, size - len(data), len(data))):
            data += more
        found = Survey(str(path))
        reader = LogReader(descriptor, found.path, session_id)
        try:
            found.record = reader.read_record(size)
        except NoRecordError:
            raise SessionNotFoundError(session_id) from None
        except DamagedLogError as error:
            found.damages.append((error.line, error.reason))
    _take_lines(found, data)
    return found


def _take_lines(found: Survey, data: bytes) -> None:
    lines = data.removeprefix(BYTE_ORDER_MARK).split(b"\n")
    rest = lines.pop()
    found.tail_start = len(data) - len(rest)
    texts: list[bytes] = []
    numbers: list[int] = []
    for number, line in enumerate(lines, 1):
        if line.strip(BLANK):
            texts.append(line)
            numbers.append(number)
        else:
            found.blank_lines += 1
    has_record_line = bool(texts)
    _decode(found, texts[1:], numbers[1:])
    if has_record_line and rest.strip(BLANK):
        _take_tail(found, rest, len(lines) + 1)


def _decode(found: Survey, texts: list[bytes], numbers: list[int]) -> None:
    start = 0
    while start < len(texts):
        end = len(texts)
        damage: EntryDecodeError | None = None
        try:
            entries = decode_entries(texts[start:])
        except EntryDecodeError as error:
            damage, end = error, start + error.index
            entries = decode_entries(texts[start:end])
        found.entries += entries
        found.numbers += numbers[start:end]
        if damage is not None:
            found.damages.append((numbers[end], str(damage)))
            end += 1
        start = end


def _take_tail(found: Survey, rest: bytes, number: int) -> None:
    try:
        entry = decode_entries([rest])[0]
    except EntryDecodeError as error:
        found.tail = Tail(rest, is_torn=not is_whole(rest))
        if not found.tail.is_torn:
            found.damages.append((number, str(error)))
        return
    found.tail = Tail(rest, entry=entry)
    found.entries.append(entry)
    found.numbers.append(number)
