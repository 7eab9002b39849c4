"""Sessions in a real PostgreSQL: what a store promises, and what is particular to this one."""

from __future__ import annotations

import asyncio
import gc
import os
import random
import threading
import uuid
import warnings
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from perdure.codec import decode_entry, encode_entry
from perdure.entries import Entry
from perdure.errors import (
    DamagedLogError,
    SessionExistsError,
    SessionNotFoundError,
    StoreError,
)
from perdure.stores import FileStore, PostgresStore, open_store
from perdure.testing import check_store
from tests.core.strategies import entries as any_entries
from tests.stores.logs import ids, notes
from tests.stores.postgres_server import PostgresServer


@pytest.fixture
async def stores(postgres: PostgresServer) -> AsyncIterator[Callable[..., PostgresStore]]:
    """Makes stores in one schema, which are closed at the end."""
    schema, made = postgres.new_schema(), list[PostgresStore]()

    def make(**options: Any) -> PostgresStore:
        made.append(postgres.new_store(**{"schema": schema, **options}))
        return made[-1]

    yield make
    for store in made:
        await store.close()


@pytest.fixture
def store(stores: Callable[..., PostgresStore]) -> PostgresStore:
    return stores()


@pytest.mark.parametrize("options", [{}, {"cache_size": 0, "pool_size": 1}])
async def test_the_postgres_store_keeps_the_contract(
    postgres: PostgresServer, stores: Callable[..., PostgresStore], options: dict[str, int]
) -> None:
    """2.1: three operations, and what they promise."""
    await check_store(lambda: stores(schema=postgres.new_schema(), **options))


@pytest.fixture(scope="module")
def one_store(postgres: PostgresServer) -> Iterator[PostgresStore]:
    store = postgres.new_store(cache_size=0)
    yield store
    asyncio.run(store.close())


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(entries=st.lists(any_entries, max_size=4, unique_by=lambda entry: entry.id))
def test_lines_are_kept_byte_for_byte(one_store: PostgresStore, entries: list[Entry]) -> None:
    """2.9, 3.5: NUL, lone surrogates, large integers, the order of keys, IDs of any text."""
    wanted = [entry for entry in entries if entry.id]

    async def round_trip() -> list[Entry]:
        session_id = uuid.uuid4().hex
        await one_store.create_session(session_id)
        await one_store.append_entries(session_id, wanted)
        return await one_store.load_entries(session_id)

    found = asyncio.run(round_trip())
    assert [encode_entry(entry) for entry in found] == [encode_entry(entry) for entry in wanted]


async def test_the_order_of_keys_and_the_spelling_of_numbers_stay(store: PostgresStore) -> None:
    line = (
        b'{"type":"custom","zeta":1,"id":"e\\u0000\\ud800","kind":"k","alpha":1.50,'
        b'"created_at":"2026-05-06T07:08:09Z","n":123456789012345678901234567890, "a" : "\\u00e9"}'
    )
    await store.create_session("s")
    await store.append_entries("s", [decode_entry(line)])
    assert [encode_entry(entry) for entry in await store.load_entries("s")] == [line]


async def test_ids_may_be_long(stores: Callable[..., PostgresStore]) -> None:
    """They are told apart and recognized also beyond what an index takes."""
    store = stores()
    await store.create_session("s")
    long = random.Random(7).randbytes(50_000).hex()  # which does not get small by compression
    names = [long[:512], long[:513], long, long[:-1] + "y"]
    for _ in range(2):
        await store.append_entries("s", notes(*names))
    assert ids(await store.load_entries("s")) == names
    await stores().append_entries("s", notes(*names, "e"))
    assert ids(await store.load_entries("s")) == [*names, "e"]


async def test_loading_again_asks_only_for_what_is_new(
    stores: Callable[..., PostgresStore],
) -> None:
    """The entries that were loaded before are the same objects; others' appends follow them."""
    one, other = stores(), stores()
    await one.create_session("s")
    await one.append_entries("s", notes(*(f"e{n}" for n in range(700))))
    before = await one.load_entries("s")
    await other.append_entries("s", notes("e5", "f1", "f2"))
    await one.append_entries("s", notes("f3"))
    after = await one.load_entries("s")
    assert ids(after) == [*(f"e{n}" for n in range(700)), "f1", "f2", "f3"]
    assert all(a is b for a, b in zip(before, after, strict=False))
    await one.append_entries("s", notes("f4", "f3"))
    assert ids(await one.load_entries("s"))[700:] == ["f1", "f2", "f3", "f4"]
    assert await one.load_entries("s") == await stores().load_entries("s")


async def test_a_log_that_was_replaced_is_loaded_anew(
    postgres: PostgresServer, stores: Callable[..., PostgresStore]
) -> None:
    """Deleted and made again; or a standby took over that had not received everything."""
    store = stores()
    await store.create_session("s")
    await store.append_entries("s", notes("e1", "e2", "e3"))
    assert ids(await store.load_entries("s")) == ["e1", "e2", "e3"]
    await postgres.execute(f"""DELETE FROM "{store.schema}".entries WHERE id = 'e3'""")
    assert ids(await store.load_entries("s")) == ["e1", "e2"]
    await store.append_entries("s", notes("e3", "e4"))
    assert ids(await store.load_entries("s")) == ["e1", "e2", "e3", "e4"]

    await postgres.execute(f"""DELETE FROM "{store.schema}".sessions WHERE id = 's'""")
    with pytest.raises(SessionNotFoundError):
        await store.load_entries("s")
    await store.create_session("s")
    assert await store.load_entries("s") == []
    await stores().append_entries("s", notes("n1"))
    assert ids(await store.load_entries("s")) == ["n1"]


async def test_a_line_that_somebody_damaged_is_an_error_that_names_it(
    postgres: PostgresServer, stores: Callable[..., PostgresStore]
) -> None:
    """2.7: nothing is read past it and nothing is guessed."""
    store = stores()
    await store.create_session("s")
    await store.append_entries("s", notes("e1", "e2", "e3"))
    await postgres.execute(
        f"""UPDATE "{store.schema}".entries SET line = '{{"type"' WHERE id = 'e2'"""
    )
    with pytest.raises(DamagedLogError, match=r"^session 's' in PostgreSQL at .*, line 2: ") as e:
        await stores().load_entries("s")
    assert e.value.line == 2


async def test_a_path_is_loaded_without_the_rest_of_the_log(
    postgres: PostgresServer, stores: Callable[..., PostgresStore]
) -> None:
    """What is not on it is not even looked at; what is cached stays what it was."""
    store = stores()
    await store.create_session("s")
    trunk = notes(*(f"e{n}" for n in range(2500)))
    parents = ["", *(entry.id for entry in trunk)]
    log = [note.with_header(parent_id=parent) for note, parent in zip(trunk, parents, strict=False)]
    await store.append_entries("s", log)
    await store.append_entries("s", [n.with_header(parent_id="e9") for n in notes("d1", "d2")])
    await postgres.execute(
        f"""UPDATE "{store.schema}".entries SET line = 'damaged' WHERE id LIKE 'd%'"""
    )
    assert ids(await store.load_path("s", "e2499")) == [f"e{n}" for n in range(2500)]
    assert ids(await store.load_path("s", "e2400", limit=1500)) == [
        f"e{n}" for n in range(901, 2401)
    ]
    with pytest.raises(DamagedLogError, match=r"line 2502: "):
        await store.load_path("s")
    with pytest.raises(DamagedLogError):
        await store.load_entries("s")


async def test_a_long_path_is_found_by_its_index(
    postgres: PostgresServer, stores: Callable[..., PostgresStore]
) -> None:
    """What it costs is its length, however many entries the log and the table have."""
    store = stores()
    await store.create_session("s")
    await store.append_entries("s", notes(*(f"e{n}" for n in range(3000))))
    connection = await postgres.connect()
    try:
        for statement in (store._statements.path, store._statements.last_path):
            asked = statement.replace("$1", "'s'").replace("$2", "9").replace("$3", "'e5'")
            plan = await connection.fetch(f"EXPLAIN {asked}")
            assert not [line for (line,) in plan if "Seq Scan on entries" in line]
    finally:
        await connection.close()


async def test_any_event_loop_may_use_a_store(store: PostgresStore) -> None:
    """One after the other, and several at the same time in their threads."""

    def append(name: str) -> None:
        for number in range(5):
            asyncio.run(store.append_entries("s", notes(f"{name}{number}")))

    await store.create_session("s")
    threads = [threading.Thread(target=append, args=(name,)) for name in "abc"]
    for thread in threads:
        thread.start()
    for thread in threads:
        await asyncio.to_thread(thread.join)
    found = ids(await store.load_entries("s"))
    assert sorted(found) == sorted(f"{name}{number}" for name in "abc" for number in range(5))


async def test_a_store_that_is_closed_leaves_nothing_behind(postgres: PostgresServer) -> None:
    threads = set(threading.enumerate())
    async with postgres.new_store() as store:
        await store.create_session("s")
        names = {thread.name for thread in set(threading.enumerate()) - threads}
        assert "perdure-postgres" in names
    await store.close()
    with pytest.raises(StoreError, match=r"is closed, or was opened before a fork; make another$"):
        await store.load_entries("s")
    assert "perdure-postgres" not in {t.name for t in set(threading.enumerate()) - threads}


async def test_a_process_that_was_forked_is_told_to_make_a_store_of_its_own(
    store: PostgresStore,
) -> None:
    """It does not use the connections of the other, and does not hang."""
    await store.create_session("s")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # newer Pythons warn of a fork beside threads
        child = os.fork()
    if not child:
        try:
            store.load_entries("s").send(None)
        except StoreError:
            os._exit(0)
        finally:
            os._exit(1)
    _, status = await asyncio.to_thread(os.waitpid, child, 0)
    assert status == 0
    assert await store.load_entries("s") == []


async def test_a_store_that_is_forgotten_closes_itself(postgres: PostgresServer) -> None:
    store = postgres.new_store()
    await store.create_session("s")
    thread = store._database.thread._thread
    assert thread is not None
    assert thread.is_alive()
    del store
    gc.collect()
    thread.join(10)
    assert not thread.is_alive()


async def test_a_caller_that_is_cancelled_holds_nobody_up(
    postgres: PostgresServer, stores: Callable[..., PostgresStore]
) -> None:
    store = stores(pool_size=1)
    await store.create_session("s")
    blocker = await postgres.connect()
    try:
        holding = blocker.transaction()
        await holding.start()
        await blocker.execute(f'SELECT * FROM "{store.schema}".sessions FOR UPDATE')
        append = asyncio.create_task(store.append_entries("s", notes("e1")))
        while not await postgres_waits(blocker):  # noqa: ASYNC110 - the server tells nobody
            await asyncio.sleep(0.01)
        append.cancel()
        with pytest.raises(asyncio.CancelledError):
            await append
        assert await store.load_entries("s") == []
        await holding.rollback()
    finally:
        await blocker.close()
    await store.append_entries("s", notes("e1", "e2"))
    assert ids(await store.load_entries("s")) == ["e1", "e2"]


async def test_appends_that_come_together_are_one_transaction_in_which_nobody_waits(
    postgres: PostgresServer, stores: Callable[..., PostgresStore]
) -> None:
    """2.1: those to a session that somebody else has locked wait alone. An append of nothing, to
    nobody and of what cannot be stored harm no others. It takes no more rights than the docs list.
    """
    owner = stores()
    names = [f"s{number}" for number in range(20)]
    await asyncio.gather(*map(owner.create_session, names))
    schema = f'"{owner.schema}"'
    await postgres.execute(
        "CREATE ROLE appender LOGIN",
        f"GRANT USAGE ON SCHEMA {schema} TO appender",
        f"GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO appender",
        f"GRANT INSERT ON {schema}.sessions, {schema}.entries TO appender",
        f"GRANT UPDATE (last_seq) ON {schema}.sessions TO appender",
    )
    blocker = await postgres.connect()
    written = f"SELECT count(DISTINCT xmin::text) FROM {schema}.entries"
    try:
        async with PostgresStore(postgres.url("appender"), schema=owner.schema) as store:
            await store.append_entries("s0", notes("before"))
            holding = blocker.transaction()
            await holding.start()
            await blocker.execute(f"SELECT * FROM {schema}.sessions WHERE id = 's0' FOR UPDATE")
            others = [store.append_entries(name, notes("a", "b", "a")) for name in names]
            waiting = asyncio.create_task(others.pop(0))
            gone = asyncio.create_task(store.append_entries("nobody", notes("a")))
            await asyncio.gather(store.append_entries("s1", []), *others)
            with pytest.raises(SessionNotFoundError):
                await gone
            assert not waiting.done()
            assert await blocker.fetchval(written) <= 8
            await holding.rollback()
            await waiting
        for name in names:
            assert ids(await owner.load_entries(name))[-2:] == ["a", "b"]
    finally:
        await blocker.close()


async def postgres_waits(connection: Any) -> bool:
    """Whether some connection waits for a lock."""
    waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
    return bool(await connection.fetchval(waiting))


async def test_sessions_are_listed_and_keep_the_record_that_they_are_given(
    store: PostgresStore, tmp_path: Any
) -> None:
    files = FileStore(tmp_path)
    await files.create_session("parent/1")
    await files.create_session("child é", "parent/1")
    records = [await files.load_session(each) for each in ("child é", "parent/1")]
    for record in records:
        await store.restore_session(record)
    assert await store.list_sessions() == ["child é", "parent/1"]
    assert [await store.load_session(each.id) for each in records] == records
    with pytest.raises(SessionExistsError):
        await store.restore_session(records[0])


async def test_more_sessions_than_fit_one_answer_are_listed(
    postgres: PostgresServer, store: PostgresStore
) -> None:
    await store.create_session("first")
    await postgres.execute(
        f"""INSERT INTO "{store.schema}".sessions (id, parent_id, record)
        SELECT 's' || n, '', '' FROM generate_series(1, 2500) AS n"""
    )
    listed = await store.list_sessions()
    assert listed == sorted(["first", *(f"s{n}" for n in range(1, 2501))])


async def test_two_schemas_of_a_database_share_nothing(postgres: PostgresServer) -> None:
    async with postgres.new_store() as one, postgres.new_store() as other:
        await one.create_session("s")
        await other.create_session("s")
        await one.append_entries("s", notes("e1"))
        assert await other.load_entries("s") == []


async def test_the_url_may_name_the_schema_and_the_number_of_connections(
    postgres: PostgresServer,
) -> None:
    store = open_store(f"{postgres.url()}&schema=team%20%22a%22&pool_size=2")
    assert isinstance(store, PostgresStore)
    async with store:
        await store.create_session("s")
    assert store.schema == 'team "a"'
    assert repr(store).endswith("""/postgres', schema='team "a"')""")
    async with PostgresStore(f"{postgres.url()}&schema=other", schema='team "a"') as same:
        assert await same.load_entries("s") == []
