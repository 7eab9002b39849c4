"""Long logs: a conversation in which every other question makes the agent use a tool. Their lines
have some 450 bytes each.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path

from perdure import Message, MessageEntry, Timestamp, encode_entry
from perdure.codec import encode_record
from perdure.entries import SessionRecord
from perdure.messages import ContentBlock, TextBlock, ToolCallBlock
from perdure.usage import Cost, Usage

QUESTION = "What did the second reviewer say about the way in which the retries are counted? "
RESULT = "retries are counted per call, not per run; see the table, row 14, and the note below it "
ANSWER = "The second reviewer asks for retries to be counted per call, and points to row fourteen. "

_START = datetime(2026, 11, 29, 12, 0, 0, 262_773, tzinfo=UTC)


def write_log(folder: Path, session_id: str, lines: Iterator[bytes] | list[bytes]) -> Path:
    """The log of a session, in the folder of a file store."""
    path = folder / f"{session_id}.jsonl"
    record = encode_record(SessionRecord(id=session_id, created_at=Timestamp.of(_START)))
    path.write_bytes(b"".join(line + b"\n" for line in (record, *lines)))
    return path


def log_lines(entries: int) -> Iterator[bytes]:
    """The lines of so many entries, without line ends."""
    parent = ""
    for number, message in enumerate(islice(_conversation(), entries)):
        moment = Timestamp.of(_START + timedelta(milliseconds=1_721 * number))
        entry = MessageEntry(
            id=f"{number * 0x9E3779B97F4A7C15 % 2**64:016x}",
            parent_id=parent,
            created_at=moment,
            message=message.model_copy(update={"timestamp": moment}),
        )
        yield encode_entry(entry)
        parent = entry.id


def _conversation() -> Iterator[Message]:
    number = 0
    while True:
        yield Message(role="user", content=QUESTION)
        if number % 2 == 0:
            call = ToolCallBlock(
                id=f"toolu_{number:020d}", name="read_file", arguments={"path": "review.md"}
            )
            yield _answer(TextBlock(text="Let me look at the review."), call)
            yield Message(
                role="tool_result",
                content=RESULT * 2,
                tool_call_id=call.id,
                tool_name=call.name,
            )
        yield _answer(TextBlock(text=ANSWER))
        number += 1


def _answer(*content: ContentBlock) -> Message:
    cost = Cost(input=0.051585, output=0.00582, cache_read=0.0079227)
    return Message(
        role="assistant",
        content=content,
        api="anthropic-messages",
        provider="anthropic",
        model="claude-sonnet-4",
        usage=Usage(input=17_195, output=388, cache_read=26_409, cost=cost),
        stop_reason="tool_use" if len(content) > 1 else "stop",
    )
