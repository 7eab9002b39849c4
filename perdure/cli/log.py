"""`perdure log`."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from perdure.cli.entry_lines import (
    COLOURS,
    block_line,
    fields_of,
    local_time,
    plain_json,
    role_of,
    tokens_of,
)
from perdure.cli.place import Where
from perdure.cli.screen import Screen, one_line, out, safe, width_of
from perdure.cli.stored import opened
from perdure.cli.tree import chosen_leaf
from perdure.codec import encode_entry
from perdure.entries import CompactionEntry, Entry, MessageEntry
from perdure.messages import Message, TextBlock
from perdure.transcript import Transcript

POLL_PAUSE = 0.5
"""Seconds between two looks at a log that is followed."""

RESULT_LINES = 12
"""Lines of a tool's result that are shown, unless it is to be shown in full."""


@dataclass(frozen=True, slots=True)
class Choice:
    """Which entries are shown, and how. `last` is how many; None for all."""

    leaf: str | None = None
    whole: bool = False
    last: int | None = None
    follow: bool = False
    full: bool = False
    raw: bool = False
    as_json: bool = False


def show_log(session_id: str, *, where: Where, choice: Choice) -> None:
    """Print the entries of a stored session. Raises as `show_tree` does."""
    asyncio.run(_show(session_id, where, choice))


async def _show(session_id: str, where: Where, choice: Choice) -> None:
    store = opened(where)
    transcript = Transcript(await store.load_entries(session_id))
    shown: Sequence[Entry] = (
        transcript.entries
        if choice.whole
        else transcript.path(chosen_leaf(transcript, choice.leaf))
    )
    if choice.last is not None:
        shown = shown[len(shown) - min(choice.last, len(shown)) :]
    screen = out()
    printer = _Printer(screen, choice)
    printer.print(shown, follows="" if not shown else shown[0].parent_id)
    seen = len(transcript)
    while choice.follow:
        await asyncio.sleep(POLL_PAUSE)
        screen.check_reader()
        entries = await store.load_entries(session_id)
        if len(entries) > seen:
            printer.print(entries[seen:])
            seen = len(entries)


class _Printer:
    """Prints entries one after the other, and says so where one does not follow the one before."""

    def __init__(self, screen: Screen, choice: Choice) -> None:
        self._screen = screen
        self._choice = choice
        self._last_id: str | None = None
        self._day = ""

    def print(self, entries: Sequence[Entry], follows: str | None = None) -> None:
        if follows is not None:
            self._last_id = follows
        for entry in entries:
            if self._choice.raw:
                self._screen.write_bytes(encode_entry(entry) + b"\n")
            elif self._choice.as_json:
                self._screen.json(entry_json(entry))
            else:
                self._print(entry)
        self._screen.flush()

    def _print(self, entry: Entry) -> None:
        screen = self._screen
        if self._last_id is not None and entry.parent_id != self._last_id:
            origin = one_line(entry.parent_id) or "the beginning"
            screen.line(screen.styled(screen.fit(f"├─ branches off from {origin}"), "magenta"))
            screen.line()
        self._last_id = entry.id or self._last_id
        self._print_head(entry)
        for line in _body(entry, None if self._choice.full else RESULT_LINES):
            for piece in _wrapped(line, screen.columns):
                screen.line(piece)
        screen.line()

    def _print_head(self, entry: Entry) -> None:
        screen = self._screen
        moment = local_time(entry.created_at)
        day, clock = (f"{moment:%Y-%m-%d}", f"{moment:%H:%M:%S}") if moment else ("", "")
        if day and day != self._day:
            self._day = day
            screen.line(screen.styled(screen.fit(f"── {day} ──"), "dim"))
        role = role_of(entry)
        details = " · ".join(piece for piece in (one_line(entry.id), *_details(entry)) if piece)
        start = f"{clock} " if clock else ""
        left = screen.columns
        if left is not None and width_of(start + role) > left:
            start = ""
        head = screen.styled(start, "dim") + screen.styled(
            screen.fit(role, width_of(start)), "bold", COLOURS.get(role, "blue")
        )
        room = None if left is None else left - width_of(start + role) - 3
        if details and (room is None or room > 3):
            taken = 0 if left is None else width_of(start + role) + 3
            head += screen.styled(f" · {screen.fit(details, taken)}", "dim")
        screen.line(head)


def entry_json(entry: Entry) -> dict[str, Any]:
    """An entry as `log --json` tells it: flat, every key always there."""
    message = entry.message if isinstance(entry, MessageEntry) else Message()
    usage = message.usage
    return {
        "id": entry.id,
        "parent_id": entry.parent_id,
        "created_at": str(entry.created_at),
        "type": entry.type,
        "role": role_of(entry),
        "meta": isinstance(entry, MessageEntry) and entry.meta,
        "text": entry.summary if isinstance(entry, CompactionEntry) else message.text,
        "tool_calls": [
            {"id": call.id, "name": call.name, "arguments": call.arguments}
            for call in message.tool_calls
        ],
        "tool_call_id": message.tool_call_id,
        "tool_name": message.tool_name,
        "is_error": message.is_error,
        "model": message.model,
        "stop_reason": message.stop_reason,
        "error": message.error,
        "usage": None if usage is None else usage.to_wire(),
        "fields": {} if isinstance(entry, MessageEntry | CompactionEntry) else fields_of(entry),
    }


def _details(entry: Entry) -> Iterator[str]:
    if not isinstance(entry, MessageEntry):
        return
    message = entry.message
    if message.role == "tool_result":
        yield f"{'✗' if message.is_error else '✓'} {one_line(message.tool_name)}".strip()
    yield one_line(message.model)
    yield tokens_of(message.usage)
    if message.stop_reason in ("length", "error", "aborted"):
        yield message.stop_reason


def _body(entry: Entry, result_lines: int | None) -> Iterator[str]:
    if isinstance(entry, CompactionEntry):
        yield from safe(entry.summary).split("\n")
        return
    if not isinstance(entry, MessageEntry):
        yield safe(plain_json(fields_of(entry)))
        return
    message = entry.message
    for block in message.content:
        if not isinstance(block, TextBlock):
            yield block_line(block)
            continue
        lines = safe(block.text).split("\n")
        if message.role == "tool_result" and result_lines and len(lines) > result_lines + 1:
            yield from lines[:result_lines]
            yield f"⋮ {len(lines) - result_lines:,} lines more, --full shows them"
        else:
            yield from lines
    if message.error:
        yield f"✗ {one_line(message.error)}"


def _wrapped(line: str, columns: int | None) -> list[str]:
    """The line in pieces that fit, broken between words where there are any."""
    if columns is None or len(line) <= columns // 2 or width_of(line) <= columns:
        return [line]
    if line.isascii():
        import textwrap

        return textwrap.wrap(line, columns, drop_whitespace=False, expand_tabs=False) or [line]
    from rich.console import Console
    from rich.text import Text

    console = Console(width=columns, file=None)
    return [piece.plain.rstrip() for piece in Text(line).wrap(console, columns)]
