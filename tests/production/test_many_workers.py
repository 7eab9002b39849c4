"""Two worker processes on one queue, neither of which remembers a session from step to step."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
import uuid
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

import pytest

from perdure import Entry, MessageEntry, Session, Sessions, Transcript
from perdure.dev_server import DevServer
from perdure.stores import open_store
from tests.engine.agents import texts
from tests.engine.conftest import replay_all
from tests.stores.postgres_server import PostgresServer

ROOT = Path(__file__).parents[2]
TURNS = 4


@contextmanager
def two_workers(*arguments: str) -> Iterator[list[int]]:
    """Both of them, ready; their process IDs."""
    command = [sys.executable, "-m", "tests.production.uncached_worker", *arguments]
    workers = [
        subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) for _ in range(2)
    ]
    try:
        for worker in workers:
            assert worker.stdout is not None
            assert worker.stdout.readline() == "ready\n"
        yield [worker.pid for worker in workers]
    finally:
        for worker in workers:
            worker.kill()
            worker.wait()
            assert worker.stdout is not None
            worker.stdout.close()


@pytest.fixture(params=["files", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path, postgres: PostgresServer) -> str:
    """A store, by its name."""
    if request.param == "files":
        return f"files:{tmp_path}"
    return f"{postgres.url()}&schema={quote(postgres.new_schema())}"


async def test_sessions_stay_correct_when_every_step_lands_on_another_worker(
    server: DevServer, place: str
) -> None:
    """Transcripts in memory are never stale: those of whole logs, and the parts of them that a
    database gives.
    """
    queue = f"test-{uuid.uuid4().hex}"
    with two_workers(server.address, queue, place) as processes:
        sessions = Sessions(server.client, open_store(place), task_queue=queue)
        opened = [await sessions.open(f"s{n}-{uuid.uuid4().hex}", agent="agent") for n in range(4)]
        await asyncio.gather(*(converse(session) for session in opened))
        logs = [await session.entries() for session in opened]
    for log in logs:
        check(log)
    did = Counter(
        pid for log in logs for said in texts(log) for pid in re.findall(r"by (\d+)", said)
    )
    assert did.keys() == {str(process) for process in processes}
    assert min(did.values()) >= 5
    # Steps of one session went back and forth.
    assert all(len(set(processes_of(log))) == 2 for log in logs)
    await replay_all(server.client, queue)


def processes_of(log: list[Entry]) -> list[str]:
    """Who did each step."""
    return re.findall(r"by (\d+)", "\n".join(texts(log)))


async def converse(session: Session) -> None:
    """Turns, and half of them again from where the second ended: a branch, which whoever still has
    the other must not follow.
    """
    for number in range(TURNS):
        await ask(session, number, before=number)
        if number == 1:
            leaf = await session.leaf_id()
    await session.branch(leaf)
    for number in range(2, TURNS):
        await ask(session, number, before=number)


async def ask(session: Session, number: int, *, before: int) -> None:
    said = await (await session.run(f"question {number}"))
    # Four messages a turn: question, call, result, answer; of the last turn three are there.
    assert said[-1].text.startswith(f"{4 * before + 3} messages, question {number}, by ")


def check(log: list[Entry]) -> None:
    """Two branches that share two turns, each in order, nothing twice."""
    transcript = Transcript(log)
    assert len(transcript.leaves()) == 2
    assert len(log) == len({entry.id for entry in log}) == 4 * (TURNS + TURNS - 2)
    for leaf in transcript.leaves():
        path = transcript.path(leaf)
        roles = [entry.message.role for entry in path if isinstance(entry, MessageEntry)]
        assert roles == ["user", "assistant", "tool_result", "assistant"] * TURNS
        asked = [said for said in texts(path) if said.startswith("question")]
        assert asked == [f"question {number}" for number in range(TURNS)]
