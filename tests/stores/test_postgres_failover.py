"""A standby that takes over from a server that died, while sessions are appended to."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from perdure.stores import PostgresStore
from tests.stores.logs import ids, notes
from tests.stores.postgres_server import PostgresServer


@pytest.fixture
def pair() -> Iterator[tuple[PostgresServer, PostgresServer]]:
    """A primary and its standby."""
    primary = PostgresServer()
    standby = PostgresServer(standby_of=primary)
    yield primary, standby
    primary.close()
    standby.close()


async def test_a_standby_that_takes_over_has_what_was_acknowledged(
    pair: tuple[PostgresServer, PostgresServer],
) -> None:
    """2.6, 2.8: where it is a synchronous one. The store finds it by itself, and goes on."""
    primary, standby = pair
    await primary.execute(
        "ALTER SYSTEM SET synchronous_standby_names = '*'", "SELECT pg_reload_conf()"
    )
    hosts = f"{primary.socket_folder},{standby.socket_folder}"
    url = f"postgresql://postgres@/postgres?host={hosts}&target_session_attrs=read-write"
    async with PostgresStore(url) as store:
        while not await has_synchronous_standby(primary):  # noqa: ASYNC110 - it tells nobody
            await asyncio.sleep(0.01)
        names = [f"s{number}" for number in range(4)]
        acknowledged: dict[str, list[str]] = {name: [] for name in names}
        has_gone_on = asyncio.Event()

        async def append(name: str) -> None:
            await store.create_session(name)
            while not has_gone_on.is_set() or len(acknowledged[name]) < 60:
                entry_id = f"e{len(acknowledged[name])}"
                await store.append_entries(name, notes(entry_id))
                acknowledged[name].append(entry_id)

        appending = asyncio.gather(*map(append, names))
        while min(map(len, acknowledged.values())) < 20:  # noqa: ASYNC110 - it tells nobody
            await asyncio.sleep(0.01)
        await asyncio.to_thread(primary.kill)
        await standby.execute("SELECT pg_promote()")
        has_gone_on.set()
        await appending
        for name in names:
            assert ids(await store.load_entries(name)) == acknowledged[name]
    async with PostgresStore(standby.url()) as alone:
        assert await alone.list_sessions() == names
        for name in names:
            assert ids(await alone.load_entries(name)) == acknowledged[name]


async def has_synchronous_standby(server: PostgresServer) -> bool:
    """Whether commits wait for the standby already."""
    connection = await server.connect()
    try:
        found = "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'"
        return bool(await connection.fetchval(found))
    finally:
        await connection.close()
