"""What is left after a run: the logs, line by line, and everyone's journals."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from chaos.journal import Note, read_folder

Line = dict[str, Any]
"""A line of a log, as JSON. The checker reads logs by itself and not through the store, so that
it sees what the store would pass over.
"""


@dataclass(frozen=True)
class Log:
    """One session's log. `broken` are the lines that are no JSON."""

    session_id: str
    parent_id: str = ""
    lines: list[Line] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)

    @cached_property
    def places(self) -> dict[str, int]:
        """Where in the log each ID stands first."""
        places: dict[str, int] = {}
        for place, line in enumerate(self.lines):
            places.setdefault(str(line.get("id")), place)
        return places

    def get(self, entry_id: str) -> Line | None:
        """The entry of that ID."""
        place = self.places.get(entry_id)
        return None if place is None else self.lines[place]

    def path(self, leaf_id: str) -> list[Line]:
        """From the root to the leaf."""
        return list(self.upwards(leaf_id))[::-1]

    def upwards(self, leaf_id: str) -> Iterator[Line]:
        """From the leaf to the root."""
        line = self.get(leaf_id)
        for _ in self.lines:
            if line is None:
                return
            yield line
            line = self.get(parent_of(line))

    @cached_property
    def leaves(self) -> list[str]:
        """The ends of all branches."""
        parents = {parent_of(line) for line in self.lines}
        return [entry_id for entry_id in self.places if entry_id not in parents]


@dataclass(frozen=True)
class Evidence:
    """Everything that a check may look at."""

    logs: dict[str, Log]
    notes: list[Note]

    def of(self, *kinds: str) -> list[Note]:
        """The notes of these kinds, in the order of time."""
        return [note for kind in kinds for note in self._by_kind.get(kind, [])]

    @cached_property
    def _by_kind(self) -> dict[str, list[Note]]:
        by_kind: dict[str, list[Note]] = defaultdict(list)
        for note in self.notes:
            by_kind[note["kind"]].append(note)
        return by_kind

    def log(self, session_id: str) -> Log:
        """A session's log; an empty one where there is none."""
        return self.logs.get(session_id) or Log(session_id)

    def origins(self, session_id: str) -> list[str]:
        """The session, and those that it was forked from."""
        origins: list[str] = []
        while session_id and session_id not in origins:
            origins.append(session_id)
            session_id = self.log(session_id).parent_id
        return origins


def read_evidence(folder: Path) -> Evidence:
    """What a run left in its folder."""
    logs = (read_log(path) for path in sorted((folder / "sessions").glob("*.jsonl")))
    return Evidence({log.session_id: log for log in logs}, read_folder(folder / "journals"))


def read_log(path: Path) -> Log:
    """The log in a file."""
    record: Line = {}
    lines: list[Line] = []
    broken: list[str] = []
    for number, data in enumerate(path.read_bytes().split(b"\n")):
        if not data:
            continue
        try:
            line = json.loads(data)
        except ValueError:
            broken.append(f"line {number + 1}: {data[:60]!r}")
            continue
        if number == 0:
            record = line
        else:
            lines.append(line)
    return Log(str(record.get("id")), str(record.get("parent_id") or ""), lines, broken)


def parent_of(line: Line) -> str:
    """The ID of the entry before it on the path; empty for a root."""
    return str(line.get("parent_id") or "")


def role_of(line: Line) -> str:
    """Whose message it is; empty for an entry of another kind."""
    return str(line.get("message", {}).get("role", ""))


def text_of(line: Line) -> str:
    """What it says: the text of a message, or the summary of a compaction."""
    if line.get("type") == "compaction":
        return str(line.get("summary", ""))
    content = line.get("message", {}).get("content", [])
    if isinstance(content, str):
        return content
    return "".join(block.get("text", "") for block in content if block.get("type") == "text")


def calls_of(message: Line) -> list[Line]:
    """The tool calls in a message."""
    content = message.get("content", [])
    return [block for block in content if isinstance(block, dict) and block["type"] == "tool_call"]


def identity_of(line: Line) -> str:
    """What cannot be twice on one path: each text has a word of its own, each call an ID."""
    if role_of(line) == "tool_result":
        return f"result of {line['message'].get('tool_call_id')}"
    return text_of(line)


def entries_of(notes: Iterable[Note]) -> Iterator[tuple[Note, Line]]:
    """Each entry of these receipts."""
    for note in notes:
        for entry in note["entries"]:
            yield note, entry
