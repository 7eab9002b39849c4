"""What a chat shows of the conversation so far."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from perdure.cli.entry_lines import COLOURS, block_line, headline, result_line, role_of
from perdure.cli.screen import Screen, one_line, safe
from perdure.entries import Entry, MessageEntry
from perdure.messages import TextBlock, ThinkingBlock

LAST_ENTRIES = 12
"""Entries that a chat begins with at most."""

MOST_LINES = 20
"""Lines of an answer that was given before."""


def show_history(screen: Screen, entries: Sequence[Entry]) -> None:
    """Print the end of the conversation as it was printed when it was held."""
    hidden = len(entries) - LAST_ENTRIES
    if hidden > 0:
        more = f"⋮ {hidden:,} earlier entries; `perdure log` shows them"
        screen.line(screen.styled(screen.fit(more), "dim"))
    for entry in entries[max(hidden, 0) :]:
        for line, style in _lines(entry):
            screen.line(screen.styled(screen.fit(line), style) if style else line)
    screen.flush()


def said_before(entries: Sequence[Entry]) -> Iterator[str]:
    """What people have said, for the history of what can be typed again."""
    for entry in entries:
        if isinstance(entry, MessageEntry) and role_of(entry) == "user":
            yield entry.message.text


def _lines(entry: Entry) -> Iterator[tuple[str, str]]:
    """Each line with its style; without one it is an answer, and is left whole."""
    role = role_of(entry)
    if not isinstance(entry, MessageEntry) or role not in ("user", "assistant", "tool"):
        yield f"◆ {role} {headline(entry)}", COLOURS.get(role, "dim")
        return
    message = entry.message
    if role == "user":
        yield f"> {one_line(message.text) or headline(entry)}", "bold"
        return
    if role == "tool":
        yield result_line(message), "red" if message.is_error else "green"
        return
    for block in message.content:
        if isinstance(block, TextBlock):
            lines = safe(block.text).split("\n")
            yield from ((line, "") for line in lines[:MOST_LINES])
            if len(lines) > MOST_LINES:
                yield f"⋮ {len(lines) - MOST_LINES:,} lines more", "dim"
        elif not isinstance(block, ThinkingBlock):
            yield block_line(block), "yellow"
    if message.error:
        yield f"✗ {one_line(message.error)}", "red"
