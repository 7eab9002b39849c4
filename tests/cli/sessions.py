"""Stored sessions that the tests of the command line read."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from perdure.codec import encode_entry, encode_record
from perdure.entries import (
    CompactionEntry,
    CustomEntry,
    Entry,
    MessageEntry,
    SessionRecord,
    text,
)
from perdure.messages import (
    ContentBlock,
    Message,
    StopReason,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
)
from perdure.timestamps import Timestamp
from perdure.usage import Usage

START = datetime(2026, 11, 29, 9, 12, 30, tzinfo=UTC)


def at(minute: int) -> Timestamp:
    """A time, so many minutes after the session began."""
    return Timestamp.of(START + timedelta(minutes=minute))


def placed(entry: Entry, entry_id: str, parent_id: str, minute: int) -> Entry:
    return entry.with_header(id=entry_id, parent_id=parent_id, created_at=at(minute))


def answer(said: str = "", *calls: ToolCallBlock, thinks: str = "") -> MessageEntry:
    """What a model says, with the usage of a small one."""
    blocks: list[ContentBlock] = [
        *([ThinkingBlock(thinking=thinks)] if thinks else []),
        *([TextBlock(text=said)] if said else []),
        *calls,
    ]
    message = Message(
        role="assistant",
        content=blocks,
        model="claude-sonnet-4-5",
        usage=Usage(input=1_200, output=340),
        stop_reason=StopReason.TOOL_USE if calls else StopReason.STOP,
    )
    return MessageEntry(message=message)


def result(call_id: str, said: str, *, name: str = "find_order", is_error: bool = False) -> Entry:
    """What a tool gave."""
    message = Message(
        role="tool_result",
        content=said,
        tool_call_id=call_id,
        tool_name=name,
        is_error=is_error,
    )
    return MessageEntry(message=message)


def conversation() -> list[Entry]:
    """A short one that has everything: tools, a branch, a compaction, an entry of one's own."""
    call = ToolCallBlock(id="c1", name="find_order", arguments={"order_id": "7", "deep": [1, {}]})
    note = CustomEntry.model_validate({"kind": "note", "body": "call back on <Monday>"})
    summary = CompactionEntry(summary="Order 7 ships on Friday.", first_kept_id="aaaaaa07")
    return [
        placed(text("Where is order 7?"), "aaaaaa01", "", 0),
        placed(answer("", call, thinks="I look it up."), "aaaaaa02", "aaaaaa01", 1),
        placed(result("c1", '{"ships": "Friday"}'), "aaaaaa03", "aaaaaa02", 1),
        placed(answer("It ships on Friday."), "aaaaaa04", "aaaaaa03", 2),
        placed(text("And order 8?"), "aaaaaa05", "aaaaaa04", 3),
        placed(answer("Order 8 was cancelled."), "aaaaaa06", "aaaaaa05", 4),
        placed(text("Cancel 7, too."), "aaaaaa07", "aaaaaa04", 5),
        placed(answer("Done."), "aaaaaa08", "aaaaaa07", 6),
        placed(summary, "aaaaaa09", "aaaaaa08", 7),
        placed(note, "aaaaaa10", "aaaaaa09", 8),
        placed(text("Thanks! 谢谢"), "aaaaaa11", "aaaaaa10", 9),
    ]


def fork_of_conversation() -> list[Entry]:
    """A copy of its first four entries, and one more."""
    copied, parent_id = [], ""
    for entry in conversation()[:4]:
        copied.append(entry.with_header(id=f"f{entry.id}", parent_id=parent_id))
        parent_id = copied[-1].id
    return [*copied, placed(text("What if I return it?"), "ffffff05", parent_id, 30)]


def long_conversation(entries: int = 10_000, every: int = 40) -> Iterator[Entry]:
    """So many entries; every so often someone goes back and tries again."""
    parent_id = ""
    for number in range(0, entries, 2):
        asked, answered = f"{number:08x}", f"{number + 1:08x}"
        question = text(f"Question {number}: " + "what is the weather like? " * 8)
        yield placed(question, asked, parent_id, number)
        yield placed(answer("It rains. " * 40), answered, asked, number + 1)
        if number % every:
            parent_id = answered


def write(
    root: Path, session_id: str, entries: Iterator[Entry] | list[Entry], parent: str = ""
) -> Path:
    """The log of a session as a file in a store's folder."""
    root.mkdir(exist_ok=True)
    record = SessionRecord(id=session_id, parent_id=parent, created_at=at(0))
    lines = [encode_record(record), *map(encode_entry, entries)]
    path = root / f"{session_id}.jsonl"
    path.write_bytes(b"".join(line + b"\n" for line in lines))
    return path
