"""A session with nothing to do costs nothing: after its idle timeout the workflow ends."""

from __future__ import annotations

import random
import shutil
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import timedelta

import pytest
from temporalio.client import WorkflowExecutionStatus
from temporalio.testing import WorkflowEnvironment

from perdure import Agent, CommandError, SessionClosedError, Sessions
from perdure.dev_server import temporal_binary
from perdure.session_id import workflow_id
from perdure.stores import MemoryStore
from perdure.worker import build_worker
from tests.engine.agents import echo, scripted, texts
from tests.engine.conftest import Serving, replay_all
from tests.engine.histories import until

HOUR = 3600.0

Leaping = Callable[..., AbstractAsyncContextManager["Leap"]]


class Leap:
    """Sessions on a server whose time is moved by hand."""

    def __init__(self, environment: WorkflowEnvironment, sessions: Sessions) -> None:
        self._environment = environment
        self.sessions = sessions

    async def over(self, seconds: float) -> None:
        await self._environment.sleep(seconds)

    async def has_ended(self, session_id: str) -> bool:
        return await has_ended(self.sessions, session_id)


async def has_ended(sessions: Sessions, session_id: str) -> bool:
    handle = sessions.client.get_workflow_handle(workflow_id(session_id))
    status = (await handle.describe()).status
    assert status in (WorkflowExecutionStatus.RUNNING, WorkflowExecutionStatus.COMPLETED)
    return status == WorkflowExecutionStatus.COMPLETED


@pytest.fixture
def leaping() -> Leaping:
    @asynccontextmanager
    async def leap(agent: Agent) -> AsyncIterator[Leap]:
        beside = temporal_binary().removesuffix("temporal") + "temporal-test-server"
        binary = shutil.which(beside) or shutil.which("temporal-test-server")
        assert binary is not None
        store = MemoryStore()
        async with (
            await WorkflowEnvironment.start_time_skipping(
                test_server_existing_path=binary
            ) as environment,
            build_worker(environment.client, agents=[agent], store=store, task_queue="leap"),
        ):
            yield Leap(environment, Sessions(environment.client, store, task_queue="leap"))

    return leap


async def test_an_idle_session_ends_and_the_next_run_resumes_it(leaping: Leaping) -> None:
    """5.2: it is only the workflow that ends; whoever holds the session need not open it again."""
    async with leaping(echo()) as leap:
        session = await leap.sessions.open("idle", agent="agent", idle_timeout=HOUR)
        await (await session.run("hello"))
        await leap.over(HOUR - 60)
        assert not await leap.has_ended("idle")
        await leap.over(120)
        assert await leap.has_ended("idle")
        with pytest.raises(SessionClosedError):
            await session.status()

        await (await session.run("and again"))
        assert texts(await session.transcript()) == [
            "hello",
            "You said 'hello'",
            "and again",
            "You said 'and again'",
        ]
        await leap.over(HOUR + 60)
        assert await leap.has_ended("idle")  # the timeout is that of the session


async def test_the_next_open_resumes_an_idle_session(leaping: Leaping) -> None:
    """1.3: at the last entry, for whoever opens it."""
    async with leaping(echo()) as leap:
        session = await leap.sessions.open("idle", agent="agent", idle_timeout=HOUR)
        [entry] = await session.append("hello")
        await leap.over(2 * HOUR)
        assert await leap.has_ended("idle")
        again = await leap.sessions.open("idle", agent="agent")
        assert (again.created, await again.leaf_id()) == (False, entry.id)
        await leap.over(2 * HOUR)
        assert not await leap.has_ended("idle")  # this opening asked for no timeout


async def test_every_command_and_every_opening_is_a_sign_of_life(leaping: Leaping) -> None:
    async with leaping(echo()) as leap:
        session = await leap.sessions.open("lively", agent="agent", idle_timeout=HOUR)
        for _ in range(5):
            await leap.over(HOUR - 60)
            await session.append("still here")
            await leap.over(HOUR - 60)
            await leap.sessions.open("lively")
        assert not await leap.has_ended("lively")
        await leap.over(HOUR + 60)
        assert await leap.has_ended("lively")


async def test_a_session_without_a_timeout_never_ends(leaping: Leaping) -> None:
    async with leaping(echo()) as leap:
        session = await leap.sessions.open("patient", agent="agent")
        await leap.over(timedelta(days=3_000).total_seconds())
        assert not await leap.has_ended("patient")
        assert (await (await session.run("hello")))[-1].text == "You said 'hello'"


async def test_a_timeout_that_is_given_later_counts_from_then(leaping: Leaping) -> None:
    """An opening tells a session that rests already."""
    async with leaping(echo()) as leap:
        await leap.sessions.open("late", agent="agent")
        await leap.over(10 * HOUR)
        await leap.sessions.open("late", idle_timeout=HOUR)
        await leap.over(HOUR - 60)
        assert not await leap.has_ended("late")
        await leap.over(120)
        assert await leap.has_ended("late")


async def test_a_busy_session_does_not_end(serving: Serving) -> None:
    """A model call that takes longer than the timeout is no rest."""
    async with serving(scripted("at last", delay=1.5)) as sessions:
        session = await sessions.open("busy", agent="agent", idle_timeout=0.3)
        assert (await (await session.run("hello")))[-1].text == "at last"
        await until(lambda: has_ended(sessions, "busy"))
        runs = sessions.client.list_workflows(f"TaskQueue = '{sessions.task_queue}'")
        await until(lambda: _is_listed(sessions))
        assert len([run async for run in runs]) == 1


async def _is_listed(sessions: Sessions) -> bool:
    runs = sessions.client.list_workflows(f"TaskQueue = '{sessions.task_queue}'")
    return any([run async for run in runs])


async def test_no_command_is_lost_when_it_meets_the_end(serving: Serving) -> None:
    """Commands at any distance from the moment when the workflow ends: each is done once."""
    seed = random.randrange(10**6)
    print(f"seed {seed}")
    distances = random.Random(seed)
    async with serving(echo()) as sessions:
        session = await sessions.open("racing", agent="agent", idle_timeout=0.03)
        for number in range(40):
            await session.append(f"{number}")
            for _ in range(distances.randrange(12)):
                await has_ended(sessions, "racing")  # some milliseconds each
        assert texts(await session.entries()) == [str(number) for number in range(40)]
        await until(lambda: has_ended(sessions, "racing"))
        assert await (await sessions.open("racing", agent="agent")).leaf_id()
        await replay_all(sessions.client, sessions.task_queue)


@pytest.mark.parametrize("seconds", [0.0, -1.0, float("nan"), float("inf"), 1e300])
async def test_a_timeout_that_is_none_is_refused(serving: Serving, seconds: float) -> None:
    async with serving(echo()) as sessions:
        with pytest.raises(CommandError, match="idle_timeout"):
            await sessions.open("wrong", idle_timeout=seconds)
