"""Workers of loops die, by SIGKILL: nothing that was told is lost, and nothing lives on."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import uuid
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest
from temporalio.worker import Worker

from perdure import Agent, PerdurePlugin, RunEvent, Sessions, Transcript
from perdure.dev_server import DevServer
from perdure.stores import FileStore
from tests.engine.agents import texts
from tests.loops.conftest import Cli, is_alive, until
from tests.loops.loop_worker import Counting


class Stage:
    """A folder, a store, and one worker process at a time."""

    def __init__(self, server: DevServer, folder: Path) -> None:
        self._server = server
        self.folder = folder
        self._queue = f"loops-{uuid.uuid4().hex}"
        self._worker: subprocess.Popen[bytes] | None = None
        self.session_id = uuid.uuid4().hex
        self.store = FileStore(folder / "sessions")
        self.sessions = Sessions(server.client, self.store, task_queue=self._queue)

    async def start_worker(self) -> None:
        (self.folder / "ready").unlink(missing_ok=True)
        arguments = [self._server.address, self._queue, str(self.folder)]
        command = [sys.executable, "-m", "tests.loops.loop_worker", *arguments]
        self._worker = await asyncio.to_thread(subprocess.Popen, command)
        await until((self.folder / "ready").exists)

    def kill_worker(self) -> None:
        if self._worker is not None:
            self._worker.kill()
            self._worker.wait()
            self._worker = None

    async def transcript(self) -> Transcript:
        return Transcript(await self.store.load_entries(self.session_id))


def said(folder: Path) -> list[str]:
    return (folder / "said").read_text().splitlines()


@pytest.fixture
async def stage(server: DevServer, tmp_path: Path) -> AsyncIterator[Stage]:
    stage = Stage(server, tmp_path)
    await stage.start_worker()
    yield stage
    stage.kill_worker()


async def test_a_loop_that_resumes_goes_on_after_what_it_had_stored(stage: Stage) -> None:
    """6.3: what a watcher was told is in the store, once, and on the path."""
    hold = stage.folder / "hold"
    hold.touch()
    session = await stage.sessions.open(stage.session_id, agent="resuming")
    run = await session.run("count")
    events: list[RunEvent] = []
    async for event in run:
        events.append(event)
        if event.type == "message_end" and event.turn == 2 and hold.exists():
            stage.kill_worker()
            hold.unlink()
            await stage.start_worker()

    told = ["1, attempt 1, after 0", "2, attempt 1, after 0"]
    went_on = ["3, attempt 2, after 2", "4, attempt 2, after 2"]
    transcript = await stage.transcript()
    assert texts(transcript.path()) == ["count", *told, *went_on]
    assert len(transcript) == 5
    assert [entry for event in events for entry in event.entries] == transcript.path()


async def test_a_loop_that_restarts_leaves_what_it_had_stored_behind(stage: Stage) -> None:
    """The path holds only the second try; who watches is told that it began again."""
    hold = stage.folder / "hold"
    hold.touch()
    session = await stage.sessions.open(stage.session_id, agent="restarting")
    run = await session.run("count")
    events: list[RunEvent] = []
    async for event in run:
        events.append(event)
        if event.type == "message_end" and event.turn == 2 and hold.exists():
            stage.kill_worker()
            hold.unlink()
            await stage.start_worker()

    told = ["1, attempt 1, after 0", "2, attempt 1, after 0"]
    again = [f"{number}, attempt 2, after 0" for number in range(1, 5)]
    transcript = await stage.transcript()
    assert texts(transcript.path()) == ["count", *again]
    assert texts(transcript.entries) == ["count", *told, *again]
    [restarted] = [place for place, event in enumerate(events) if event.type == "restarted"]
    since = [entry for event in events[restarted:] for entry in event.entries]
    assert [*transcript.path()[:1], *since] == transcript.path()
    assert await session.leaf_id() == transcript.leaf_id


async def test_a_worker_that_is_told_to_stop_hands_its_loop_over(
    server: DevServer, tmp_path: Path
) -> None:
    hold = tmp_path / "hold"
    hold.touch()
    queue, store = f"loops-{uuid.uuid4().hex}", FileStore(tmp_path / "sessions")
    sessions = Sessions(server.client, store, task_queue=queue)
    agent = Agent("agent", model=Counting("resume", tmp_path))

    def worker() -> Worker:
        return Worker(
            server.client,
            task_queue=queue,
            plugins=[PerdurePlugin(agents=[agent], store=store)],
            graceful_shutdown_timeout=timedelta(milliseconds=100),
        )

    async with worker():
        session = await sessions.open(agent="agent")
        run = await session.run("count")
        await until(lambda: (tmp_path / "said").exists() and said(tmp_path)[1:])
    hold.unlink()
    async with worker():
        assert [message.text for message in await run] == [
            "1, attempt 1, after 0",
            "2, attempt 1, after 0",
            "3, attempt 2, after 2",
            "4, attempt 2, after 2",
        ]


async def test_a_command_dies_with_its_worker_and_is_resumed_by_the_next(stage: Stage) -> None:
    """Kill -9 of the worker, in the middle: the command and its children die, too."""
    cli = Cli(stage.folder / "cli")
    cli.hold()
    session = await stage.sessions.open(stage.session_id, agent="command")
    run = await session.run("use tools")
    async for event in run:
        if event.type == "tool_execution_end":
            break
    [first] = cli.calls
    assert is_alive(first["pid"])
    stage.kill_worker()
    await until(lambda: not is_alive(first["pid"]))
    cli.let_go()
    await stage.start_worker()

    assert [message.text for message in await run] == [
        "Looking.",
        "a.txt\nb.txt",
        "I was told: use tools | Continue.",
    ]
    assert cli.resumed(1) != ""
    transcript = await stage.transcript()
    assert transcript.path() == transcript.entries


async def test_a_child_of_a_command_dies_with_the_worker(stage: Stage) -> None:
    cli = Cli(stage.folder / "cli")
    session = await stage.sessions.open(stage.session_id, agent="command")
    run = await session.run("hang, stubborn")
    child = await cli.child()
    [first] = cli.calls
    stage.kill_worker()
    await until(lambda: not is_alive(first["pid"]) and not is_alive(child))
    await stage.start_worker()
    await session.cancel()
    assert (await run.outcome()).error is not None
