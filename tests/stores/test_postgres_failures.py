"""What a database refuses, and what goes wrong on the way there: said clearly, without secrets."""

from __future__ import annotations

import asyncio
import sys
import traceback
from collections.abc import AsyncIterator
from typing import Any

import pytest

from perdure.errors import SessionExistsError, StoreError
from perdure.stores import PostgresStore
from perdure.stores.postgres import migrate_database
from tests.stores.logs import ids, notes
from tests.stores.postgres_server import PostgresServer

SECRET = "s3cret/@:?#%pass"


@pytest.fixture
async def store(postgres: PostgresServer) -> AsyncIterator[PostgresStore]:
    async with postgres.new_store() as store:
        await store.create_session("s")
        yield store


async def refusal(store: PostgresStore, *, writing: bool = False) -> str:
    """What the error of a call says, which ends with this."""
    async with store:
        call = store.append_entries("s", notes("e1")) if writing else store.load_entries("s")
        with pytest.raises(StoreError) as caught:
            await call
    whole = "".join(traceback.format_exception(caught.value)) + repr(store)
    assert SECRET not in whole
    assert "s3cret" not in whole
    return str(caught.value)


async def test_a_wrong_password(postgres: PostgresServer) -> None:
    await postgres.execute("CREATE ROLE secured LOGIN PASSWORD 'another'")
    url = postgres.url("secured", SECRET)
    said = await refusal(PostgresStore(url))
    assert said == (
        f"PostgreSQL at {postgres.socket_folder}/postgres: password authentication failed for user"
        ' "secured"; put the right one into the URL, PGPASSWORD or a password file'
    )
    with pytest.raises(StoreError, match="password authentication failed"):
        await migrate_database(url)


@pytest.mark.parametrize(
    "url, reason",
    [
        (
            "postgresql://me:{secret}@nowhere.invalid/db",
            "PostgreSQL at nowhere.invalid/db: the host is unknown; look at its name in the URL",
        ),
        (
            "postgresql://me:{secret}@127.0.0.1:1/db",
            "PostgreSQL at 127.0.0.1:1/db: nobody answers there; start the server, or look at host"
            " and port in the URL",
        ),
        (
            "postgresql://me:{secret}@127.0.0.1:1,localhost:1/db",
            "PostgreSQL at 127.0.0.1:1,localhost:1/db: nobody answers there; start the server, or"
            " look at host and port in the URL",
        ),
        (
            "postgresql:///db?host=/nowhere/at/all&password={secret}",
            "PostgreSQL at /nowhere/at/all/db: No such file or directory; start the server, or look"
            " at host and port in the URL",
        ),
    ],
)
async def test_nobody_there(url: str, reason: str) -> None:
    encoded = "".join(f"%{byte:02x}" for byte in SECRET.encode())
    store = PostgresStore(url.format(secret=encoded), retry_for=0.1)
    assert await refusal(store) == reason


@pytest.mark.parametrize(
    "url",
    [
        "postgresql:db",
        "postgresql:/db",
        "mysql://me:s3cret@host/db",
        "postgresql://me:s3cret/tail@host/db",
        "postgresql://me:12/s3cret@host/db",
        "postgresql://me:12?s3cret@host/db",
        "postgresql://me:12#s3cret@host/db",
        "postgresql://me:s3cret@[host/db",
        "postgresql://me:s3cret@host:port/db",
        "postgresql://me:x@host:s3cret/db",
        "postgresql://me:s3cret\u2100@host/db",
        "postgresql://me:s3cret@host/db?pool_size=many",
        "postgresql://me:s3cret@host/db?pool_size=0",
        "postgresql://me:s3cret@host/db?pool_size=1001",
        f"postgresql://me:s3cret@host/db?pool_size={'9' * 5000}",
        "postgresql://me:s3cret@host/db?schema=",
    ],
)
def test_a_url_that_cannot_be_read_is_not_repeated(url: str) -> None:
    with pytest.raises(StoreError) as caught:
        PostgresStore(url)
    whole = "".join(traceback.format_exception(caught.value))
    assert "s3cret" not in str(caught.value)
    assert "s3cret" not in whole
    assert "such as" in str(caught.value) or "URL of PostgreSQL" in str(caught.value)


@pytest.mark.parametrize("size", [-1, 0, 1001])
def test_a_number_of_connections_that_is_none_is_refused(size: int) -> None:
    with pytest.raises(StoreError, match=r"pool_size, .* is a number from 1 to 1000"):
        PostgresStore("postgresql://host/db?pool_size=5", pool_size=size)


@pytest.mark.parametrize("option", ["sslmode=perhaps", "speed=high", "target_session_attrs=none"])
async def test_an_option_that_makes_no_sense(postgres: PostgresServer, option: str) -> None:
    said = await refusal(PostgresStore(f"{postgres.url()}&{option}"))
    assert said.startswith(f"PostgreSQL at {postgres.socket_folder}/postgres: ")
    assert "ClientConfigurationError" in said or 'parameter "speed"' in said


async def test_a_database_that_is_not_there(postgres: PostgresServer) -> None:
    said = await refusal(PostgresStore(postgres.url(database="nobody")))
    assert 'database "nobody" does not exist; create it (createdb), or name another' in said


async def test_a_database_of_another_encoding(postgres: PostgresServer) -> None:
    await postgres.execute(
        "CREATE DATABASE latin ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0",
    )
    said = await refusal(PostgresStore(postgres.url(database="latin")))
    assert said.startswith("the encoding of this database is LATIN1, session IDs are any text;")


async def test_tables_that_are_not_there(postgres: PostgresServer) -> None:
    """They are made by a role that may, unless it is told not to; others say what to do."""
    schema = postgres.new_schema()
    wanted = (
        f"PostgreSQL has no sessions in schema {schema!r} yet; run `perdure store migrate` with a"
        " role that may create them"
    )
    assert await refusal(postgres.new_store(schema=schema, create_schema=False)) == wanted
    await postgres.execute("CREATE ROLE nobody LOGIN")
    assert await refusal(PostgresStore(postgres.url("nobody"), schema=schema)) == wanted
    async with postgres.new_store(schema=schema) as store:
        await store.create_session("s")


async def test_tables_that_are_removed_while_a_store_is_open(
    postgres: PostgresServer, store: PostgresStore
) -> None:
    await postgres.execute(f'DROP SCHEMA "{store.schema}" CASCADE')
    with pytest.raises(StoreError, match="does not exist; run `perdure store migrate`"):
        await store.append_entries("s", notes("e1"))
    await store.create_session("s")
    await store.append_entries("s", notes("e1"))


async def test_a_role_that_may_only_read(postgres: PostgresServer, store: PostgresStore) -> None:
    await store.append_entries("s", notes("e1"))
    schema = f'"{store.schema}"'
    await postgres.execute(
        "CREATE ROLE reader LOGIN",
        f"GRANT USAGE ON SCHEMA {schema} TO reader",
        f"GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO reader",
    )
    async with PostgresStore(postgres.url("reader"), schema=store.schema) as reader:
        assert ids(await reader.load_entries("s")) == ["e1"]
        assert await reader.list_sessions() == ["s"]
    said = await refusal(PostgresStore(postgres.url("reader"), schema=store.schema), writing=True)
    assert said.endswith(
        "permission denied for table sessions; grant this role what docs/postgres.md lists"
    )


async def test_a_server_that_takes_no_writes_is_tried_again(
    postgres: PostgresServer, store: PostgresStore
) -> None:
    """As one is that has become the standby."""
    read_only = "ALTER ROLE postgres SET default_transaction_read_only = on"
    writable = ["SET default_transaction_read_only = off", "ALTER ROLE postgres RESET ALL"]
    await postgres.execute(read_only)
    try:
        standby = PostgresStore(postgres.url(), schema=store.schema, retry_for=0.1)
        assert "connect to the primary" in await refusal(standby, writing=True)
        async with PostgresStore(postgres.url(), schema=store.schema) as late:
            append = asyncio.create_task(late.append_entries("s", notes("e1")))
            await has_begun(late)
            await postgres.execute(*writable)
            await close_connections(postgres)
            await append
    finally:
        await postgres.execute(*writable)
    assert ids(await store.load_entries("s")) == ["e1"]


async def has_begun(store: PostgresStore) -> None:
    """Wait until the store has tried to connect."""
    while store._database.connections._pool is None:  # noqa: ASYNC110 - it tells nobody
        await asyncio.sleep(0.01)


async def close_connections(postgres: PostgresServer) -> None:
    """What a restart does to all connections but the one that does it."""
    await postgres.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
    )


async def test_connections_that_are_lost_are_opened_again(
    postgres: PostgresServer, store: PostgresStore
) -> None:
    """2.8: an append whose answer was lost is repeated, and is there once."""
    names = [f"e{number}" for number in range(40)]
    for name in names:
        append = store.append_entries("s", notes(name, f"{name}+"))
        await asyncio.gather(append, close_connections(postgres))
    assert ids(await store.load_entries("s")) == [x for name in names for x in (name, f"{name}+")]


async def test_a_session_whose_creation_was_not_heard_of_was_still_created_by_its_creator(
    postgres: PostgresServer, store: PostgresStore
) -> None:
    """1.3: its own row does not make the retry think that somebody else was quicker."""
    lost = 0

    async def lose_the_answer(job: Any) -> Any:
        async def run(connection: Any) -> Any:
            nonlocal lost
            result = await job(connection)
            if not lost:
                lost += 1
                connection.terminate()
                raise ConnectionResetError
            return result

        return await call(run)

    call = store._database.connections.call
    store._database.connections.call = lose_the_answer  # type: ignore[method-assign]
    await store.create_session("t")
    assert lost == 1
    with pytest.raises(SessionExistsError):
        await store.create_session("t")


async def test_a_server_without_a_free_connection_is_waited_for(
    postgres: PostgresServer, store: PostgresStore
) -> None:
    await postgres.execute("CREATE ROLE crowded LOGIN SUPERUSER")
    await postgres.execute("ALTER ROLE crowded NOSUPERUSER CONNECTION LIMIT 1")
    await postgres.execute(f'GRANT ALL ON SCHEMA "{store.schema}" TO crowded')
    await postgres.execute(f'GRANT ALL ON ALL TABLES IN SCHEMA "{store.schema}" TO crowded')
    taken = await postgres.connect(role="crowded")
    url = postgres.url("crowded")
    try:
        said = await refusal(PostgresStore(url, schema=store.schema, retry_for=0.1))
        assert "too many connections" in said
        async with PostgresStore(url, schema=store.schema) as patient:
            load = asyncio.create_task(patient.load_entries("s"))
            await has_begun(patient)
            await taken.close()
            assert await load == []
    finally:
        await taken.close()


async def test_more_callers_than_connections_take_turns(
    postgres: PostgresServer,
) -> None:
    async with postgres.new_store(pool_size=2) as store:
        names = [f"s{number}" for number in range(50)]
        await asyncio.gather(*(store.create_session(name) for name in names))
        await asyncio.gather(*(store.append_entries(name, notes(name)) for name in names))
        logs = await asyncio.gather(*(store.load_entries(name) for name in names))
    assert [ids(log) for log in logs] == [[name] for name in names]


async def test_transactions_that_get_in_each_others_way_are_repeated(
    postgres: PostgresServer, store: PostgresStore
) -> None:
    """Where the database isolates transactions more than is needed here, they fail to serialize."""
    await postgres.execute("CREATE ROLE serial LOGIN SUPERUSER")
    await postgres.execute("ALTER ROLE serial SET default_transaction_isolation = serializable")
    workers = [PostgresStore(postgres.url("serial"), schema=store.schema) for _ in range(4)]

    async def append(number: int, worker: PostgresStore) -> None:
        async with worker:
            for call in range(10):
                await worker.append_entries("s", notes(f"{number}-{call}", f"{number}-{call}+"))

    await asyncio.gather(*(append(number, worker) for number, worker in enumerate(workers)))
    found = ids(await store.load_entries("s"))
    assert [x + "+" for x in found[::2]] == found[1::2]
    for number in range(4):
        own = [name for name in found[::2] if name.startswith(f"{number}-")]
        assert own == [f"{number}-{call}" for call in range(10)]


async def test_while_the_server_is_down_only_the_first_call_waits_long() -> None:
    store = PostgresStore("postgresql://127.0.0.1:1/db", retry_for=1.5)
    loop = asyncio.get_running_loop()
    spent = []
    async with store:
        for _ in range(2):
            start = loop.time()
            with pytest.raises(StoreError):
                await store.load_entries("s")
            spent.append(loop.time() - start)
    assert spent[1] < spent[0]


def test_a_driver_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "asyncpg", None)
    with pytest.raises(StoreError) as caught:
        PostgresStore("postgresql://db/sessions")
    assert str(caught.value) == (
        "PostgreSQL needs a driver; install it with: pip install 'perdure[postgres]'"
    )
