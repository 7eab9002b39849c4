"""A session from end to end over PostgreSQL, while a worker and the database die."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import uuid

from perdure import Sessions, Transcript
from perdure.dev_server import DevServer
from perdure.stores import PostgresStore
from tests.stores.postgres_server import PostgresServer
from tests.stores.postgres_worker import STEPS


async def test_a_run_survives_a_worker_and_the_database(
    server: DevServer, postgres: PostgresServer
) -> None:
    """2.6, 2.8, 6.3: each step is stored once, on one path, whichever worker took it."""
    session_id, queue = uuid.uuid4().hex, f"postgres-{uuid.uuid4().hex}"
    url = f"{postgres.url()}&schema={postgres.new_schema().replace(' ', '_')}"
    command = [sys.executable, "-m", "tests.stores.postgres_worker", server.address, queue, url]

    async with PostgresStore(url) as store:

        async def stored(count: int) -> None:
            while len(await store.load_entries(session_id)) < count:  # noqa: ASYNC110 - a worker appends
                await asyncio.sleep(0.02)

        workers = [subprocess.Popen(command) for _ in range(2)]
        try:
            sessions = Sessions(server.client, store, task_queue=queue)
            session = await sessions.open(session_id, agent="stepping")
            run = await session.run("go")
            await stored(4)
            workers[0].kill()
            await stored(10)
            await asyncio.to_thread(postgres.kill)
            await asyncio.to_thread(postgres.start)
            result = await run
        finally:
            for worker in workers:
                worker.kill()
                worker.wait()
        entries = await store.load_entries(session_id)
    messages = Transcript(entries).model_view()
    assert Transcript(entries).path() == entries
    ticks = [message.text for message in messages if message.role == "tool_result"]
    assert ticks == [f"tick {number}" for number in range(STEPS)]
    assert [message.text for message in result][-1] == "done"
    assert len(messages) == 2 + 2 * STEPS
