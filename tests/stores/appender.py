"""A process that appends to a session of its own accord.

Usage: appender.py ROOT SESSION NAME CALLS SIZE

It prints `ready` and starts when a line arrives on its standard input; then whether it created the
session. Each call appends SIZE entries `NAME-<call>-<part>`; its number is printed when it is
acknowledged. With CALLS 0 it goes on until it is killed.
"""

from __future__ import annotations

import asyncio
import itertools
import sys

from perdure.entries import MessageEntry
from perdure.errors import SessionExistsError
from perdure.stores import FileStore
from tests.stores.logs import note


async def main(root: str, session_id: str, name: str, calls: int, size: int) -> None:
    store = FileStore(root)
    print("ready", flush=True)
    sys.stdin.readline()
    try:
        await store.create_session(session_id)
        print("created", flush=True)
    except SessionExistsError:
        print("exists", flush=True)
    for call in range(calls) if calls else itertools.count():
        await store.append_entries(session_id, call_entries(name, call, size))
        print(call, flush=True)


def call_entries(name: str, call: int, size: int) -> list[MessageEntry]:
    """What one call appends."""
    return [note(f"{name}-{call}-{part}", "some text " * 40) for part in range(size)]


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]), int(sys.argv[5])))
