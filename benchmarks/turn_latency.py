"""Time of a turn, and turns a second, against a bare workflow with the same activities.

All take turns on one server and one worker, round by round, each round in another order. Latency is
from the client's call to the answer in its hands. The bare workflow puts question and answer on
disk as perdure does, or, in one line, does not even that.
"""

from __future__ import annotations

import asyncio
import itertools
import statistics
import time
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

from benchmarks.bare import NOTHING, STORE, BareSession
from benchmarks.conversation import clerk, take_turn, talker
from benchmarks.report import Figure, Scale, run_benchmark
from benchmarks.serving import TASK_QUEUE, serving
from perdure import Sessions

Turn = Callable[[], Awaitable[None]]
_names = itertools.count()


@dataclass(slots=True)
class Pace:
    """Turns that were taken: the seconds of each, and the turns a second of each round."""

    seconds: list[float] = field(default_factory=list)
    rates: list[float] = field(default_factory=list)

    @property
    def latency(self) -> float:
        """Seconds of the median turn."""
        return statistics.median(self.seconds)

    @property
    def rate(self) -> float:
        """Turns a second in the median round."""
        return statistics.median(self.rates)

    async def round(self, takers: Sequence[Turn], turns: int) -> None:
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
    rounds = scale.pick(3, 20)
    async with serving(talker(), clerk()) as sessions:
        ours, bare, idle = await _compete(
            await _sessions(sessions, "talker", 1),
            await _bare(sessions, 1),
            await _bare(sessions, 1, NOTHING),
            turns=10,
            rounds=rounds,
        )
        tool, bare_tool = await _compete(
            await _sessions(sessions, "clerk", 1),
            await _bare(sessions, 1, results=(1_000,)),
            turns=5,
            rounds=rounds,
        )
        figures = [
            Figure("plain turn: latency", ours.latency, bare.latency),
            Figure(
                "plain turn: latency, 95th percentile", _slow(ours.seconds), _slow(bare.seconds)
            ),
            Figure(
                "plain turn: latency, if the bare workflow stores nothing",
                ours.latency,
                idle.latency,
            ),
            Figure("tool turn: latency", tool.latency, bare_tool.latency),
            Figure("turns a second, 1 session", ours.rate, bare.rate),
        ]
        for count, turns in ((16, scale.pick(3, 8)), (64, scale.pick(1, 4))):
            ours, bare = await _compete(
                await _sessions(sessions, "talker", count),
                await _bare(sessions, count),
                turns=turns,
                rounds=scale.pick(2, 7),
            )
            figures += [
                Figure(f"turns a second, {count} sessions", ours.rate, bare.rate),
                Figure(f"plain turn: latency among {count} sessions", ours.latency, bare.latency),
            ]
    return figures


def _slow(seconds: Sequence[float]) -> float:
    return statistics.quantiles(seconds, n=20)[-1]


async def _sessions(sessions: Sessions, agent: str, count: int) -> list[Turn]:
    names = [f"pace-{next(_names)}" for _ in range(count)]
    opened = await asyncio.gather(*(sessions.open(name, agent=agent) for name in names))
    return [partial(take_turn, session) for session in opened]


async def _bare(
    sessions: Sessions, count: int, kind: str = STORE, results: Sequence[int] = ()
) -> list[Turn]:
    return [
        partial(
            (
                await BareSession.open(sessions.client, f"pace-{next(_names)}", TASK_QUEUE, kind)
            ).turn,
            *results,
        )
        for _ in range(count)
    ]


async def _compete(*sides: Sequence[Turn], turns: int, rounds: int) -> list[Pace]:
    """The pace of each side, in rounds in which each taker of a side takes so many turns. The first
    round is not counted.
    """
    paces = [Pace() for _ in sides]
    order = deque(range(len(sides)))
    for number in range(rounds + 1):
        for side in order:
            await (paces[side] if number else Pace()).round(sides[side], turns)
        order.rotate()
    return paces


if __name__ == "__main__":
    run_benchmark(measure, __doc__)
