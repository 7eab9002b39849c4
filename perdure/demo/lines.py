"""How an entry of the log is shown: in one line, as much of it as fits."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

from rich.text import Text

from perdure.entries import CompactionEntry, CustomEntry, Entry, MessageEntry
from perdure.messages import Message, Role, ToolCallBlock
from perdure.tree import TreeNode

_LABELS: Final = {
    Role.USER.value: ("user", "cyan"),
    Role.ASSISTANT.value: ("agent", "magenta"),
    Role.TOOL_RESULT.value: ("result", "blue"),
}


def entry_line(entry: Entry) -> Text:
    """Its ID, who it is from, and what it says."""
    return entry_head(entry).append_text(_said(entry))


def entry_head(entry: Entry) -> Text:
    """Its ID, and who it is from."""
    label, style = _label(entry)
    return Text.assemble((entry.id[:16].ljust(16), "bold"), "  ", (label.ljust(6), style), "  ")


def answer_in(entry: Entry) -> str:
    """The text of an agent's last word, one that calls no tool; empty in any other entry."""
    if isinstance(entry, MessageEntry) and entry.message.role == Role.ASSISTANT.value:
        return "" if entry.message.tool_calls else _flat(entry.message.text)
    return ""


def call_text(name: str, arguments: dict[str, Any] | None) -> str:
    """A tool call as Python would write it."""
    written = (f"{key}={_value(value)}" for key, value in (arguments or {}).items())
    return f"{name}({', '.join(written)})"


def tree_lines(roots: Sequence[TreeNode], width: int = 4) -> list[Text]:
    """The tree: a conversation goes straight down, and only where it forks, to the right."""
    lines: list[Text] = []
    waiting = [(root, 0) for root in reversed(roots)]
    while waiting:
        node, depth = waiting.pop()
        marker = "●" if node.children else "◆"
        lines.append(Text.assemble(" " * (width * depth), (f"{marker} ", "dim"), _node(node)))
        below = depth + (len(node.children) > 1)
        waiting.extend((child, below) for child in reversed(node.children))
    return lines


def _node(node: TreeNode) -> Text:
    line = entry_line(node.entry)
    if isinstance(node.entry, MessageEntry) and node.entry.meta:
        line.append("  (hidden from people)", "dim")
    return line


def _label(entry: Entry) -> tuple[str, str]:
    if isinstance(entry, MessageEntry):
        return _LABELS.get(entry.message.role, (entry.message.role[:6], "yellow"))
    return (entry.type[:6], "yellow")


def _said(entry: Entry) -> Text:
    if isinstance(entry, MessageEntry):
        return _message(entry.message)
    if isinstance(entry, CompactionEntry):
        return Text(_flat(entry.summary))
    return Text(entry.kind if isinstance(entry, CustomEntry) else "")


def _message(message: Message) -> Text:
    if message.role == Role.TOOL_RESULT.value:
        style = "red" if message.is_error else ""
        return Text.assemble((f"{message.tool_name}: ", "dim"), (_flat(message.text), style))
    line = Text(_flat(message.text))
    for block in message.content:
        if isinstance(block, ToolCallBlock):
            line.append(" " if line else "").append("→ ", "dim")
            line.append(call_text(block.name, block.arguments), "green")
    return line


def _value(value: Any) -> str:
    written = json.dumps(value, ensure_ascii=False)
    return written if len(written) <= 40 else written[:38] + '…"'


def _flat(text: str) -> str:
    """In one line; control characters, which could move a terminal's cursor, are shown as dots."""
    flat = " ".join(text.split())
    return "".join(character if character.isprintable() else "·" for character in flat)
