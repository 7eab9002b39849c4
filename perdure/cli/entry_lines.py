"""An entry in a few words, for lists, trees and transcripts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from datetime import datetime
from typing import Any

from perdure.cli.screen import one_line
from perdure.codec import dumps_json
from perdure.entries import CompactionEntry, CustomEntry, Entry, MessageEntry
from perdure.messages import FileBlock, ImageBlock, Message, TextBlock, ThinkingBlock, ToolCallBlock
from perdure.timestamps import Timestamp
from perdure.usage import Usage

COLOURS = {
    "user": "green",
    "assistant": "cyan",
    "tool": "yellow",
    "meta": "dim",
    "compaction": "magenta",
}

_HEADER = frozenset({"id", "parent_id", "created_at", "type", "kind"})


def role_of(entry: Entry) -> str:
    """Who speaks, or what the entry is: one word."""
    if isinstance(entry, MessageEntry):
        role = entry.outline.role
        if role == "tool_result":
            return "tool"
        return "meta" if entry.meta else one_line(role) or "message"
    if isinstance(entry, CustomEntry):
        return one_line(entry.kind) or "custom"
    return one_line(entry.type) or "unknown"


def headline(entry: Entry) -> str:
    """What the entry says, in one line."""
    if isinstance(entry, MessageEntry):
        return _message_line(entry.message)
    if isinstance(entry, CompactionEntry):
        return one_line(entry.summary) or "(no summary)"
    return one_line(plain_json(fields_of(entry)))


def fields_of(entry: Entry) -> dict[str, Any]:
    """What an entry of an application's own kind, or of an unknown type, holds."""
    return {name: value for name, value in entry.to_wire().items() if name not in _HEADER}


def call_line(name: str, arguments: dict[str, Any] | None) -> str:
    """A tool call, as it would be written in code."""
    given = ", ".join(
        f"{one_line(key)}={one_line(plain_json(value))}" for key, value in (arguments or {}).items()
    )
    return f"{one_line(name)}({given})"


def result_line(message: Message) -> str:
    """A tool's result: whether it went well, and how it begins."""
    sign = "✗" if message.is_error else "✓"
    return f"{sign} {one_line(message.tool_name)} {one_line(message.text)}".rstrip()


def block_line(block: Any) -> str:
    """A piece of a message that is not text, in one line."""
    match block:
        case ToolCallBlock():
            line = f"→ {call_line(block.name, block.arguments)}"
            return f"{line} (run by the provider)" if block.server else line
        case ThinkingBlock():
            return f"(thinks) {one_line(block.thinking)}".rstrip()
        case ImageBlock():
            return f"[image {one_line(block.mime_type)}]".replace(" ]", "]")
        case FileBlock():
            name = block.filename or block.url or block.file_id or block.mime_type
            return f"[file {one_line(name)}]".replace(" ]", "]")
        case TextBlock():
            return one_line(block.text)
    return f"[{one_line(block.type)}]"


def tokens_of(usage: Usage | None) -> str:
    """What a call of a model consumed: `1.2k in, 340 out`; empty when nothing is known."""
    if usage is None:
        return ""
    read = usage.input + usage.cache_read + usage.cache_write
    return (
        f"{short_number(read)} in, {short_number(usage.output)} out" if read or usage.output else ""
    )


def short_number(number: int) -> str:
    """A count in at most four characters, as far as it goes: 940, 1.2k, 31k, 2.5M."""
    for size, letter in ((1_000_000_000, "G"), (1_000_000, "M"), (1_000, "k")):
        if number >= size:
            amount = number / size
            return f"{amount:.1f}{letter}" if amount < 9.95 else f"{amount:.0f}{letter}"
    return str(number)


def counted(entries: Iterable[Entry]) -> str:
    """How many entries of each kind: `48 user, 40 assistant, 8 tool`."""
    roles = Counter(map(role_of, entries))
    return ", ".join(f"{number:,} {role}" for role, number in roles.most_common())


def plural(number: int, one: str, many: str = "") -> str:
    """A count with its noun: `1 entry`, `12,000 entries`."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def local_time(timestamp: Timestamp) -> datetime | None:
    """The instant on the clock of whoever looks; None for one that was never set."""
    if timestamp.nanoseconds <= 0:
        return None
    try:
        return timestamp.datetime.astimezone()
    except (OverflowError, OSError, ValueError):
        return timestamp.datetime


def plain_json(value: Any) -> str:
    """A value as JSON, with the characters that JSON need not escape left as they are."""
    text = dumps_json(value).decode(errors="surrogatepass")
    for escaped, character in _ESCAPED.items():
        text = text.replace(escaped, character)
    return text


_ESCAPED = {"\\u003c": "<", "\\u003e": ">", "\\u0026": "&"}


def _message_line(message: Message) -> str:
    if message.role == "tool_result":
        return result_line(message)
    pieces = [
        block_line(block) for block in message.content if not isinstance(block, ThinkingBlock)
    ]
    if message.error:
        pieces.append(f"✗ {one_line(message.error)}")
    elif message.stop_reason == "aborted":
        pieces.append("✗ cancelled")
    return " ".join(piece for piece in pieces if piece) or "(empty)"
