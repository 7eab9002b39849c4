"""Large payloads in PostgreSQL: through runs, out of Temporal, and away when nobody needs them."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import uuid
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from temporalio.api.common.v1 import Payload
from temporalio.converter import (
    StorageDriverClaim,
    StorageDriverRetrieveContext,
    StorageDriverStoreContext,
    StorageDriverWorkflowInfo,
)

from perdure import StoreError, ToolContext, tool
from perdure.dev_server import DevServer
from perdure.encryption import Keys
from perdure.large_payloads import external_storage
from perdure.models.scripted import call
from perdure.payload_cleaning import clean_payloads
from perdure.payload_rows import PayloadRows
from perdure.session_id import workflow_id
from perdure.stores import FileStore, PostgresStore
from tests.cli.test_command_line import PERDURE
from tests.engine.agents import echo, scripted
from tests.engine.histories import histories
from tests.production.test_large_payloads import LARGE, read_all
from tests.production.test_worker_flags import ended
from tests.security.conftest import OLD, Connecting, Serving
from tests.stores.postgres_server import PostgresServer

STORE, RETRIEVE = StorageDriverStoreContext(), StorageDriverRetrieveContext()


def place(postgres: PostgresServer, schema: str) -> str:
    return f"{postgres.url()}&schema={quote(schema)}"


def of_workflow(workflow: str, namespace: str = "default") -> StorageDriverStoreContext:
    target = StorageDriverWorkflowInfo(namespace=namespace, id=workflow)
    return StorageDriverStoreContext(target=target)


async def found(postgres: PostgresServer, query: str, schema: str, *values: object) -> list[Any]:
    connection = await postgres.connect()
    try:
        rows = await connection.fetch(query.format(schema=f'"{schema}"'), *values)
        return [tuple(row) for row in rows]
    finally:
        await connection.close()


DATA = "SELECT data FROM {schema}.payloads"


@pytest.mark.parametrize("keys", [None, Keys({"k1": OLD})], ids=["plain", "encrypted"])
async def test_a_result_of_20_mb_goes_through_a_run_and_is_not_in_history(
    connecting: Connecting, secured: Serving, postgres: PostgresServer, keys: Keys | None
) -> None:
    """With sessions in the same schema, as one would have it."""
    schema = postgres.new_schema()
    client = connecting(keys, place(postgres, schema))
    agent = scripted(
        [call("read_all")], lambda messages: str(len(messages[-1].text)), tools=[read_all]
    )
    store = PostgresStore(postgres.url(), schema=schema)
    async with store, secured(client, store, agent) as sessions:
        session = await sessions.open(f"talk-{uuid.uuid4().hex}", agent="agent")
        said = await (await session.run("read it"))
        assert said[-1].text == str(LARGE)
        size = 0
        async for events in histories(client, workflow_id(session.id)):
            size += sum(event.ByteSize() for event in events)
    assert size < 30_000
    payloads = [data for (data,) in await found(postgres, DATA, schema)]
    assert max(map(len, payloads)) > LARGE
    assert all(b"xxxxxxxx" not in data for data in payloads) == (keys is not None)


async def test_a_server_that_is_killed_under_a_run_is_waited_for(
    connecting: Connecting, secured: Serving, postgres: PostgresServer, tmp_path: Path
) -> None:
    starting: list[asyncio.Task[None]] = []

    async def start_again() -> None:
        await asyncio.sleep(0.5)
        await asyncio.to_thread(postgres.start)

    @tool(idempotent=True, max_result=None)
    async def pull_the_plug(ctx: ToolContext) -> str:
        """End the server when its result is about to be stored."""
        if not starting:
            await asyncio.to_thread(postgres.kill)
            starting.append(asyncio.create_task(start_again()))
        return "x" * 2_000_000

    agent = scripted(
        [call("pull_the_plug")], lambda messages: str(len(messages[-1].text)), tools=[pull_the_plug]
    )
    client = connecting(None, place(postgres, postgres.new_schema()))
    async with secured(client, FileStore(tmp_path), agent) as sessions:
        session = await sessions.open(f"talk-{uuid.uuid4().hex}", agent="agent")
        await session.append("z" * 500_000)
        assert (await (await session.run("go")))[-1].text == "2000000"
    await asyncio.gather(*starting)


async def test_what_is_stored_again_is_the_same_row_as_new_as_the_last_time(
    postgres: PostgresServer,
) -> None:
    schema = postgres.new_schema()
    rows = [PayloadRows(postgres.url(), schema=schema) for _ in range(2)]
    payload = Payload(metadata={"encoding": b"x"}, data=b"\0" * 500_000)
    [claims, same] = await asyncio.gather(*(each.store(STORE, [payload]) for each in rows))
    assert claims == same
    stored = "SELECT stored_at FROM {schema}.payloads"
    [(first,)] = await found(postgres, stored, schema)
    assert await rows[0].store(STORE, [payload, payload]) == claims * 2
    [(last,)] = await found(postgres, stored, schema)
    assert first < last
    assert await rows[1].retrieve(RETRIEVE, claims) == [payload]
    for each in rows:
        await each.close()


async def test_a_payload_that_is_gone_or_changed_is_named_with_what_to_do(
    postgres: PostgresServer,
) -> None:
    schema = postgres.new_schema()
    rows = PayloadRows(postgres.url(), schema=schema)
    [claim] = await rows.store(STORE, [Payload(data=b"x" * 10)])
    where = f"in schema {schema!r} of PostgreSQL at {postgres.socket_folder}/postgres"
    await postgres.execute(f"UPDATE \"{schema}\".payloads SET data = 'damaged'")
    with pytest.raises(StoreError, match=f"{where} is not what was stored"):
        await rows.retrieve(RETRIEVE, [claim])
    await postgres.execute(f'DELETE FROM "{schema}".payloads')
    with pytest.raises(StoreError, match="all workers and clients need the same database"):
        await rows.retrieve(RETRIEVE, [claim])
    for name in ("", "a/b", "a/b/not-hex", "a/b/00/c"):
        with pytest.raises(StoreError, match="names no row"):
            await rows.retrieve(RETRIEVE, [dataclasses.replace(claim, claim_data={"row": name})])
    await rows.close()
    with pytest.raises(StoreError, match="is closed"):
        await rows.retrieve(RETRIEVE, [claim])


@pytest.mark.parametrize("workflow", ["session:a%2Fb", "../x", "x" * 3000, "", "数据" * 300, "'"])
async def test_any_workflow_has_rows_of_its_own(postgres: PostgresServer, workflow: str) -> None:
    rows = PayloadRows(postgres.url(), schema=postgres.new_schema())
    payload = Payload(data=b"x")
    claims = await rows.store(of_workflow(workflow), [payload])
    assert await rows.retrieve(RETRIEVE, claims) == [payload]
    await rows.store(of_workflow("another"), [payload])
    assert len(await rows.workflows("default")) == 2
    await rows.close()


async def test_where_there_are_no_tables_and_the_role_may_make_none(
    postgres: PostgresServer,
) -> None:
    await postgres.execute("CREATE ROLE keeper LOGIN")
    schema = postgres.new_schema()
    rows = PayloadRows(postgres.url("keeper"), schema=schema)
    with pytest.raises(StoreError, match="run `perdure store migrate` with a role that may"):
        await rows.store(STORE, [Payload(data=b"x")])
    with pytest.raises(StoreError, match="run `perdure store migrate`"):
        await rows.retrieve(RETRIEVE, [StorageDriverClaim({"row": f"a/b/{'0' * 64}"})])
    await rows.close()


def test_the_place_is_the_url_of_a_store_and_no_message_repeats_its_password() -> None:
    storage = external_storage("postgresql://me:s3cret@host/db?schema=team_a&pool_size=3")
    assert storage is not None
    assert repr(storage.drivers[0]) == "PayloadRows('host/db', schema='team_a')"
    for wrong in ("postgresql://me:s3cret@host/db?pool_size=0", "postgresql:me:s3cret"):
        with pytest.raises(StoreError) as caught:
            external_storage(wrong)
        assert "s3cret" not in str(caught.value)


async def test_what_no_history_needs_is_cleaned_up_and_the_rest_stays(
    connecting: Connecting, secured: Serving, postgres: PostgresServer, tmp_path: Path
) -> None:
    schema = postgres.new_schema()
    client = connecting(None, place(postgres, schema))
    rows = PayloadRows(postgres.url(), schema=schema)
    async with secured(client, FileStore(tmp_path), echo()) as sessions:
        session = await sessions.open(f"talk-{uuid.uuid4().hex}", agent="agent")
        await session.append("z" * 500_000)
        names = "SELECT workflow_id, digest FROM {schema}.payloads"
        needed = await found(postgres, names, schema)
        assert needed
        here, gone = of_workflow(workflow_id(session.id)), of_workflow("session:long-gone")
        other = of_workflow("session:x", "elsewhere")
        for target in (here, gone, other):
            [claim] = await rows.store(target, [Payload(data=uuid.uuid4().bytes)])
            await postgres.execute(
                f"UPDATE \"{schema}\".payloads SET stored_at = now() - interval '12 days'"
                f" WHERE encode(digest, 'hex') = '{claim.claim_data['row'].split('/')[2]}'"
            )
        [young] = await rows.store(gone, [Payload(data=b"under way")])
        looked = await clean_payloads(client, rows, only_look=True)
        report = await clean_payloads(client, rows)
        assert looked == report
        assert (report.removed, report.kept) == (2, len(needed) + 1)
        left = await found(postgres, names, schema)
        assert set(needed) < set(left)
        assert len(left) == len(needed) + 2  # the young one, and that of the other namespace
        assert await rows.retrieve(RETRIEVE, [young])
        assert await session.entries()
    await rows.close()


async def test_what_is_stored_again_meanwhile_is_not_removed(postgres: PostgresServer) -> None:
    rows = PayloadRows(postgres.url(), schema=postgres.new_schema())
    target, payload = of_workflow("w"), Payload(data=b"x")
    await rows.store(target, [payload])
    [(digest, stored_at, size)] = await rows.listed("default", "w")
    assert size == payload.ByteSize()
    claims = await rows.store(target, [payload])
    await rows.remove("default", "w", digest, stored_at)
    assert await rows.retrieve(RETRIEVE, claims) == [payload]
    await rows.close()


async def test_rows_are_cleaned_by_the_command(
    server: DevServer, postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TEMPORAL_ADDRESS", server.address)
    schema = postgres.new_schema()
    monkeypatch.setenv("PERDURE_PAYLOADS", place(postgres, schema))
    status, said, reason = await ended(PERDURE, "clean-payloads")
    assert (status, said) == (1, "")
    assert "run `perdure store migrate`" in reason
    rows = PayloadRows(postgres.url(), schema=schema)
    await rows.store(of_workflow("session:long-gone"), [Payload(data=b"x" * 100)])
    await rows.close()
    await postgres.execute(f"UPDATE \"{schema}\".payloads SET stored_at = 'epoch'")
    assert await ended(PERDURE, "clean-payloads", "--only-look") == (
        0,
        "would remove 1 rows, 102 bytes; 0 are needed\n",
        "",
    )
    status, said, _ = await ended(PERDURE, "clean-payloads", "--json")
    assert (status, json.loads(said)) == (0, {"removed": 1, "bytes": 102, "kept": 0})
    assert await found(postgres, DATA, schema) == []
