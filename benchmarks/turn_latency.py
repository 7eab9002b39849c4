"""Time of a turn, and turns a second, against a bare workflow with the same activities.

All take turns on one server and one worker, round by round, each round in another order. Latency is
from the client's call to the answer in its hands. The bare workflow puts question and answer on
disk as perdure does, or, as told apart below, does not even that.
"""

from __future__ import annotations

import asyncio
import itertools
import statistics
import time
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from benchmarks.bare import NOTHING, STORE, BareSession
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
        ours, bare, idle = await _compete(
            sessions, 1, [STORE, NOTHING], turns=10, rounds=scale.pick(6, 20)
        )
        figures += _latency(ours, bare, idle)
        for count in (16, 64)[: scale.pick(1, 2)]:
            ours, bare = await _compete(sessions, count, [STORE], turns=8, rounds=scale.pick(3, 7))
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


def _latency(ours: Pace, bare: Pace, idle: Pace) -> list[Figure]:
    points: list[tuple[str, Callable[[list[float]], float], Pace, Budget | None]] = [
        ("median", statistics.median, bare, at_most_times(1.3)),
        ("median, if the bare one stores nothing", statistics.median, idle, None),
        ("mean", statistics.fmean, bare, None),
        ("95th percentile", lambda seconds: statistics.quantiles(seconds, n=20)[-1], bare, None),
        ("worst", max, bare, None),
    ]
    return [
        Figure(f"latency of a turn, {name}", point(ours.seconds), "s", budget, point(other.seconds))
        for name, point, other, budget in points
    ]


async def _compete(
    sessions: Sessions, count: int, bare_kinds: Sequence[str], *, turns: int, rounds: int
) -> list[Pace]:
    """Rounds of so many sessions, and of as many bare workflows of each kind, whose local activity
    is given. The first round is not counted. Answers with the pace of each side, perdure's first.
    """
    ids = [f"pace-{next(_names)}" for _ in range(count)]
    opened = await asyncio.gather(*(sessions.open(name, agent="talker") for name in ids))
    bare = [
        [await BareSession.open(sessions.client, name, TASK_QUEUE, kind) for name in ids]
        for kind in bare_kinds
    ]
    sides = [[_turn_of(session) for session in opened]]
    sides += [[session.turn for session in each] for each in bare]
    paces = [Pace() for _ in sides]
    order = deque(range(len(sides)))
    for number in range(rounds + 1):
        for side in order:
            await (paces[side] if number else Pace()).round(sides[side], turns)
        order.rotate()
    await asyncio.gather(*(session.close() for session in opened))
    await asyncio.gather(*(session.close() for each in bare for session in each))
    return paces


def _turn_of(session: Session) -> Turn:
    return lambda: take_turn(session)


if __name__ == "__main__":
    run_benchmark(measure, __doc__)
