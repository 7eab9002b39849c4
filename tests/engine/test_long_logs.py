"""Branching in a log of 100,000 entries, of which the workflow sees nothing."""

from __future__ import annotations

import pytest
from temporalio.client import Client

from perdure import Entry, EntryNotFoundError, MessageEntry, text
from perdure.protocol.said import CARRIED
from perdure.session_id import workflow_id
from perdure.stores import FileStore
from tests.engine.agents import echo
from tests.engine.conftest import Serving
from tests.engine.histories import histories

ENTRIES = 100_000
MARK = "of the long log"


def long_log() -> list[Entry]:
    """One chain."""
    entry = text(f"a line {MARK}")
    return [
        entry.with_header(id=f"e{number}", parent_id=f"e{number - 1}" if number else "")
        for number in range(ENTRIES)
    ]


@pytest.mark.timeout(120)
async def test_a_branch_in_a_long_log_finds_its_entry_without_loading_it_into_the_workflow(
    serving: Serving, store: FileStore
) -> None:
    """5.1: to any entry; history stays as short as that of a short log."""
    await store.create_session("long-log")
    await store.append_entries("long-log", long_log())
    async with serving(echo()) as sessions:
        session = await sessions.open("long-log", agent="agent")
        assert await session.leaf_id() == f"e{ENTRIES - 1}"
        for entry_id in ("e5", f"e{ENTRIES - 2}", "e0", "e50000"):
            await session.branch(entry_id)
            assert await session.leaf_id() == entry_id
        with pytest.raises(EntryNotFoundError):
            await session.branch(f"e{ENTRIES}")
        assert len(await session.transcript()) == 50_001

        await session.branch("e1")
        assert (await (await session.run("new")))[-1].text == "You said 'new'"
        said = [entry for entry in await session.transcript() if isinstance(entry, MessageEntry)]
        assert [entry.message.text for entry in said][2:] == ["new", "You said 'new'"]
        await _holds_little_of_the_log(sessions.client)


async def _holds_little_of_the_log(client: Client) -> None:
    """No more than the few last messages that the Temporal UI shows, each time the leaf moves."""
    size = 0
    async for events in histories(client, workflow_id("long-log")):
        for event in events:
            line = event.SerializeToString()
            assert line.count(MARK.encode()) <= CARRIED
            size += len(line)
    assert size < 40_000
