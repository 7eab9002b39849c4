"""Real processes at one database: side by side, and while the server is killed."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from perdure.stores import PostgresStore
from tests.stores.logs import ids
from tests.stores.postgres_appender import session_of
from tests.stores.postgres_server import PostgresServer

PROJECT = Path(__file__).parent.parent.parent
APPENDERS = [f"p{number}" for number in range(8)]


@pytest.fixture
async def store(postgres: PostgresServer) -> AsyncIterator[PostgresStore]:
    async with postgres.new_store() as store:
        for number in range(100):
            await store.create_session(f"s{number}")
        yield store


class Appender:
    """A `postgres_appender.py` of its own process."""

    def __init__(self, postgres: PostgresServer, schema: str, name: str, *numbers: int) -> None:
        arguments = [postgres.url(), schema, name, *map(str, numbers)]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.stores.postgres_appender", *arguments],
            cwd=PROJECT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> Appender:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate()

    def tell(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write("go\n")
        self.process.stdin.flush()

    def lines(self) -> Iterator[str]:
        assert self.process.stdout is not None
        return map(str.strip, self.process.stdout)


async def test_processes_that_append_side_by_side_lose_nothing(
    postgres: PostgresServer, store: PostgresStore
) -> None:
    """2.1, 2.5: eight at one session, then at a hundred. Every call is in one piece, in the order
    of its process; all see the same order.
    """
    sessions, calls = 100, 130
    with ExitStack() as stack:
        appenders = [
            stack.enter_context(Appender(postgres, store.schema, name, sessions, calls, 3))
            for name in APPENDERS
        ]
        started = [appender.lines() for appender in appenders]
        assert [next(lines) for lines in started] == ["ready"] * len(APPENDERS)
        for appender in appenders:
            appender.tell()
        early = await store.load_entries("s0")
        told = [list(lines) for lines in started]
    assert told == [[str(call) for call in range(calls)]] * len(APPENDERS)
    for number in range(sessions):
        found = ids(await store.load_entries(f"s{number}"))
        found_calls = [found[start].rsplit("-", 1)[0] for start in range(0, len(found), 3)]
        assert found == [f"{call}-{part}" for call in found_calls for part in range(3)]
        for name in APPENDERS:
            own = [call for call in found_calls if call.startswith(f"{name}-")]
            assert own == [f"{name}-{call}" for call in calls_to(number, sessions, calls)]
    assert ids(await store.load_entries("s0"))[: len(early)] == ids(early)
    async with PostgresStore(postgres.url(), schema=store.schema) as other:
        assert await other.load_entries("s0") == await store.load_entries("s0")


async def test_what_was_acknowledged_survives_the_server_being_killed(
    postgres: PostgresServer, store: PostgresStore
) -> None:
    """2.6, 2.8: its processes die at any moment, and start again. All is there, and there once."""
    names = APPENDERS[:3]
    with ExitStack() as stack:
        appenders = [
            stack.enter_context(Appender(postgres, store.schema, name, 2, 0, 4)) for name in names
        ]
        told = [appender.lines() for appender in appenders]
        assert [next(lines) for lines in told] == ["ready"] * len(names)
        for appender in appenders:
            appender.tell()
        acknowledged = [0] * len(names)
        for _ in range(2):
            for number, lines in enumerate(told):
                for _ in range(20):
                    acknowledged[number] = int(next(lines))
            await asyncio.to_thread(postgres.kill)
            await asyncio.to_thread(postgres.start)
        for appender in appenders:
            appender.tell()
        for number, lines in enumerate(told):
            acknowledged[number] = int([*lines][-1])
    logs = [ids(await store.load_entries(f"s{number}")) for number in range(2)]
    for name, last in zip(names, acknowledged, strict=True):
        assert last >= 40
        for number, log in enumerate(logs):
            own = [entry for entry in log if entry.startswith(f"{name}-")]
            calls = calls_to(number, 2, last + 1)
            assert own == [f"{name}-{call}-{part}" for call in calls for part in range(4)]


def calls_to(number: int, sessions: int, calls: int) -> list[int]:
    """Those of a process's calls that append to a session."""
    return [call for call in range(calls) if session_of(call, sessions) == f"s{number}"]
