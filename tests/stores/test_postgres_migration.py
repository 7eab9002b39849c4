"""The tables from one version to the next, whoever does it and however many do."""

from __future__ import annotations

import asyncio

import pytest
from temporalio.api.common.v1 import Payload
from temporalio.converter import StorageDriverRetrieveContext, StorageDriverStoreContext

from perdure.errors import StoreError
from perdure.payload_rows import PayloadRows
from perdure.stores import PostgresStore
from perdure.stores.postgres import migrate_database
from perdure.stores.postgres.schema import CODE_VERSION, STEPS, Found, Step, check_version
from tests.stores.logs import ids, notes
from tests.stores.postgres_server import PostgresServer

NEXT = Step(
    CODE_VERSION + 1,
    ("ALTER TABLE {schema}.entries ADD COLUMN colour text DEFAULT 'red'",),
    oldest_code=CODE_VERSION,
)
"""A made-up step that this code can live with."""

BREAKING = Step(
    CODE_VERSION + 2,
    ("ALTER TABLE {schema}.entries RENAME TO lines", "CREATE TABLE {schema}.more (x int)"),
    oldest_code=CODE_VERSION + 2,
)
"""One that it cannot."""


def test_steps_are_numbered_from_one_without_a_gap() -> None:
    assert [step.version for step in STEPS] == list(range(1, len(STEPS) + 1))
    assert all(1 <= step.oldest_code <= step.version for step in STEPS)


async def test_a_fresh_database_gets_every_table_and_a_second_time_nothing(
    postgres: PostgresServer,
) -> None:
    schema = postgres.new_schema()
    first = await migrate_database(postgres.url(), schema)
    assert first == (schema, Found(0), Found(CODE_VERSION, STEPS[-1].oldest_code))
    again = await migrate_database(postgres.url(), schema)
    assert again == (schema, first[2], first[2])


async def test_everything_is_in_the_schema_of_that_name(postgres: PostgresServer) -> None:
    elsewhere = (
        "SELECT relname FROM pg_class JOIN pg_namespace n ON n.oid = relnamespace"
        " WHERE nspname NOT IN ($1, 'pg_toast')"
    )
    schema = postgres.new_schema()
    connection = await postgres.connect()
    try:
        before = await connection.fetch(elsewhere, schema)
        await migrate_database(postgres.url(), schema)
        assert await connection.fetch(elsewhere, schema) == before
    finally:
        await connection.close()


@pytest.mark.parametrize("version", range(len(STEPS) + 1))
async def test_every_earlier_version_leads_to_the_last(
    postgres: PostgresServer, version: int
) -> None:
    schema = postgres.new_schema()
    if version:
        await migrate_database(postgres.url(), schema, STEPS[:version])
    await migrate_database(postgres.url(), schema)
    async with PostgresStore(postgres.url(), schema=schema, create_schema=False) as store:
        await store.create_session("s")
        await store.append_entries("s", notes("e1"))
        assert ids(await store.load_entries("s")) == ["e1"]


async def test_what_was_stored_before_a_step_is_there_after_it(postgres: PostgresServer) -> None:
    """Also while a store of the old version is at work, which goes on."""
    async with postgres.new_store() as store:
        await store.create_session("s")
        await store.append_entries("s", notes("e1"))
        await migrate_database(postgres.url(), store.schema, [*STEPS, NEXT])
        await store.append_entries("s", notes("e2"))
        async with PostgresStore(postgres.url(), schema=store.schema) as restarted:
            assert ids(await restarted.load_entries("s")) == ["e1", "e2"]


async def test_of_many_that_migrate_at_once_one_does(postgres: PostgresServer) -> None:
    """From nothing, and from one version to the next."""
    schema = postgres.new_schema()
    for steps, before in ((STEPS, 0), ([*STEPS, NEXT], CODE_VERSION)):
        outcomes = await asyncio.gather(
            *(migrate_database(postgres.url(), schema, steps) for _ in range(8))
        )
        last = steps[-1].version
        found = sorted((was.version, now.version) for _, was, now in outcomes)
        assert found == [(before, last), *[(last, last)] * 7]


async def test_many_stores_that_are_the_first_to_come_make_the_tables_once(
    postgres: PostgresServer,
) -> None:
    schema = postgres.new_schema()
    stores = [PostgresStore(postgres.url(), schema=schema) for _ in range(8)]
    await asyncio.gather(*(store.create_session(f"s{n}") for n, store in enumerate(stores)))
    assert len(await stores[0].list_sessions()) == 8
    for store in stores:
        await store.close()


async def test_from_the_first_version_to_the_second_while_old_workers_go_on(
    postgres: PostgresServer,
) -> None:
    """Sessions go on before, under and after the step; large payloads wait for it."""
    schema = postgres.new_schema()
    await migrate_database(postgres.url(), schema, STEPS[:1])
    payload = Payload(data=b"x" * 300_000)
    rows = PayloadRows(postgres.url(), schema=schema)
    async with PostgresStore(postgres.url(), schema=schema) as store:
        await store.create_session("s")
        await store.append_entries("s", notes("e1"))
        with pytest.raises(StoreError) as caught:
            await rows.store(StorageDriverStoreContext(), [payload])
        assert str(caught.value) == (
            f"schema {schema!r} has version 1, this takes version 2; run `perdure store migrate`"
        )
        outcomes = await asyncio.gather(
            *(migrate_database(postgres.url(), schema) for _ in range(2)),
            store.append_entries("s", notes("e2")),
        )
        found = [(outcome[1].version, outcome[2].version) for outcome in outcomes[:2] if outcome]
        assert sorted(found) == [(1, 2), (2, 2)]
        await store.append_entries("s", notes("e3"))
        assert ids(await store.load_entries("s")) == ["e1", "e2", "e3"]
    claims = await rows.store(StorageDriverStoreContext(), [payload])
    assert await rows.retrieve(StorageDriverRetrieveContext(), claims) == [payload]
    await rows.close()
    # What code of version 1 would say to it: nothing.
    _, _, after = await migrate_database(postgres.url(), schema)
    check_version(after, schema, needs=1, code_version=1)


async def test_a_step_that_fails_changes_nothing(postgres: PostgresServer) -> None:
    schema = postgres.new_schema()
    await migrate_database(postgres.url(), schema)
    broken = Step(NEXT.version, (*NEXT.statements, "SELECT 1 / 0"), oldest_code=1)
    with pytest.raises(StoreError, match="DivisionByZeroError"):
        await migrate_database(postgres.url(), schema, [*STEPS, broken])
    _, before, after = await migrate_database(postgres.url(), schema, [*STEPS, NEXT])
    assert (before.version, after.version) == (CODE_VERSION, NEXT.version)


async def test_tables_that_are_too_new_are_left_alone(postgres: PostgresServer) -> None:
    """By the store and by the command; what to do is said."""
    schema = postgres.new_schema()
    await migrate_database(postgres.url(), schema, [*STEPS, NEXT, BREAKING])
    wanted = (
        f"schema {schema!r} has version {BREAKING.version}, this perdure knows {CODE_VERSION};"
        " install a newer perdure here"
    )
    async with PostgresStore(postgres.url(), schema=schema) as store:
        with pytest.raises(StoreError) as caught:
            await store.load_entries("s")
    assert str(caught.value) == wanted
    with pytest.raises(StoreError) as caught:
        await migrate_database(postgres.url(), schema)
    assert str(caught.value) == wanted


def test_tables_that_are_too_old_are_not_migrated_unasked() -> None:
    with pytest.raises(StoreError) as caught:
        check_version(Found(1, 1), "perdure", needs=2)
    assert str(caught.value) == (
        "schema 'perdure' has version 1, this takes version 2; run `perdure store migrate`"
    )


async def test_no_more_rights_are_needed_than_to_create_in_the_schema(
    postgres: PostgresServer,
) -> None:
    """Without superuser; where the schema is there, also without the right to create one."""
    schema = postgres.new_schema()
    await postgres.execute("CREATE ROLE owner LOGIN")
    with pytest.raises(StoreError, match="permission denied for database postgres; grant this"):
        await migrate_database(postgres.url("owner"), schema)
    await postgres.execute(
        f'CREATE SCHEMA "{schema}"', f'GRANT USAGE, CREATE ON SCHEMA "{schema}" TO owner'
    )
    await migrate_database(postgres.url("owner"), schema)

    await postgres.execute("GRANT CREATE ON DATABASE postgres TO owner")
    await migrate_database(postgres.url("owner"), postgres.new_schema())
