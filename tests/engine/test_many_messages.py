"""A session takes more messages in its life than the engine allows one run of a workflow.

That is 10,000 signals and 2,000 updates. By default a tenth of what goes beyond it is sent, so that
the suite stays quick; `PERDURE_MANY_MESSAGES=1` sends all of it (six minutes on two cores).
"""

from __future__ import annotations

import asyncio
import os
from collections import Counter

import pytest
from temporalio.client import Client

from perdure import Session
from perdure.dev_server import DevServer
from perdure.session_id import workflow_id
from perdure.stores import MemoryStore
from tests.engine.agents import echo, texts
from tests.engine.conftest import Serving
from tests.engine.histories import counted, until

IS_FULL = bool(os.environ.get("PERDURE_MANY_MESSAGES"))
SIGNALS = 12_000 if IS_FULL else 1_200
UPDATES = 3_000 if IS_FULL else 300
CLIENTS = 6
MOST_WAITING = 2_000


class Sender:
    """A client that numbers what it sends, and pauses while the session has much to do."""

    def __init__(self, client: Client, session: Session, name: str) -> None:
        self.handle = client.get_workflow_handle(workflow_id(session.id))
        self.session = session
        self.name = name

    async def signal(self, count: int) -> None:
        for number in range(count):
            if number % 100 == 0:
                await until(self._has_room, seconds=300)
            await self.handle.signal("append", f"{self.name}/{number}")

    async def update(self, count: int) -> None:
        for number in range(count):
            await self.session.append(f"{self.name}/{number}")

    async def _has_room(self) -> bool:
        return (await self.session.status()).waiting < MOST_WAITING


@pytest.mark.timeout(900)
async def test_a_session_outlives_the_limits_of_one_workflow_run(
    serving: Serving, server: DevServer
) -> None:
    """All done once, and those of each client in its order."""
    async with serving(echo(), over=MemoryStore()) as sessions:
        session = await sessions.open("much-talk")
        clients = [await Client.connect(server.address) for _ in range(CLIENTS)]
        signalling = [Sender(client, session, f"s{n}") for n, client in enumerate(clients)]
        updating = [Sender(client, session, f"u{n}") for n, client in enumerate(clients)]
        await asyncio.gather(
            *(sender.signal(SIGNALS // CLIENTS) for sender in signalling),
            *(sender.update(UPDATES // CLIENTS) for sender in updating),
        )

        async def is_done() -> bool:
            status = await session.status()
            return status.state == "idle" and not status.waiting

        await until(is_done, seconds=600)
        said = [words.split("/") for words in texts(await session.transcript())]
        assert Counter(name for name, _ in said) == Counter(
            {sender.name: SIGNALS // CLIENTS for sender in signalling}
            | {sender.name: UPDATES // CLIENTS for sender in updating}
        )
        for sender in (*signalling, *updating):
            own = [int(number) for name, number in said if name == sender.name]
            assert own == list(range(len(own)))
        found = await counted(sessions.client, workflow_id(session.id))
        assert found["WORKFLOW_EXECUTION_SIGNALED"] >= SIGNALS
        assert found["WORKFLOW_TASK_FAILED"] == 0
        status = await session.status()
        assert (status.last_error, status.waiting, status.state) == (None, 0, "idle")
