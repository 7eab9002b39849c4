"""Fork: a child session with a copy of the path."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Sequence

import pytest
from temporalio.testing import ActivityEnvironment

from perdure import (
    CommandError,
    CompactionEntry,
    Entry,
    EntryNotFoundError,
    InvalidSessionIdError,
    SessionExistsError,
    text,
)
from perdure.activities.forks import ForkActivities
from perdure.activities.heartbeats import Heart
from perdure.dev_server import DevServer
from perdure.protocol import CopiedPath, CopyPath
from perdure.stores import FileStore, MemoryStore
from perdure.transcript_cache import Transcripts
from tests.engine.agents import echo, texts
from tests.engine.conftest import Serving


async def test_fork_copies_the_active_path_into_a_child_of_its_own(
    serving: Serving, store: FileStore
) -> None:
    """5.3: parent, fresh IDs, the original times; the child goes on with the source's agent."""
    async with serving(echo()) as sessions:
        source = await sessions.open("source", agent="agent")
        await (await source.run("one"))
        checkpoint = await source.leaf_id()
        await (await source.run("abandoned"))
        await source.branch(checkpoint)
        path = await source.transcript()

        child = await source.fork("source/what-if")
        copies = await child.entries()
        assert (await store.load_session("source/what-if")).parent_id == "source"
        assert texts(copies) == texts(path)
        assert [copy.created_at for copy in copies] == [entry.created_at for entry in path]
        assert not {copy.id for copy in copies} & {entry.id for entry in await source.entries()}
        assert [copy.parent_id for copy in copies] == ["", copies[0].id]

        assert (await (await child.run("on my own")))[-1].text == "You said 'on my own'"
        assert await source.transcript() == path


async def test_a_child_outlives_its_source(serving: Serving) -> None:
    """5.3: the child's workflow starts by itself, and is nobody's to end."""
    async with serving(echo()) as sessions:
        source = await sessions.open("short-lived", agent="agent")
        await source.append("hello")
        child = await source.fork("long-lived")
        await source.close()
        status = await child.status()
        assert (status.state, status.agent) == ("idle", "agent")


async def test_fork_at_an_earlier_entry(serving: Serving) -> None:
    async with serving(echo()) as sessions:
        source = await sessions.open("earlier", agent="agent")
        [first, _] = await source.append("one", "two")
        child = await source.fork("earlier-one", at=first.id)
        assert texts(await child.entries()) == ["one"]
        with pytest.raises(EntryNotFoundError):
            await source.fork("earlier-none", at="nowhere")
        with pytest.raises(LookupError):
            await sessions.store.load_entries("earlier-none")


async def test_fork_onto_a_taken_id_changes_nothing(serving: Serving) -> None:
    """5.3: SessionExistsError, also for itself and for an empty one."""
    async with serving(echo()) as sessions:
        source = await sessions.open("forker")
        await source.append("mine")
        taken = await sessions.open("taken")
        await taken.append("theirs")
        await sessions.open("taken-and-empty")
        for child_id in ("taken", "taken-and-empty", "forker"):
            with pytest.raises(SessionExistsError):
                await source.fork(child_id)
        assert texts(await taken.entries()) == ["theirs"]
        assert texts(await source.entries()) == ["mine"]
        assert await sessions.store.load_entries("taken-and-empty") == []


async def test_fork_of_nothing_or_onto_what_is_no_id_is_refused(serving: Serving) -> None:
    async with serving(echo()) as sessions:
        empty = await sessions.open("nothing-here")
        with pytest.raises(CommandError, match="before the first entry"):
            await empty.fork("nothing-there")
        await empty.append("something")
        with pytest.raises(InvalidSessionIdError):
            await empty.fork("a\nb")


async def test_of_two_forks_racing_for_one_id_one_wins(serving: Serving) -> None:
    """5.3: one winner, one SessionExistsError, one complete child."""
    async with serving(echo()) as sessions:
        sources = [await sessions.open(f"racer-{number}") for number in range(4)]
        for number, source in enumerate(sources):
            await source.append(f"from {number}", "and more")
        endings = await asyncio.gather(
            *(source.fork("the-prize") for source in sources), return_exceptions=True
        )
        winners = [n for n, ending in enumerate(endings) if not isinstance(ending, Exception)]
        losers = [ending for ending in endings if isinstance(ending, Exception)]
        assert len(winners) == 1
        assert all(isinstance(loser, SessionExistsError) for loser in losers)
        stored = await sessions.store.load_entries("the-prize")
        assert texts(stored) == [f"from {winners[0]}", "and more"]


class FailingStore(MemoryStore):
    """A store that dies at the n-th call of its writing side, before or after the effect."""

    def __init__(self, call: int, *, after: bool) -> None:
        super().__init__()
        self._calls_left = call
        self._after = after

    async def create_session(self, session_id: str, parent_id: str = "") -> None:
        await self._dying(super().create_session(session_id, parent_id), session_id)

    async def append_entries(self, session_id: str, entries: Sequence[Entry]) -> None:
        await self._dying(super().append_entries(session_id, entries), session_id)

    async def _dying(self, effect: object, session_id: str) -> None:
        dies = False
        if session_id == "child":
            self._calls_left -= 1
            dies = self._calls_left == 0
        if dies and not self._after:
            effect.close()  # type: ignore[attr-defined]
            raise ConnectionError
        await effect  # type: ignore[misc]
        if dies:
            raise ConnectionError


class OvertakenStore(MemoryStore):
    """Just before the child is made, somebody else makes a session of that ID."""

    async def create_session(self, session_id: str, parent_id: str = "") -> None:
        if session_id == "overtaken-child":
            await super().create_session(session_id, "somebody else")
        await super().create_session(session_id, parent_id)


async def test_a_session_that_was_made_meanwhile_is_not_taken_over(serving: Serving) -> None:
    """5.3: it is empty still, as what a fork left half-way would be; but it is not this fork's."""
    store = OvertakenStore()
    async with serving(echo(), over=store) as sessions:
        source = await sessions.open("overtaken", agent="agent")
        await source.append("hello")
        with pytest.raises(SessionExistsError):
            await source.fork("overtaken-child")
        assert (await store.load_session("overtaken-child")).parent_id == "somebody else"
        assert await store.load_entries("overtaken-child") == []


@pytest.mark.parametrize("call", [1, 2])
@pytest.mark.parametrize("after", [False, True])
async def test_a_fork_that_dies_half_way_is_completed_by_its_retry(
    server: DevServer, call: int, after: bool
) -> None:
    """5.3: nothing, or after the retry one complete child."""
    store = FailingStore(call, after=after)
    await store.create_session("source")
    entries = [
        text(f"{number}").with_header(id=f"e{number}", parent_id=f"e{number - 1}" if number else "")
        for number in range(5)
    ]
    await store.append_entries("source", entries)
    fork = ForkActivities(store, Transcripts(store), Heart())
    request = CopyPath(session_id="source", leaf_id="e4", child_id="child")

    with pytest.raises(ConnectionError):
        await _attempt(1, server, fork, request)
    copied = await _attempt(2, server, fork, request)
    again = await _attempt(3, server, fork, request)

    child = await store.load_entries("child")
    assert texts(child) == ["0", "1", "2", "3", "4"]
    assert copied == again
    assert copied.leaf_id == child[-1].id
    assert (await store.load_session("child")).parent_id == "source"


async def _attempt(
    number: int, server: DevServer, fork: ForkActivities, request: CopyPath
) -> CopiedPath:
    environment = ActivityEnvironment(client=server.client)
    environment.info = dataclasses.replace(environment.info, attempt=number)
    return await environment.run(fork.copy_path, request)


async def test_a_compaction_keeps_its_kept_entries_in_a_fork(serving: Serving) -> None:
    """5.3: the first kept entry is named by its new ID, so the view is the same."""
    async with serving(echo()) as sessions:
        source = await sessions.open("compacted-source", agent="agent")
        await source.append("old", "kept")
        [_, kept] = await source.entries()
        summary = CompactionEntry(summary="of old", first_kept_id=kept.id)
        await source.append(summary, "new")
        child = await source.fork("compacted-child")
        assert await child.messages() == await source.messages()
        assert [m.text for m in await child.messages()] == ["of old", "kept", "new"]
