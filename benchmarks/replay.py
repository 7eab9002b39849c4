"""How fast a long history is replayed, as a worker does that takes a session over.

A session takes all its turns in one run of its workflow, which does not continue as new; its
history is replayed with an empty cache. The yardstick is the history of a bare workflow with the
same turns, replayed in turns with it.
"""

from __future__ import annotations

import statistics
import time

from temporalio.client import WorkflowHistory
from temporalio.worker import Replayer

from benchmarks.bare import BareSession, BareTurns
from benchmarks.conversation import take_turn, talker
from benchmarks.report import Figure, Scale, run_benchmark
from benchmarks.serving import TASK_QUEUE, serving
from perdure import PerdurePlugin
from perdure.session_id import workflow_id
from perdure.stores import MemoryStore

ENDLESS = 50_000
"""History events after which the workflow continues as new, so that it never does."""


async def measure(scale: Scale) -> list[Figure]:
    """One history of each kind, replayed several times."""
    turns = scale.pick(40, 200)
    async with serving(talker(), max_history_events=ENDLESS) as sessions:
        session = await sessions.open("replayed", agent="talker")
        bare = await BareSession.open(sessions.client, "replayed", TASK_QUEUE)
        for _ in range(turns):
            await take_turn(session)
            await bare.turn()
        await session.status()
        handle = sessions.client.get_workflow_handle(workflow_id(session.id))
        history = await handle.fetch_history()
        bare_handle = sessions.client.get_workflow_handle(bare.workflow_id)
        bare_history = await bare_handle.fetch_history()
    ours: list[float] = []
    yardstick: list[float] = []
    for number in range(scale.pick(3, 7) + 1):
        for times, each in ((ours, history), (yardstick, bare_history)):
            seconds = await _replayed(each)
            if number:
                times.append(seconds)
    took, bare_took = statistics.median(ours), statistics.median(yardstick)
    note = f"{turns} turns" if scale is Scale.QUICK else ""
    return [
        Figure(
            "replay: events a second",
            len(history.events) / took,
            len(bare_history.events) / bare_took,
            note,
        ),
        Figure("replay: time for a turn", took / turns, bare_took / turns),
    ]


async def _replayed(history: WorkflowHistory) -> float:
    plugin = PerdurePlugin(agents=[], store=MemoryStore())
    replayer = Replayer(workflows=[BareTurns], plugins=[plugin])
    started = time.perf_counter()
    await replayer.replay_workflow(history)
    return time.perf_counter() - started


if __name__ == "__main__":
    run_benchmark(measure, __doc__)
