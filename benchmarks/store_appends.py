"""Appends and loads of the file store, beside bare file operations.

An append adds one entry of about 500 bytes, or as many as are told, and is on disk when it returns;
its yardstick writes the same bytes to an open file and flushes them. Each is measured in rounds
that take turns with those of its yardstick, on the disk of the folder for temporary files; the
median round counts.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import count
from pathlib import Path

from benchmarks.report import Figure, Scale, run_benchmark
from perdure import Entry, MessageEntry, encode_entry, text
from perdure.stores import FileStore, Store

SESSIONS = 16
APPENDS = 200
"""Appends in a round, of all sessions together."""
BATCH = 20
"""Entries in one append, where many are appended at once."""

_numbers = count()

Round = Callable[[], Awaitable[None]]


async def measure(scale: Scale) -> list[Figure]:
    """Appends to one and to many sessions, to a long log, and loads of a long log."""
    rounds = scale.pick(3, 15)
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(SESSIONS) as pool:
        root = Path(folder)
        store = FileStore(root / "store")
        for session_id in [*map(str, range(SESSIONS)), "short", "long"]:
            await store.create_session(session_id)
        await store.append_entries("long", [new_entry() for _ in range(10_000)])
        bare_one, bare_many = partial(_bare, root, pool, 1), partial(_bare, root, pool, SESSIONS)
        one = await medians(rounds, partial(append_round, store, ["short"]), bare_one)
        long = await medians(rounds, partial(append_round, store, ["long"]), bare_one)
        tasks = await medians(rounds, partial(append_round, store, ["short"] * SESSIONS), bare_one)
        many = await medians(
            rounds, partial(append_round, store, [str(n) for n in range(SESSIONS)]), bare_many
        )
        batch = await medians(
            rounds, partial(_append_batches, store), partial(_bare, root, pool, 1, BATCH)
        )
        load = await medians(
            rounds, partial(_load, store), partial(_look, store.root / "long.jsonl")
        )
    return [
        time_of("files: append", one),
        time_of("files: append to 10,000 entries", long),
        time_of("files: append of 20 entries at once, for each", batch),
        rate_of("files: appends a second, 1 session", one),
        rate_of("files: appends a second, 1 session, 16 tasks", tasks),
        rate_of("files: appends a second, 16 sessions", many),
        time_of("files: load of 10,000 entries, unchanged", load),
    ]


async def append_round(store: Store, sessions: Sequence[str]) -> None:
    """A round: a task for each session, which may be the same."""

    async def task(session_id: str) -> None:
        for _ in range(APPENDS // len(sessions)):
            await store.append_entries(session_id, [new_entry()])

    await asyncio.gather(*map(task, sessions))


async def _append_batches(store: Store) -> None:
    for _ in range(APPENDS // BATCH):
        await store.append_entries("short", [new_entry() for _ in range(BATCH)])


async def _bare(root: Path, pool: ThreadPoolExecutor, files: int, lines: int = 1) -> None:
    """A round of the yardstick: a thread for each file, so many lines in a write."""
    data = (encode_entry(new_entry()) + b"\n") * lines

    def thread(number: int) -> None:
        flags = os.O_CREAT | os.O_WRONLY | os.O_APPEND
        descriptor = os.open(root / f"bare-{number}", flags, 0o644)
        try:
            for _ in range(APPENDS // files // lines):
                os.write(descriptor, data)
                os.fdatasync(descriptor)
        finally:
            os.close(descriptor)

    loop = asyncio.get_running_loop()
    await asyncio.gather(*(loop.run_in_executor(pool, thread, n) for n in range(files)))


async def _load(store: FileStore) -> None:
    for _ in range(APPENDS):
        await store.load_entries("long")


async def _look(path: Path) -> None:
    """The least that can be done: a look at the file, and a list for the caller."""
    entries: list[object] = [None] * 10_000
    for _ in range(APPENDS):
        os.lstat(path)
        entries.copy()


async def medians(
    rounds: int, measured: Round, yardstick: Round, operations: int = APPENDS
) -> tuple[float, float]:
    """Seconds for one operation of each, in rounds by turns; the first of each does not count."""
    times: tuple[list[float], list[float]] = ([], [])
    for number in range(rounds + 1):
        for one_round, seconds in zip((measured, yardstick), times, strict=True):
            start = time.perf_counter()
            await one_round()
            if number:
                seconds.append((time.perf_counter() - start) / operations)
    return statistics.median(times[0]), statistics.median(times[1])


def new_entry() -> Entry:
    entry: MessageEntry = text("What changed since Friday? " * 12)
    return entry.with_header(id=f"{next(_numbers):016x}", parent_id="0123456789abcdef")


def time_of(what: str, seconds: tuple[float, float]) -> Figure:
    return Figure(what, *seconds)


def rate_of(what: str, seconds: tuple[float, float]) -> Figure:
    return Figure(what, 1 / seconds[0], 1 / seconds[1])


if __name__ == "__main__":
    run_benchmark(measure, __doc__)
