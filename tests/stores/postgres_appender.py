"""A process that appends to sessions in PostgreSQL of its own accord.

Usage: postgres_appender.py URL SCHEMA NAME SESSIONS CALLS SIZE

It prints `ready` and starts when a line arrives on its standard input. Each call appends SIZE
entries `NAME-<call>-<part>` to one of the sessions `s0`, `s1`, …, the first ones all to `s0`; its
number is printed when it is acknowledged. A call that fails is repeated, as the engine does. With
CALLS 0 it goes on until a second line arrives.
"""

from __future__ import annotations

import asyncio
import itertools
import sys
import threading

from perdure.errors import StoreError
from perdure.stores import PostgresStore
from tests.stores.appender import call_entries

CALLS_TO_ONE = 30


async def main(url: str, schema: str, name: str, sessions: int, calls: int, size: int) -> None:
    async with PostgresStore(url, schema=schema, pool_size=2) as store:
        print("ready", flush=True)
        sys.stdin.readline()
        told = threading.Event()
        if not calls:
            threading.Thread(target=_await_line, args=(told,), daemon=True).start()
        for call in range(calls) if calls else itertools.count():
            if told.is_set():
                return
            await persistently(store, session_of(call, sessions), name, call, size)
            print(call, flush=True)


def session_of(call: int, sessions: int) -> str:
    """Where a call appends."""
    return f"s{call % sessions if call >= CALLS_TO_ONE else 0}"


def _await_line(told: threading.Event) -> None:
    sys.stdin.readline()
    told.set()


async def persistently(
    store: PostgresStore, session_id: str, name: str, call: int, size: int
) -> None:
    """Append until it is acknowledged."""
    while True:
        try:
            return await store.append_entries(session_id, call_entries(name, call, size))
        except StoreError:
            await asyncio.sleep(0.05)


if __name__ == "__main__":
    url, schema, name, *numbers = sys.argv[1:]
    asyncio.run(main(url, schema, name, *map(int, numbers)))
