"""Logs as files, for tests that look at them from the outside."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from perdure.codec import encode_entry
from perdure.entries import Entry, MessageEntry, text

FIXTURES = Path(__file__).parent.parent / "fixtures"

HEADER = b'{"type":"session_init","id":"s","created_at":"2026-11-29T12:07:45.230406452Z"}'
"""The first line of the session `s`, without its line end."""


def note(entry_id: str, content: str = "") -> MessageEntry:
    """A short message of a user."""
    return text(content or f"this is {entry_id}").with_header(id=entry_id)


def notes(*entry_ids: str) -> list[MessageEntry]:
    """A short message for each ID."""
    return [note(entry_id) for entry_id in entry_ids]


def log_of(entries: Sequence[Entry], header: bytes = HEADER) -> bytes:
    """A whole log of the session `s`."""
    return b"".join(line + b"\n" for line in [header, *map(encode_entry, entries)])


def write_log(root: Path, data: bytes, name: str = "s.jsonl") -> Path:
    """A log as some program left it."""
    root.mkdir(exist_ok=True)
    path = root / name
    path.write_bytes(data)
    return path


def ids(entries: Sequence[Entry]) -> list[str]:
    """The IDs alone, in order."""
    return [entry.id for entry in entries]
