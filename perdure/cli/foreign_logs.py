"""Session logs of other programs, on their way to entries.

Their lines are nodes of a tree, as ours are, but some of them mean nothing here. Those are left
out, and what hangs from them hangs from what they hang from.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from perdure.codec import entry_from_json
from perdure.entries import Entry
from perdure.errors import EntryDecodeError, PerdureError

Json = dict[str, Any]


class ForeignLogError(PerdureError):
    """A file that is no session log that can be imported."""


@dataclass(slots=True)
class Imported:
    """What was made of a log. `session_id` is its own name for the session, `left_out` counts the
    lines that mean nothing here, by their type.
    """

    session_id: str = ""
    entries: list[Entry] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)


class Growth:
    """Entries in the making, in the order of their lines, and where what comes next hangs from."""

    def __init__(self) -> None:
        self._wires: list[Json] = []
        self._lines: list[int] = []
        self._places: dict[str, str] = {}

    def place_of(self, foreign_id: str | None) -> str:
        """The ID of the entry that stands for a line of theirs; empty for the root."""
        return self._places.get(foreign_id or "", "")

    def put(self, foreign_id: str, entry_id: str) -> None:
        """From now on what hangs from that line hangs from this entry."""
        if foreign_id:
            self._places[foreign_id] = entry_id

    def add(self, line: int, entry_id: str, parent_id: str, created_at: str, wire: Json) -> Json:
        """Append an entry; the answer may be changed until the end."""
        header = {"id": entry_id, "parent_id": parent_id, "created_at": created_at}
        wire = {**wire, **header}
        if not parent_id:
            del wire["parent_id"]
        self._wires.append(wire)
        self._lines.append(line)
        self.put(entry_id, entry_id)
        return wire

    def entries(self) -> list[Entry]:
        """The entries. Raises ForeignLogError for a line that cannot be one."""
        made: list[Entry] = []
        for line, wire in zip(self._lines, self._wires, strict=True):
            try:
                made.append(entry_from_json(wire))
            except EntryDecodeError as error:
                raise ForeignLogError(f"line {line} cannot be imported: {error}") from None
        return made


def message(role: str, content: list[Json], **fields: Any) -> Json:
    """The wire form of a message entry, without its header and without what is empty."""
    given = {name: value for name, value in fields.items() if value}
    return {"type": "message", "message": {"role": role, "content": content or None, **given}}


def text_block(text: str) -> Json:
    """A block of text."""
    return {"type": "text", "text": text} if text else {"type": "text"}


def text_of(content: Any) -> str:
    """The text of content that is a text or a list of blocks."""
    if isinstance(content, str):
        return content
    blocks = content if isinstance(content, list) else []
    return "".join(str(block.get("text") or "") for block in blocks if isinstance(block, dict))


def usage(**counts: Any) -> Json:
    """Counts of tokens, without those that are none."""
    return {
        name: value
        for name, value in counts.items()
        if isinstance(value, int) and not isinstance(value, bool) and value > 0
    }
