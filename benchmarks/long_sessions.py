"""Long sessions through the engine: open one, take a turn, fork it, compact it.

Each round has a log of its own, which nobody has read before; the model answers at once. The
yardstick of opening and of the turns is a session that begins here; that of a fork is the store,
which loads the same log and appends all of it to another in one call; that of a compaction is a
turn of the same session.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Awaitable
from dataclasses import dataclass, fields, replace
from itertools import count
from pathlib import Path

from benchmarks.conversation import take_turn, talker
from benchmarks.logs import log_lines, write_log
from benchmarks.report import Figure, Scale, run_benchmark
from benchmarks.serving import serving
from perdure import Sessions
from perdure.stores import FileStore

_numbers = count()


@dataclass(frozen=True, slots=True)
class Times:
    """Seconds of each step of one round."""

    open: float
    first_turn: float
    next_turn: float
    fork: float
    compact: float


async def measure(scale: Scale) -> list[Figure]:
    """Logs of 1,000, 10,000 and 100,000 entries."""
    figures: list[Figure] = []
    async with serving(talker()) as sessions:
        await _round(sessions, [])  # which brings along what all share
        for entries, quick, rounds in ((1_000, 500, 5), (10_000, 2_000, 5), (100_000, 10_000, 3)):
            count = scale.pick(quick, entries)
            figures += await _measured(sessions, entries, count, scale.pick(1, rounds))
    return figures


async def _measured(sessions: Sessions, lines_for: int, entries: int, rounds: int) -> list[Figure]:
    """The figures for sessions of `lines_for` entries, from sessions of so many."""
    lines = list(log_lines(entries))
    ours: list[Times] = []
    bare: list[Times] = []
    for _ in range(rounds):
        copied = await _seconds(_copied(sessions, lines))
        ours.append(await _round(sessions, lines))
        fresh = await _round(sessions, [])
        bare.append(replace(fresh, fork=copied, compact=ours[-1].next_turn))
    return [
        Figure(
            f"session of {lines_for:,} entries: {field.name.replace('_', ' ')}",
            statistics.median(getattr(times, field.name) for times in ours),
            statistics.median(getattr(times, field.name) for times in bare),
            "" if entries == lines_for else f"{entries:,}",
        )
        for field in fields(Times)
    ]


async def _round(sessions: Sessions, lines: list[bytes]) -> Times:
    name = f"long-{next(_numbers)}"
    if lines:
        write_log(_folder(sessions), name, lines)
    started = time.perf_counter()
    session = await sessions.open(name, agent="talker")
    opened = time.perf_counter() - started
    times = Times(
        opened,
        first_turn=await _seconds(take_turn(session)),
        next_turn=await _seconds(take_turn(session)),
        fork=await _seconds(session.fork(f"{name}-fork")),
        compact=await _seconds(session.compact()),
    )
    await session.close()
    return times


async def _copied(sessions: Sessions, lines: list[bytes]) -> None:
    """What the store alone does for a fork."""
    name = f"long-{next(_numbers)}"
    store = FileStore(write_log(_folder(sessions), name, lines).parent)
    entries = await store.load_entries(name)
    await store.create_session(f"{name}-copy")
    await store.append_entries(f"{name}-copy", entries)


def _folder(sessions: Sessions) -> Path:
    assert isinstance(sessions.store, FileStore)
    return sessions.store.root


async def _seconds(work: Awaitable[object]) -> float:
    started = time.perf_counter()
    await work
    return time.perf_counter() - started


if __name__ == "__main__":
    run_benchmark(measure, __doc__)
