"""History of a turn: events, bytes and actions, over all runs of the workflow.

A plain turn is a question of 200 characters and an answer of 400. A tool turn has one tool call
with a result of 1,000 characters before the answer. What continue-as-new costs is spread over the
turns. The yardstick is a bare workflow with the same activities, which never continues as new.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import count

from benchmarks.bare import BareSession
from benchmarks.conversation import clerk, researcher, take_turn, take_turns, talker
from benchmarks.histories import Spent, action_total, chain_total, spent_by
from benchmarks.report import Figure, Scale, run_benchmark
from benchmarks.serving import TASK_QUEUE, serving
from perdure import Session, Sessions

WINDOW = 20
"""Plain turns that are measured together: those around the one that the line is named after."""

TOOL_TURNS = 60
"""Tool turns that are measured together, in as many cycles of continue-as-new as even out."""

STEPS = 50
"""Tool calls of one run, of which each costs the same."""

_numbers = count()


async def measure(scale: Scale) -> list[Figure]:
    """Plain turns early and late in a long conversation, tool turns, steps of a long run."""
    places = [10, 200, 2_000] if scale is Scale.FULL else [10, 60]
    lines = ("10", "200", "2,000")
    async with serving(talker(), clerk(), researcher(STEPS)) as sessions:
        bare_plain, bare_tool = await _bare(sessions, ()), await _bare(sessions, (1_000,))
        bare_steps = await _bare(sessions, (1_000,) * STEPS, turns=1)
        plain = await sessions.open("plain", agent="talker")
        around = await _around(sessions, plain, places)
        tools = await sessions.open("tools", agent="clerk")
        # As many as make what is carried over a continue-as-new as large as it gets.
        await take_turns(tools, 30)
        tool = await _spent(sessions, tools, TOOL_TURNS)
        steps = await sessions.open("steps", agent="researcher")
        whole = await _spent(sessions, steps, 1)
    figures: list[Figure] = []
    for line, place, spent in zip(lines, places, around, strict=False):
        what, note = f"plain turn, around turn {line}", "" if f"{place:,}" == line else f"{place}"
        figures += [
            Figure(f"{what}: events", spent.events, bare_plain.events, note),
            Figure(f"{what}: history", spent.size_bytes, bare_plain.size_bytes, note),
        ]
    step, bare_step = _step(whole, around[0]), _step(bare_steps, bare_plain)
    what = "step of a long run, a model call and its tool"
    return [
        *figures,
        Figure("plain turn: Temporal actions", around[-1].actions, bare_plain.actions),
        Figure("tool turn: events", tool.events, bare_tool.events),
        Figure("tool turn: history", tool.size_bytes, bare_tool.size_bytes),
        Figure("tool turn: Temporal actions", tool.actions, bare_tool.actions),
        Figure(f"{what}: events", step.events, bare_step.events),
        Figure(f"{what}: history", step.size_bytes, bare_step.size_bytes),
    ]


async def _around(sessions: Sessions, session: Session, places: Sequence[int]) -> list[Spent]:
    found: list[Spent] = []
    done = 0
    for place in places:
        start = place - WINDOW // 2
        await take_turns(session, start - done)
        found.append(await _spent(sessions, session, WINDOW))
        done = start + WINDOW
    return found


async def _spent(sessions: Sessions, session: Session, turns: int) -> Spent:
    return await spent_by(sessions.client, session, partial(take_turn, session), turns)


async def _bare(sessions: Sessions, results: Sequence[int], turns: int = 5) -> Spent:
    client = sessions.client
    session = await BareSession.open(client, f"history-{next(_numbers)}", TASK_QUEUE)
    await session.turn(*results)
    before = await chain_total(client, session.workflow_id)
    actions = await action_total(client, session.workflow_id)
    for _ in range(turns):
        await session.turn(*results)
    used = (await chain_total(client, session.workflow_id)).since(before)
    actions = await action_total(client, session.workflow_id) - actions
    await session.close()
    return Spent(used.events / turns, used.size_bytes / turns, actions / turns)


def _step(whole: Spent, plain: Spent) -> Spent:
    """One of the steps of a run, of which the rest is a plain turn."""
    return Spent(
        (whole.events - plain.events) / STEPS,
        (whole.size_bytes - plain.size_bytes) / STEPS,
        (whole.actions - plain.actions) / STEPS,
    )


if __name__ == "__main__":
    run_benchmark(measure, __doc__)
