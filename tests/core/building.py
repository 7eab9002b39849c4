"""Entries for tests, in few words."""

from __future__ import annotations

import json
from typing import Any

from perdure.codec import decode_entry
from perdure.entries import CompactionEntry, CustomEntry, Entry, MessageEntry
from perdure.messages import ContentBlock, Message, TextBlock, ToolCallBlock
from perdure.timestamps import Timestamp


def at(second: int, nanosecond: int = 0) -> Timestamp:
    return Timestamp.parse(f"2026-03-04T05:06:{second:02d}.{nanosecond:09d}Z")


def said(entry_id: str, text: str, parent: str = "", *, meta: bool = False) -> MessageEntry:
    return entry_of(entry_id, parent, user(text), meta=meta)


def answered(entry_id: str, parent: str, *content: str | ToolCallBlock) -> MessageEntry:
    return entry_of(entry_id, parent, assistant(*content))


def resulted(entry_id: str, parent: str, call_id: str, text: str = "done") -> MessageEntry:
    return entry_of(entry_id, parent, result(call_id, text))


def compacted(entry_id: str, parent: str, summary: str, first_kept_id: str) -> CompactionEntry:
    return CompactionEntry(
        id=entry_id,
        parent_id=parent,
        created_at=at(30),
        summary=summary,
        first_kept_id=first_kept_id,
    )


def noted(entry_id: str, parent: str) -> CustomEntry:
    return CustomEntry(id=entry_id, parent_id=parent, kind="note")


def entry_of(
    entry_id: str, parent: str, message: Message, *, meta: bool = False, ephemeral: bool = False
) -> MessageEntry:
    return MessageEntry(
        id=entry_id, parent_id=parent, message=message, meta=meta, ephemeral=ephemeral
    )


def user(text: str) -> Message:
    return Message(role="user", content=text)


def assistant(*content: str | ToolCallBlock) -> Message:
    blocks: list[ContentBlock] = [
        TextBlock(text=item) if isinstance(item, str) else item for item in content
    ]
    return Message(role="assistant", content=blocks)


def call(call_id: str, name: str = "look", **arguments: Any) -> ToolCallBlock:
    return ToolCallBlock(id=call_id, name=name, arguments=arguments)


def result(call_id: str, text: str = "done", name: str = "look") -> Message:
    return Message(role="tool_result", content=text, tool_call_id=call_id, tool_name=name)


def interrupted(call_id: str, name: str = "look") -> Message:
    return Message(
        role="tool_result",
        content="tool execution interrupted",
        tool_call_id=call_id,
        tool_name=name,
        is_error=True,
    )


def line_of(**keys: Any) -> bytes:
    """The line of a message entry, unless the keys say otherwise."""
    header = {"type": "message", "id": "e1", "created_at": "2026-11-29T12:00:00Z"}
    return json.dumps({**header, **keys}).encode()


def decoded(**keys: Any) -> Entry:
    return decode_entry(line_of(**keys))


def message_line(**keys: Any) -> bytes:
    return line_of(message={"role": "user", **keys})
