"""A session from end to end over PostgreSQL, while a worker and the database die."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import uuid

from perdure import CompactionEntry, Entry, Sessions, Transcript, text
from perdure.dev_server import DevServer
from perdure.stores import PostgresStore
from perdure.worker import build_worker
from tests.engine.agents import echo, texts
from tests.stores.logs import ids
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


class UnreadStore(PostgresStore):
    """Where nobody may ask for a whole log."""

    async def load_entries(self, session_id: str) -> list[Entry]:
        raise AssertionError(f"all of {session_id} is loaded")


async def test_a_long_session_goes_on_elsewhere_without_its_log_being_loaded(
    server: DevServer, postgres: PostgresServer
) -> None:
    """4.2, 5.1, 5.3, 5.4: its worker and its client, both new, load what they need of the path."""
    schema, queue = postgres.new_schema(), f"postgres-{uuid.uuid4().hex}"
    async with UnreadStore(postgres.url(), schema=schema) as store:
        await store.create_session("long")
        log: list[Entry] = [text("line 0").with_header(id="e0")]
        for number in range(1, 5000):
            line = text(f"line {number}")
            log.append(line.with_header(id=f"e{number}", parent_id=f"e{number - 1}"))
        summary = CompactionEntry(id="c", parent_id="e4999", summary="lines", first_kept_id="e4990")
        await store.append_entries("long", [*log, summary])
        async with (
            UnreadStore(postgres.url(), schema=schema) as workers,
            build_worker(server.client, agents=[echo()], store=workers, task_queue=queue),
        ):
            session = await Sessions(server.client, store, task_queue=queue).open(
                "long", agent="agent"
            )
            [answer] = await (await session.run("a question", run_id="r"))
            assert answer.text == "You said 'a question'"
            kept = [f"line {number}" for number in range(4990, 5000)]
            said = ["lines", *kept, "a question", answer.text]
            assert [message.text for message in await session.messages()] == said
            [noted] = await session.append("a note")
            assert (await session.transcript())[-1] == noted
            await session.branch("e7")
            assert texts(await session.transcript()) == [f"line {n}" for n in range(8)]
            fork = await session.fork("branched")
            await (await fork.run("to the fork"))
            assert texts(await fork.transcript())[7:9] == ["line 7", "to the fork"]
    async with PostgresStore(postgres.url(), schema=schema) as whole:
        found = await whole.load_entries("long")
        assert ids(found)[:5001] == [*ids(log), "c"]
        assert len(found) == 5004
