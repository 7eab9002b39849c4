"""The model is honest: what a real server and a real worker make of a scenario is among the ends
that the explorer found for it.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from perdure import Agent, Message, PerdureError, Sessions, tool
from perdure.dev_server import DevServer
from perdure.models.scripted import Answer, ScriptedModel, call
from perdure.protocol import ForkCommand
from perdure.remote import RemoteSession
from perdure.session_id import workflow_id
from perdure.stores import MemoryStore
from perdure.worker import build_worker
from tests.model import scenarios
from tests.model.explorer import Log, explore, log_of
from tests.model.processes import AGENT
from tests.model.world import Client, Scenario

HONEST = [
    Scenario("two clients", scenarios.TWO_APPENDS),
    Scenario("two clients, no continue-as-new", scenarios.TWO_APPENDS, renews=False),
    Scenario("a tool", scenarios.CHARGE),
    Scenario("a fork", scenarios.FORK),
    Scenario("cancelling", scenarios.CANCEL),
]


@tool
async def charge() -> str:
    """Charge somebody."""
    return "did charge 1"


def agent() -> Agent:
    """It says what the model of the explorer says."""

    def answer(messages: list[Message]) -> Answer:
        last = messages[-1]
        if last.role == "user" and last.text.startswith("charge"):
            return [call("charge", last.text)]
        return f"re: {last.text}"

    return Agent(AGENT, model=ScriptedModel(answer), tools=[charge])


@asynccontextmanager
async def _served(server: DevServer, scenario: Scenario) -> AsyncIterator[Sessions]:
    queue, store = f"model-{uuid.uuid4().hex}", MemoryStore()
    events = 1 if scenario.renews else 10_000
    async with build_worker(server.client, agents=[agent()], store=store, task_queue=queue):
        yield Sessions(server.client, store, task_queue=queue, max_history_events=events)


async def _send(sessions: Sessions, session_id: str, client: Client, pause: float) -> None:
    await asyncio.sleep(pause)
    remote = RemoteSession(sessions.client, workflow_id(session_id), sessions.task_queue)
    for command in client.commands:
        try:
            handle = await remote.send(command)
            await remote.outcome(command.command_id, handle)
        except PerdureError:
            continue  # there was nothing to cancel any more


@pytest.mark.parametrize("scenario", HONEST, ids=lambda scenario: scenario.name)
async def test_what_really_happens_is_among_what_was_explored(
    server: DevServer, scenario: Scenario
) -> None:
    """Several times, with the clients at it at once and a little apart."""
    explored = await asyncio.to_thread(explore, scenario)
    assert explored.counterexample is None
    real: set[Log] = set()
    async with _served(server, scenario) as sessions:
        for pause in (0.0, 0.01, 0.04):
            fresh = _with_fresh_children(scenario)
            session = await sessions.open(f"honest-{uuid.uuid4().hex}", agent=AGENT)
            sending = (
                _send(sessions, session.id, client, pause * number)
                for number, client in enumerate(fresh.clients)
            )
            await asyncio.gather(*sending)
            real.add(log_of(await session.entries()))
            await session.close()
    assert real <= explored.logs


def _with_fresh_children(scenario: Scenario) -> Scenario:
    """The IDs of sessions that forks make have to be new on a server that others use, too."""
    clients = [
        replace(
            client,
            commands=tuple(
                scenarios.fork(command.command_id, f"child-{uuid.uuid4().hex}")
                if isinstance(command, ForkCommand)
                else command
                for command in client.commands
            ),
        )
        for client in scenario.clients
    ]
    return replace(scenario, clients=tuple(clients))
