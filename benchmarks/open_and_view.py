"""What it takes to open a long session from its file, and to view it: time and memory.

Opening is loading it with the file store and indexing it. The yardstick is the fastest parser of
JSON that is installed, given the same lines: pydantic's, or one of those that are asked for by name
below. Memory is what is allocated at its peak while that is done, and its yardstick is the size of
the file. Each log is opened in a process of its own, in turns with the parsers; medians count.
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
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TypeVar

from benchmarks.logs import QUESTION, log_lines, write_log
from benchmarks.report import Figure, Scale, run_benchmark
from perdure import Entry, Transcript, decode_entry, encode_entry, text
from perdure.stores import FileStore

Result = TypeVar("Result")

SESSION = "long"
SESSION = "long"
PARSERS = {"orjson": "loads", "msgspec.json": "decode", "pydantic_core": "from_json"}
"""Parsers of JSON beside the standard library's, of which those count that are installed."""


@dataclass(frozen=True, slots=True)
class Opened:
    """What opening and viewing one log took, in seconds."""

    load: float
    open: float
    first_view: float
    next_view: float
    tree: float


async def measure(scale: Scale) -> list[Figure]:
    """Logs of 1,000, 10,000 and 100,000 entries."""
    return [
        *_measured(1_000, 1_000, rounds=scale.pick(3, 7)),
        *_measured(10_000, 10_000, rounds=scale.pick(3, 7)),
        *_measured(100_000, scale.pick(20_000, 100_000), rounds=scale.pick(1, 5)),
    ]


def _measured(lines_for: int, entries: int, *, rounds: int) -> list[Figure]:
    """The figures for logs of `lines_for` entries, from a log of so many."""
    with tempfile.TemporaryDirectory() as folder:
        path = write_log(Path(folder), SESSION, log_lines(entries))
        size = path.stat().st_size
        memory, memory_viewed = _in_a_process(_weigh, path)
        found, plain = [], []
        for _ in range(rounds):
            plain.append(_in_a_process(_parse, path))
            found.append(_in_a_process(_open, path))

    def median(part: Callable[[Opened], float]) -> float:
        return statistics.median(part(opened) for opened in found)

    parsed = statistics.median(plain)
    load = median(lambda opened: opened.load)
    log, note = f"{lines_for:,} entries", "" if entries == lines_for else f"{entries:,}"
    figures = [
        Figure(f"{log}: open", median(lambda opened: opened.open), parsed),
        Figure(f"{log}: load, for each entry", load / entries, parsed / entries),
        Figure(f"{log}: memory", memory, size),
        Figure(f"{log}: memory with path and model view", memory_viewed, size),
        Figure(f"{log}: path and model view, the first", median(lambda o: o.first_view)),
        Figure(f"{log}: path and model view, cached", median(lambda o: o.next_view)),
        Figure(f"{log}: tree", median(lambda opened: opened.tree)),
    ]
    return [replace(figure, note=note) for figure in figures]


def _in_a_process(function: Callable[[Path], Result], path: Path) -> Result:
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        return pool.submit(function, path).result()


def _parse(path: Path) -> float:
    """Seconds of the fastest parser for the lines, whose values are kept, as those of a log are."""
    lines = path.read_bytes().split(b"\n")[:-1]
    parsers: list[Callable[[bytes], object]] = [json.loads]
    for module, name in PARSERS.items():
        with suppress(ImportError):
            parsers.append(getattr(import_module(module), name))
    gc.disable()
    return min(_seconds(partial(_parse_all, parse, lines)) for parse in parsers)


def _parse_all(parse: Callable[[bytes], object], lines: list[bytes]) -> list[object]:
    return [parse(line) for line in lines]


def _open(path: Path) -> Opened:
    entries, load = asyncio.run(_loaded(FileStore(path.parent)))
    started = time.perf_counter()
    transcript = Transcript(entries)
    indexed = time.perf_counter() - started
    first_view = _seconds(lambda: (transcript.path(), transcript.model_view()))
    question = text(QUESTION).with_header(id="next", parent_id=transcript.leaf_id)
    transcript.extend([decode_entry(encode_entry(question))])
    next_view = _seconds(lambda: (transcript.path(), transcript.model_view()))
    tree = _seconds(transcript.tree)
    return Opened(load, load + indexed, first_view, next_view, tree)


async def _loaded(store: FileStore) -> tuple[list[Entry], float]:
    """The entries, and the seconds that they took, in a store that has begun to work."""
    if not (store.root / "first.jsonl").exists():
        await store.create_session("first")
    await store.load_entries("first")
    started = time.perf_counter()
    entries = await store.load_entries(SESSION)
    return entries, time.perf_counter() - started


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


if __name__ == "__main__":
    run_benchmark(measure, __doc__)
