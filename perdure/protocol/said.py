"""What was said last: short excerpts of entries, for whoever looks at a session from outside."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from perdure.codec import dumps_json
from perdure.protocol.commands import EntryJson
from perdure.wire import Wire

SHOWN = 4
"""Excerpts that a session keeps."""

SHOWN_LENGTH = 300
"""Characters of each."""

CARRIED = 3
CARRIED_LENGTH = 120
"""What is left of them at a continue-as-new, which writes them into history twice."""

_ARGUMENTS = 80
_BLOCKS = 8


class Said(Wire):
    """Who said something, and how it begins, in one line."""

    role: str
    text: str


def remember(known: Sequence[Said], entries: Iterable[EntryJson]) -> list[Said]:
    """The excerpts of the last entries, after those that are known."""
    fresh = [said for entry in entries if (said := said_in(entry)) is not None]
    return [*known, *fresh][-SHOWN:]


def lightened(known: Sequence[Said]) -> list[Said]:
    """So much of them as is carried over a continue-as-new."""
    return [
        said.model_copy(update={"text": one_line(said.text, CARRIED_LENGTH)})
        for said in known[-CARRIED:]
    ]


def said_in(entry: EntryJson) -> Said | None:
    """The excerpt of an entry; None for one that people are not shown, or that says nothing."""
    if entry.get("type") == "compaction":
        return _said("summary", str(entry.get("summary", "")))
    message = entry.get("message")
    if entry.get("type") != "message" or entry.get("meta") or not isinstance(message, dict):
        return None
    content = message.get("content")
    blocks = content if isinstance(content, list) else []
    pieces = [_piece(block) for block in blocks[:_BLOCKS] if isinstance(block, dict)]
    role = str(message.get("role", ""))
    who = f"tool {message.get('tool_name', '')}".rstrip() if role == "tool_result" else role
    return _said(who, " ".join(pieces))


def call_line(name: str, arguments: dict[str, Any], limit: int, value_limit: int) -> str:
    """A tool call as one would type it, in so many characters at most."""
    given: list[str] = []
    left = limit
    for key, value in arguments.items():
        given.append(f"{one_line(key, 60)}={_value(value, value_limit)}")
        left -= len(given[-1])
        if left < 0:
            break
    return one_line(f"{name}({', '.join(given)})", limit)


def one_line(text: str, limit: int) -> str:
    """The beginning of a text, in one line of so many characters at most."""
    line = " ".join(text[: 4 * limit].split())
    is_cut = len(line) > limit or len(text) > 4 * limit
    return f"{line[: limit - 1]}…" if is_cut else line


def _value(value: Any, limit: int) -> str:
    if isinstance(value, str) and len(value) > limit:
        value = f"{value[:limit]}…"
    text = dumps_json(value).decode("utf-8", "replace")
    for escaped, character in (("\\u003c", "<"), ("\\u003e", ">"), ("\\u0026", "&")):
        text = text.replace(escaped, character)
    return text if len(text) <= limit + 3 else f"{text[:limit]}…"


def _said(role: str, text: str) -> Said | None:
    line = one_line(text, SHOWN_LENGTH)
    return Said(role=one_line(role, 60), text=line) if line else None


def _piece(block: dict[str, Any]) -> str:
    match block.get("type"):
        case "text":
            return str(block.get("text", ""))
        case "tool_call":
            arguments = block.get("arguments")
            given = arguments if isinstance(arguments, dict) else {}
            return f"→ {call_line(str(block.get('name', '')), given, 2 * _ARGUMENTS, _ARGUMENTS)}"
        case "image" | "file":
            return f"[{block['type']}]"
    return ""
