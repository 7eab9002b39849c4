"""What is wrong, or only odd, with the entries of a log, and what a reader makes of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from perdure.entries import CompactionEntry, Entry, MessageEntry, OpaqueEntry
from perdure.messages import Role
from perdure.transcript import Transcript
from perdure.tree import TreeNode


class Weight(StrEnum):
    """How bad a finding is: the session cannot be read, something of the file is not used, or a
    reader knows what to do.
    """

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding. `line` is that of the file; without a file the position in the log; 0 when it is
    about no line in particular. `reader` is what a reader does about it.
    """

    weight: Weight
    kind: str
    line: int
    entry_id: str
    message: str
    reader: str

    def to_json(self) -> dict[str, Any]:
        """The finding as `verify --json` tells it."""
        return {**asdict(self), "weight": self.weight.value}


def check_entries(entries: Sequence[Entry], numbers: Sequence[int]) -> list[Finding]:
    """What is odd about the entries, which stand on lines of these numbers; in their order."""
    findings = [
        *_check_ids(entries, numbers),
        *_check_parents(entries, numbers),
        *_check_compactions(entries, numbers),
        *_check_calls(entries, numbers),
        *_check_kinds(entries, numbers),
    ]
    return sorted(findings, key=lambda finding: finding.line)


def _check_ids(entries: Sequence[Entry], numbers: Sequence[int]) -> Iterator[Finding]:
    first: dict[str, int] = {}
    for entry, number in zip(entries, numbers, strict=True):
        if not entry.id:
            yield Finding(
                Weight.WARNING,
                "no_id",
                number,
                "",
                "an entry without an ID",
                "keeps it, as a root or a branch end: it is never the leaf, nor a parent",
            )
        elif entry.id in first:
            yield Finding(
                Weight.WARNING,
                "duplicate_id",
                number,
                entry.id,
                f"repeats the ID of line {first[entry.id]}",
                "uses the first one; this one is not loaded",
            )
        else:
            first[entry.id] = number


def _check_parents(entries: Sequence[Entry], numbers: Sequence[int]) -> Iterator[Finding]:
    places: dict[str, int] = {}
    for position, entry in enumerate(entries):
        if entry.id:
            places.setdefault(entry.id, position)
    in_circle = _in_circle(entries, places)
    for position, (entry, number) in enumerate(zip(entries, numbers, strict=True)):
        parent = places.get(entry.parent_id) if entry.parent_id else None
        if position in in_circle:
            yield Finding(
                Weight.WARNING,
                "circle",
                number,
                entry.id,
                f"its parents lead back to itself, by way of {entry.parent_id!r}",
                "ends the path where it would come round",
            )
        elif entry.parent_id and parent is None:
            yield Finding(
                Weight.WARNING,
                "missing_parent",
                number,
                entry.id,
                f"its parent {entry.parent_id!r} is not in the log",
                "takes it for a root: the path begins here",
            )
        elif parent is not None and parent > position:
            yield Finding(
                Weight.NOTE,
                "late_parent",
                number,
                entry.id,
                f"its parent stands below it, on line {numbers[parent]}",
                "follows it all the same",
            )


def _in_circle(entries: Sequence[Entry], places: dict[str, int]) -> set[int]:
    """The positions of the entries whose parents run in a circle."""
    seen_from: dict[int, int] = {}
    found: set[int] = set()
    for start in range(len(entries)):
        position: int | None = start
        while position is not None and position not in seen_from:
            seen_from[position] = start
            position = places.get(entries[position].parent_id)
        if position is not None and seen_from[position] == start:
            first = position
            while position is not None and position not in found:
                found.add(position)
                position = places.get(entries[position].parent_id)
                if position == first:
                    break
    return found


def _check_compactions(entries: Sequence[Entry], numbers: Sequence[int]) -> Iterator[Finding]:
    compactions = [
        (entry, number)
        for entry, number in zip(entries, numbers, strict=True)
        if isinstance(entry, CompactionEntry) and entry.first_kept_id
    ]
    if not compactions:
        return
    transcript = Transcript(entries)
    for entry, number in compactions:
        before = {earlier.id for earlier in transcript.path(entry.id)[:-1]}
        if entry.first_kept_id not in before:
            yield Finding(
                Weight.NOTE,
                "kept_nothing",
                number,
                entry.id,
                f"its first kept entry {entry.first_kept_id!r} is not on the path before it",
                "shows a model the summary, and nothing from before it",
            )


def _check_kinds(entries: Sequence[Entry], numbers: Sequence[int]) -> Iterator[Finding]:
    roles = set(Role)
    for entry, number in zip(entries, numbers, strict=True):
        what = ""
        if isinstance(entry, OpaqueEntry):
            what = f"an entry of the unknown type {entry.type!r}"
        elif isinstance(entry, MessageEntry):
            if entry.outline.role not in roles:
                what = f"a message of the unknown role {entry.outline.role!r}"
            elif entry.outline.has_opaque:
                what = "a message with content of a type that is not known"
        if what:
            yield Finding(
                Weight.NOTE,
                "unknown",
                number,
                entry.id,
                what,
                "keeps it and writes it on unchanged; a model is not sent it",
            )


def _check_calls(entries: Sequence[Entry], numbers: Sequence[int]) -> Iterator[Finding]:
    """Calls of tools without a result, and results without a call, on any path."""
    lines = {id(entry): number for entry, number in zip(entries, numbers, strict=True)}
    accepted: set[int] = set()
    callers: list[TreeNode] = []
    results: list[Entry] = []
    for root in Transcript(entries).tree():
        for _, node in root.walk():
            if isinstance(node.entry, MessageEntry):
                role = node.entry.outline.role
                if role == "assistant" and node.entry.outline.call_ids:
                    callers.append(node)
                elif role == "tool_result":
                    results.append(node.entry)
    for caller in callers:
        open_calls, is_last = _follow_calls(caller, accepted)
        if open_calls:
            names = ", ".join(repr(call_id) for call_id in open_calls)
            running = "; a run may be at it" if is_last else ""
            yield Finding(
                Weight.NOTE,
                "orphaned_call",
                lines[id(caller.entry)],
                caller.entry.id,
                f"tool calls without a result: {names}{running}",
                "tells a model 'tool execution interrupted' in their place",
            )
    for entry in results:
        if id(entry) not in accepted:
            yield Finding(
                Weight.NOTE,
                "orphaned_result",
                lines[id(entry)],
                entry.id,
                "a tool's result that no call before it waits for",
                "leaves it out of what a model is sent",
            )


def _follow_calls(caller: TreeNode, accepted: set[int]) -> tuple[list[str], bool]:
    """The calls of a message that stay open on some path, and whether one just ends there.

    The results that answer a call are added to those accepted.
    """
    assert isinstance(caller.entry, MessageEntry)
    unanswered: dict[str, None] = {}
    is_last = False
    waiting: list[tuple[TreeNode, tuple[str, ...]]] = [(caller, caller.entry.outline.call_ids)]
    while waiting:
        node, left = waiting.pop()
        if not node.children and left:
            unanswered.update(dict.fromkeys(left))
            is_last = True
        for child in node.children:
            entry = child.entry
            if not isinstance(entry, MessageEntry):
                waiting.append((child, left))
                continue
            _, call_id, _, _ = entry.outline
            if entry.outline.role == "tool_result":
                if call_id in left:
                    accepted.add(id(entry))
                    place = left.index(call_id)
                    waiting.append((child, left[:place] + left[place + 1 :]))
                else:
                    waiting.append((child, left))
            elif left:
                unanswered.update(dict.fromkeys(left))
    return list(unanswered), is_last
