"""The SQL of the pages does what they say, on a real PostgreSQL."""

from __future__ import annotations

from urllib.parse import urlsplit

from temporalio.api.common.v1 import Payload
from temporalio.converter import StorageDriverRetrieveContext, StorageDriverStoreContext

from perdure import Transcript
from perdure.codec import decode_entry
from perdure.errors import SessionNotFoundError
from perdure.payload_rows import PayloadRows
from perdure.stores import PostgresStore
from tests.docs.markdown import PAGES
from tests.stores.logs import ids, note, notes
from tests.stores.postgres_server import PostgresServer

BLOCKS = [block for page in PAGES for block in page.blocks if block.language == "sql"]


async def test_the_sql_of_the_pages_does_what_they_say(postgres: PostgresServer) -> None:
    """4.1: with the path to an entry; and with a worker's role, which has no more rights."""
    url = await postgres.new_database()
    database = urlsplit(url).path.removeprefix("/")
    await postgres.execute("CREATE ROLE agents LOGIN")
    async with PostgresStore(url) as store:
        await store.create_session("order-7")
        entries = [
            note("a"),
            note("b").with_header(parent_id="a"),
            note("x").with_header(parent_id="a"),
            note("e1").with_header(parent_id="b"),
        ]
        await store.append_entries("order-7", entries)
        connection = await postgres.connect(database=database)
        try:
            for block in BLOCKS:
                if "grants" in block.options:
                    await connection.execute(block.text)
                    await works_with_these_rights(postgres.url("agents", database=database))
                    continue
                found = await connection.fetch(block.text)
                lines = [decode_entry(row["line"]) for row in found]
                if "path" in block.options:
                    assert lines == Transcript(entries).path("e1")
                elif found:
                    assert lines == entries
        finally:
            await connection.close()
        try:
            await store.load_entries("order-7")
        except SessionNotFoundError:
            return
    raise AssertionError("the last block deletes the session")


async def works_with_these_rights(url: str) -> None:
    async with PostgresStore(url) as worker:
        await worker.create_session("t")
        await worker.append_entries("t", notes("e1", "e2"))
        assert ids(await worker.load_entries("t")) == ["e1", "e2"]
        assert "t" in await worker.list_sessions()
        assert (await worker.load_session("t")).id == "t"
    payloads, payload = PayloadRows(url), Payload(data=b"x")
    for _ in range(2):
        claims = await payloads.store(StorageDriverStoreContext(), [payload])
    assert await payloads.retrieve(StorageDriverRetrieveContext(), claims) == [payload]
    await payloads.close()
