"""A long run, on workers that are killed at any moment.

By default the run has 200 steps and 3 workers die; `PERDURE_MANY_STEPS=1` makes it 1,000 steps and
10 deaths (some minutes on two cores). The moments are drawn with a seed, which a failure prints;
`PERDURE_SEED` sets it.
"""

from __future__ import annotations

import asyncio
import os
import random
import subprocess
import sys
import uuid
from pathlib import Path

import pytest

from perdure import RunEvent, Sessions, Transcript
from perdure.dev_server import DevServer
from perdure.session_id import workflow_id
from perdure.stores import FileStore
from tests.engine.agents import shape, texts
from tests.engine.conftest import replay_all
from tests.engine.histories import counted, histories

IS_FULL = bool(os.environ.get("PERDURE_MANY_STEPS"))
STEPS = 1_000 if IS_FULL else 200
DEATHS = 10 if IS_FULL else 3
EVENTS_OF_A_STEP = 8
SEED = int(os.environ.get("PERDURE_SEED", "3"))


class Crew:
    """Two worker processes, of which one may be replaced without a word to it."""

    def __init__(self, arguments: list[str]) -> None:
        self._command = [sys.executable, "-m", "tests.engine.stepping_worker", *arguments]
        self._workers: list[subprocess.Popen[str]] = []

    async def hire(self) -> None:
        worker = await asyncio.to_thread(
            subprocess.Popen, self._command, stdout=subprocess.PIPE, text=True
        )
        self._workers.append(worker)
        assert worker.stdout is not None
        assert await asyncio.to_thread(worker.stdout.readline) == "ready\n"

    async def replace(self, place: int) -> None:
        self._dismiss(self._workers.pop(place))
        await self.hire()

    def dismiss_all(self) -> None:
        while self._workers:
            self._dismiss(self._workers.pop())

    def _dismiss(self, worker: subprocess.Popen[str]) -> None:
        worker.kill()
        worker.wait()
        assert worker.stdout is not None
        worker.stdout.close()


@pytest.mark.timeout(1800 if IS_FULL else 180)
async def test_a_run_of_many_steps_outlives_its_workers_and_its_histories(
    server: DevServer, tmp_path: Path
) -> None:
    """6.3, 6.5: the log is complete and in order, nothing twice; who watches sees each event once,
    in order.
    """
    queue = f"steps-{uuid.uuid4().hex}"
    store = FileStore(tmp_path / "sessions")
    crew = Crew([server.address, queue, str(tmp_path), str(STEPS)])
    print(f"PERDURE_SEED={SEED}")
    moments = random.Random(SEED)
    deaths = sorted(moments.sample(range(STEPS * EVENTS_OF_A_STEP), DEATHS))
    events: list[RunEvent] = []
    try:
        await asyncio.gather(crew.hire(), crew.hire())
        session = await Sessions(server.client, store, task_queue=queue).open(
            "many-steps", agent="stepping"
        )
        run = await session.run("go")
        async for event in run:
            events.append(event)
            while deaths and deaths[0] < len(events):
                deaths.pop(0)
                await crew.replace(moments.randrange(2))
        answer = (await run)[-1].text
    finally:
        crew.dismiss_all()

    log = await store.load_entries("many-steps")
    assert Transcript(log).path(log[-1].id) == log
    assert len({entry.id for entry in log}) == len(log)
    said = [word for number in range(STEPS) for word in ("", f"tick {number}")]
    assert texts(log) == ["go", *said, "done"]
    assert answer == "done"

    assert [entry for event in events for entry in event.entries] == log
    turn = ["turn_start", "message_start", "message_end*"]
    tools = ["tool_execution_start", "tool_execution_end", "message_start", "message_end*"]
    assert shape(events) == [
        "agent_start*",
        *[*turn, *tools, "turn_end"] * STEPS,
        *turn,
        "turn_end",
        "agent_end",
    ]
    lengths = [len(run) async for run in histories(server.client, workflow_id("many-steps"))]
    assert len(lengths) > STEPS / 50  # it was renewed many times,
    assert max(lengths) < 1_000  # and no part of it grew long
    assert (await counted(server.client, workflow_id("many-steps")))["WORKFLOW_TASK_FAILED"] == 0
    await replay_all(server.client, queue)
