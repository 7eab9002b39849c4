"""What it takes to open a long session from its file, and to view it: time and memory.

The log is a conversation in which every other question makes the agent use a tool; its lines have
some 400 bytes each. Opening is loading it with the file store and indexing it; the yardstick is
the standard library's `json.loads` of the same lines. Memory is what is allocated at its peak while
that is done, and its yardstick is the size of the file. Each log is opened in a process of its own,
several times; the median of the times counts.
"""

from __future__ import annotations

import asyncio
import gc
import json
import multiprocessing
import statistics
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import TypeVar

from benchmarks.report import Figure, Scale, at_most, at_most_times, run_benchmark
from perdure import Message, MessageEntry, Timestamp, Transcript, decode_entry, encode_entry, text
from perdure.codec import encode_record
from perdure.entries import SessionRecord
from perdure.messages import ContentBlock, TextBlock, ToolCallBlock
from perdure.stores import FileStore
from perdure.usage import Cost, Usage

Result = TypeVar("Result")

SESSION = "long"
QUESTION = "What did the second reviewer say about the way in which the retries are counted? "
RESULT = "retries are counted per call, not per run; see the table, row 14, and the note below it "
ANSWER = "The second reviewer asks for retries to be counted per call, and points to row fourteen. "


@dataclass(frozen=True, slots=True)
class Opened:
    """What opening and viewing one log took, in seconds."""

    open: float
    first_view: float
    next_view: float
    tree: float


async def measure(scale: Scale) -> list[Figure]:
    """Logs of 10,000 and of 100,000 entries."""
    figures = _measured(10_000, seconds=0.5, rounds=scale.pick(3, 7))
    if scale is not Scale.QUICK:
        figures += _measured(100_000, seconds=4.0, rounds=3)
    return figures


def _measured(entries: int, *, seconds: float, rounds: int) -> list[Figure]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"{SESSION}.jsonl"
        path.write_bytes(b"".join(line + b"\n" for line in _lines(entries)))
        size = path.stat().st_size
        memory, memory_viewed = _in_a_process(_weigh, path)
        found, plain = [], []
        for _ in range(rounds):
            plain.append(_in_a_process(_loads, path))
            found.append(_in_a_process(_open, path))

    def median(part: Callable[[Opened], float]) -> float:
        return statistics.median(part(opened) for opened in found)

    of = f"of {entries:,} entries"
    next_view = median(lambda o: o.next_view)
    return [
        Figure(
            f"open a session {of}",
            median(lambda o: o.open),
            "s",
            at_most(seconds),
            statistics.median(plain),
        ),
        Figure(
            f"memory of the session {of}",
            memory,
            "bytes",
            at_most_times(3.0),
            size,
        ),
        Figure(
            "memory with its path and model view",
            memory_viewed,
            "bytes",
            yardstick=size,
        ),
        Figure(f"path and model view {of}, the first", median(lambda o: o.first_view), "s"),
        Figure(
            f"path and model view {of}, the next",
            next_view,
            "s",
            at_most(0.010) if entries == 10_000 else None,
        ),
        Figure(f"tree {of}", median(lambda o: o.tree), "s"),
    ]


def _in_a_process(function: Callable[[Path], Result], path: Path) -> Result:
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        return pool.submit(function, path).result()


def _loads(path: Path) -> float:
    lines = path.read_bytes().split(b"\n")[:-1]
    gc.disable()
    start = time.perf_counter()
    for line in lines:
        json.loads(line)
    return time.perf_counter() - start


def _open(path: Path) -> Opened:
    start = time.perf_counter()
    transcript = _transcript(path)
    opened = time.perf_counter() - start
    first_view = _seconds(lambda: (transcript.path(), transcript.model_view()))
    question = text(QUESTION).with_header(id="next", parent_id=transcript.leaf_id)
    transcript.extend([decode_entry(encode_entry(question))])
    next_view = _seconds(lambda: (transcript.path(), transcript.model_view()))
    tree = _seconds(transcript.tree)
    return Opened(opened, first_view, next_view, tree)


def _weigh(path: Path) -> tuple[int, int]:
    """Bytes at their peak: when it is open, and when it was viewed."""
    tracemalloc.start()
    transcript = _transcript(path)
    opened = tracemalloc.get_traced_memory()[1]
    view = transcript.path(), transcript.model_view()
    viewed = tracemalloc.get_traced_memory()[1]
    del view
    return opened, viewed


def _transcript(path: Path) -> Transcript:
    return Transcript(asyncio.run(FileStore(path.parent).load_entries(SESSION)))


def _seconds(action: Callable[[], object]) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def _lines(entries: int) -> Iterator[bytes]:
    start = datetime(2026, 11, 29, 12, 0, 0, 262_773, tzinfo=UTC)
    yield encode_record(SessionRecord(id=SESSION, created_at=Timestamp.of(start)))
    parent = ""
    for number, message in enumerate(islice(_conversation(), entries)):
        moment = Timestamp.of(start + timedelta(milliseconds=1_721 * number))
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


if __name__ == "__main__":
    run_benchmark(measure, __doc__)
