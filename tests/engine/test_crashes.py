"""Workers die, and it costs nothing: real processes, killed with SIGKILL at chosen points."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import uuid
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from perdure import Message, Sessions, Transcript
from perdure.dev_server import DevServer
from perdure.stores import FileStore


class Stage:
    """A folder with a journal and a store, and the worker processes that play on it."""

    worker_module = "tests.engine.held_worker"

    def __init__(self, server: DevServer, folder: Path) -> None:
        self._server = server
        self._folder = folder
        self._queue = f"crash-{uuid.uuid4().hex}"
        self._workers: list[subprocess.Popen[bytes]] = []
        self.session_id = uuid.uuid4().hex
        self.store = FileStore(folder / "sessions")
        self.sessions = Sessions(server.client, self.store, task_queue=self._queue)

    async def start_worker(self) -> None:
        ready = self.steps()["ready"]
        arguments = [self._server.address, self._queue, str(self._folder)]
        command = [sys.executable, "-m", self.worker_module, *arguments]
        self._workers.append(await asyncio.to_thread(subprocess.Popen, command))
        await self.reached("ready", ready + 1)

    def kill_workers(self) -> None:
        while self._workers:
            worker = self._workers.pop()
            worker.kill()
            worker.wait()

    def freeze_worker(self) -> subprocess.Popen[bytes]:
        """Stop the worker where it is, as a machine does that sleeps. It may be woken up."""
        worker = self._workers[-1]
        worker.send_signal(signal.SIGSTOP)
        return worker

    def hold(self, step: str) -> None:
        (self._folder / f"hold-{step}").touch()

    def let_go(self, step: str) -> None:
        (self._folder / f"hold-{step}").unlink()

    async def reached(self, step: str, times: int = 1) -> None:
        async with asyncio.timeout(30):
            while self.steps()[step] < times:  # noqa: ASYNC110 - another process takes them
                await asyncio.sleep(0.02)

    async def replace_worker_at(self, step: str) -> None:
        """Kill the worker at a step where it is held, and start another that is not."""
        await self.reached(step)
        self.kill_workers()
        self.let_go(step)
        await self.start_worker()

    def steps(self) -> Counter[str]:
        journal = self._folder / "journal"
        lines = journal.read_text().splitlines() if journal.exists() else []
        return Counter(line.split()[0] for line in lines)

    async def log(self) -> list[Message]:
        """The messages of the log, which is one chain without a branch and without a copy."""
        entries = await self.store.load_entries(self.session_id)
        transcript = Transcript(entries)
        assert transcript.path(transcript.leaf_id) == entries
        assert len({entry.id for entry in entries}) == len(entries)
        return transcript.model_view(transcript.leaf_id)


@pytest.fixture
async def stage(server: DevServer, tmp_path: Path) -> AsyncIterator[Stage]:
    stage = Stage(server, tmp_path)
    await stage.start_worker()
    yield stage
    stage.kill_workers()


DONE = ["go", "Working.", "charged 5", "shoe found", "All done."]
INTERRUPTED = ["go", "Working.", "tool execution interrupted", "shoe found", "All done."]


async def test_a_worker_that_dies_in_a_model_call_costs_that_call(stage: Stage) -> None:
    """The call is made again; nothing is stored twice, and no other call is repeated."""
    stage.hold("model-1")
    session = await stage.sessions.open(stage.session_id, agent="held")
    run = await session.run("go")
    await stage.replace_worker_at("model-1")

    assert (await run)[-1].text == "All done."
    assert sorted(message.text for message in await stage.log()) == sorted(DONE)
    steps = stage.steps()
    assert (steps["model-0"], steps["model-1"], steps["charge"], steps["look_up"]) == (1, 2, 1, 1)


async def test_a_tool_whose_worker_dies_is_answered_as_interrupted_and_the_run_goes_on(
    stage: Stage,
) -> None:
    """At most once: the model reads the interruption, in the same run."""
    stage.hold("charge")
    session = await stage.sessions.open(stage.session_id, agent="held")
    run = await session.run("go")
    await stage.replace_worker_at("charge")

    assert (await run)[-1].text == "All done."
    log = await stage.log()
    assert sorted(message.text for message in log) == sorted(INTERRUPTED)
    [interrupted] = [message for message in log if message.is_error]
    assert (interrupted.role, interrupted.tool_name) == ("tool_result", "charge")
    steps = stage.steps()
    assert (steps["charge"], steps["model-0"], steps["model-1"]) == (1, 1, 1)


async def test_an_idempotent_tool_whose_worker_dies_runs_again(stage: Stage) -> None:
    stage.hold("look_up")
    session = await stage.sessions.open(stage.session_id, agent="held")
    run = await session.run("go")
    await stage.reached("stored-tool_result")  # the other call must not be under way
    await stage.replace_worker_at("look_up")

    assert (await run)[-1].text == "All done."
    assert sorted(message.text for message in await stage.log()) == sorted(DONE)
    steps = stage.steps()
    assert (steps["charge"], steps["look_up"]) == (1, 2)


@pytest.mark.parametrize("role", ["user", "assistant", "tool_result"])
async def test_an_append_that_the_engine_never_heard_of_is_not_repeated(
    stage: Stage, role: str
) -> None:
    """Between the store's commit and the end of the workflow task: the repetition adds nothing,
    and the receipt is of what the log has, down to its time.
    """
    stage.hold(f"stored-{role}")
    session = await stage.sessions.open(stage.session_id, agent="held")
    sending = asyncio.create_task(session.run("go"))
    await stage.replace_worker_at(f"stored-{role}")

    run = await sending
    receipts = [entry async for event in run for entry in event.entries]
    assert receipts == await stage.store.load_entries(stage.session_id)
    assert (await run)[-1].text == "All done."
    assert sorted(message.text for message in await stage.log()) == sorted(DONE)
    steps = stage.steps()
    assert (steps["model-0"], steps["model-1"], steps["charge"]) == (1, 1, 1)


async def test_what_a_watcher_saw_before_and_after_a_crash_is_the_log(stage: Stage) -> None:
    """6.3: receipts go on where they stopped, in the order of the path."""
    stage.hold("model-1")
    session = await stage.sessions.open(stage.session_id, agent="held")
    run = await session.run("go")
    dying = asyncio.create_task(stage.replace_worker_at("model-1"))
    receipts = [entry async for event in run for entry in event.entries]
    await dying
    assert receipts == await stage.store.load_entries(stage.session_id)


async def test_a_worker_that_dies_while_the_model_speaks_is_heard_no_more(stage: Stage) -> None:
    """Whoever watches is told to forget what it said, and gets the whole; it is stored once."""
    stage.hold("half-0")
    session = await stage.sessions.open(stage.session_id, agent="held")
    told = []
    replacing: asyncio.Task[None] | None = None
    async for event in await session.run("go", stream=True):
        if event.type == "message_update" and event.turn == 1:
            told.append("reset" if event.delta is None else event.delta.text)
            replacing = replacing or asyncio.create_task(stage.replace_worker_at("half-0"))
        if event.type == "message_end" and event.turn == 1 and not event.tool_call_id:
            assert event.message is not None
            told.append(event.message.text)
    assert replacing is not None
    await replacing

    assert told == ["Wor", "reset", "Wor", "Working."]
    assert sorted(message.text for message in await stage.log()) == sorted(DONE)
    assert (stage.steps()["model-0"], stage.steps()["model-1"]) == (2, 1)


async def test_a_worker_that_was_taken_for_dead_adds_nothing_when_it_wakes_up(stage: Stage) -> None:
    """Another one made its call again, and the log goes on from that one's answer."""
    stage.hold("model-0")
    session = await stage.sessions.open(stage.session_id, agent="witness")
    run = await session.run("Who are you?")
    await stage.reached("model-0")
    frozen = stage.freeze_worker()
    stage.let_go("model-0")
    await stage.start_worker()
    [answer] = await run

    frozen.send_signal(signal.SIGCONT)
    await stage.reached("said-0", 2)
    await (await session.run("And now?"))
    said = [message.text for message in await stage.log()]
    assert len(said) == 4
    assert said[1] == answer.text != f"I am {frozen.pid}."
