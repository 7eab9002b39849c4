"""The server goes down and comes back: a real one, killed, over the database that it left."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from temporalio.client import WorkflowUpdateFailedError
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError, RPCStatusCode

from chaos.server import TemporalServer
from perdure import Sessions
from perdure.remote import _persist
from perdure.stores import MemoryStore
from perdure.worker import build_worker
from tests.engine.agents import scripted


@pytest.fixture
async def mortal(tmp_path: Path) -> AsyncIterator[TemporalServer]:
    server = TemporalServer(tmp_path)
    await server.start()
    yield server
    await server.kill()


async def test_a_server_that_is_killed_and_started_again_costs_nobody_anything(
    mortal: TemporalServer,
) -> None:
    """Who waits goes on waiting, who sends is heard, and the run that was under way is done."""
    client = await mortal.connect()
    store = MemoryStore()
    agent = scripted(lambda messages: "ok", delay=1.0)
    async with build_worker(client, agents=[agent], store=store):
        sessions = Sessions(client, store)
        session = await sessions.open("through-it-all", agent="agent")
        awaited = await session.run("before")
        waiting = asyncio.ensure_future(awaited.messages())
        await mortal.kill()
        sent = [asyncio.ensure_future(session.run("meanwhile"))]
        sent.append(asyncio.ensure_future(session.run("meanwhile, too")))
        await mortal.start()

        [answer] = await waiting
        assert answer.text == "ok"
        for run in await asyncio.gather(*sent):
            assert [message.text for message in await run] == ["ok"]
        assert len(await session.entries()) == 6


@pytest.mark.parametrize(
    "trouble",
    [
        RPCError("transport error", RPCStatusCode.UNKNOWN, b""),
        RPCError("h2 protocol error: broken pipe", RPCStatusCode.INTERNAL, b""),
        RPCError("operation was canceled", RPCStatusCode.CANCELLED, b""),
        WorkflowUpdateFailedError(ApplicationError("nobody did", type="UnprocessedUpdate")),
    ],
    ids=["cut", "broken", "canceled", "passed over"],
)
async def test_what_a_server_says_when_it_goes_down_is_no_refusal(trouble: Exception) -> None:
    troubles = [trouble, trouble]

    async def call() -> str:
        if troubles:
            raise troubles.pop()
        return "here"

    assert await _persist(call) == "here"
