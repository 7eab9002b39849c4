"""Entries as the lines that a store keeps, checked before anything is written."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

from perdure.codec import decode_entry, encode_entry
from perdure.entries import Entry, MessageEntry, SessionRecord
from perdure.errors import EntryEncodeError
from perdure.session_id import check_session_id
from perdure.timestamps import Timestamp


@dataclass(frozen=True, slots=True)
class Line:
    """An entry on its way into a log."""

    data: bytes
    """One JSON object in UTF-8, without line breaks and without a line end."""
    entry: Entry
    """What a reader makes of `data`; it shares nothing with the entry that was given."""


def storable_lines(entries: Iterable[Entry]) -> dict[str, Line]:
    """Return a line for each entry, by its ID and in the order given.

    Every entry is looked at before this returns, so that a store which writes only afterwards
    writes all of a call or nothing. Of two entries with one ID the first stands. Stores of your own
    may use it.

    Raises:
        EntryEncodeError: an entry has no ID, is ephemeral, or its line would not load again.
    """
    lines: dict[str, Line] = {}
    for entry in entries:
        if not entry.id:
            raise EntryEncodeError(
                "an entry without an ID cannot be stored; give it one: entry.with_header(id=…)"
            )
        if isinstance(entry, MessageEntry) and entry.ephemeral:
            raise EntryEncodeError(
                f"entry {entry.id!r} is ephemeral, and such are never stored; pass it to a run"
            )
        if entry.id not in lines:
            data = encode_entry(entry)
            lines[entry.id] = Line(data, decode_entry(data))
    return lines


def new_record(session_id: str, parent_id: str) -> SessionRecord:
    """Return the record of a session that comes into being now.

    Raises:
        InvalidSessionIdError: either ID cannot name a session.
    """
    check_session_id(session_id)
    if parent_id:
        check_session_id(parent_id)
    now = Timestamp.of(datetime.now(UTC))
    return SessionRecord(id=session_id, parent_id=parent_id, created_at=now)
