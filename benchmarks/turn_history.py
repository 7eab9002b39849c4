"""History of a turn: events and bytes, over all runs of the workflow.

A plain turn is a question of 200 characters and an answer of 400. A tool turn has one tool call
with a result of 1,000 characters before the answer. What continue-as-new costs is spread over the
turns.
"""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.conversation import clerk, take_turns, talker
from benchmarks.histories import HistoryTotal, history_total
from benchmarks.report import Budget, Figure, Scale, at_most, run_benchmark
from benchmarks.serving import serving
from perdure import Session, Sessions

WINDOW = 20
"""Plain turns that are measured together: those around the one that the figure is named after."""

TOOL_TURNS = 60
"""Tool turns that are measured together, in as many cycles of continue-as-new as even out."""


async def measure(scale: Scale) -> list[Figure]:
    """Plain turns early and late in a long conversation, and tool turns."""
    places = [10, 200, 2_000][: scale.pick(2, 2, 3)]
    async with serving(talker(), clerk()) as sessions:
        plain = await sessions.open("plain", agent="talker")
        figures = await _around(sessions, plain, places)
        tools = await sessions.open("tools", agent="clerk")
        # As many as make what is carried over a continue-as-new as large as it gets.
        await take_turns(tools, 30)
        used = await _spent(sessions, tools, TOOL_TURNS)
    budgets = (at_most(28), at_most(9_000))
    return [*figures, *_per_turn("tool turn", used, TOOL_TURNS, *budgets)]


async def _around(sessions: Sessions, session: Session, places: Sequence[int]) -> list[Figure]:
    figures: list[Figure] = []
    done = 0
    for place in places:
        start = place - WINDOW // 2
        await take_turns(session, start - done)
        used = await _spent(sessions, session, WINDOW)
        done = start + WINDOW
        budgets = (at_most(15), at_most(5_000))
        figures += _per_turn(f"plain turn around {place:,}", used, WINDOW, *budgets)
    return figures


async def _spent(sessions: Sessions, session: Session, turns: int) -> HistoryTotal:
    before = await history_total(sessions.client, session)
    await take_turns(session, turns)
    return (await history_total(sessions.client, session)).since(before)


def _per_turn(
    what: str, used: HistoryTotal, turns: int, events: Budget, size: Budget
) -> list[Figure]:
    return [
        Figure(f"{what}: events", used.events / turns, "", events),
        Figure(f"{what}: bytes", used.size_bytes / turns, "bytes", size),
    ]


if __name__ == "__main__":
    run_benchmark(measure, __doc__)
