"""Time of a turn, and turns a second, against a bare workflow with the same activities.

Both take turns on one server and one worker, round by round, now the one first and now the other.
Latency is from the client's call to the answer in its hands. The yardstick stores nothing and reads
nothing; perdure stores the question and the answer, and reads the answer back.
"""

from __future__ import annotations

import asyncio
import itertools
import statistics
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from benchmarks.bare import BareSession
from benchmarks.conversation import take_turn, talker
from benchmarks.report import Budget, Figure, Scale, at_least_times, at_most_times, run_benchmark
from benchmarks.serving import TASK_QUEUE, serving
from perdure import Session, Sessions

Turn = Callable[[], Awaitable[None]]
_names = itertools.count()


@dataclass(slots=True)
class Pace:
    """Turns that were taken: the seconds of each, and the turns a second of each round."""

    seconds: list[float] = field(default_factory=list)
    rates: list[float] = field(default_factory=list)

    async def round(self, takers: list[Turn], turns: int) -> None:
        """Let every taker take so many turns, one after the other, side by side with the others."""

        async def take(turn: Turn) -> None:
            for _ in range(turns):
                started = time.perf_counter()
                await turn()
                self.seconds.append(time.perf_counter() - started)

        started = time.perf_counter()
        await asyncio.gather(*(take(turn) for turn in takers))
        self.rates.append(len(takers) * turns / (time.perf_counter() - started))


async def measure(scale: Scale) -> list[Figure]:
    """One session at a time, then many."""
    figures: list[Figure] = []
    async with serving(talker()) as sessions:
        ours, bare = await _compete(sessions, 1, turns=20, rounds=scale.pick(3, 9))
        figures += _latency(ours, bare)
        for count in (16, 64)[: scale.pick(1, 2)]:
            ours, bare = await _compete(sessions, count, turns=8, rounds=scale.pick(3, 7))
            figures.append(
                Figure(
                    f"turns a second of {count} sessions",
                    statistics.median(ours.rates),
                    "/s",
                    at_least_times(0.75) if count == 16 else None,
                    statistics.median(bare.rates),
                )
            )
    return figures


def _latency(ours: Pace, bare: Pace) -> list[Figure]:
    points: list[tuple[str, Callable[[list[float]], float], Budget | None]] = [
        ("median", statistics.median, at_most_times(1.3)),
        ("mean", statistics.fmean, None),
        ("95th percentile", lambda seconds: statistics.quantiles(seconds, n=20)[-1], None),
        ("worst", max, None),
    ]
    return [
        Figure(f"latency of a turn, {name}", point(ours.seconds), "s", budget, point(bare.seconds))
        for name, point, budget in points
    ]


async def _compete(sessions: Sessions, count: int, *, turns: int, rounds: int) -> tuple[Pace, Pace]:
    """Rounds of so many sessions and so many bare workflows. The first of each is not counted."""
    ids = [f"pace-{next(_names)}" for _ in range(count)]
    opened = await asyncio.gather(*(sessions.open(name, agent="talker") for name in ids))
    bare = await asyncio.gather(
        *(BareSession.open(sessions.client, name, TASK_QUEUE) for name in ids)
    )
    ours, theirs = Pace(), Pace()
    sides: list[tuple[Pace, list[Turn]]] = [
        (ours, [_turn_of(session) for session in opened]),
        (theirs, [session.turn for session in bare]),
    ]
    for _, takers in sides:
        await Pace().round(takers, turns)
    for _ in range(rounds):
        for pace, takers in sides:
            await pace.round(takers, turns)
        sides.reverse()
    await asyncio.gather(*(session.close() for session in opened))
    await asyncio.gather(*(session.close() for session in bare))
    return ours, theirs


def _turn_of(session: Session) -> Turn:
    return lambda: take_turn(session)


if __name__ == "__main__":
    run_benchmark(measure, __doc__)
