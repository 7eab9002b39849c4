"""Sessions of which nothing is in memory, over a store that loads paths: how much is loaded."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from perdure.entries import CompactionEntry, Entry, MessageEntry
from perdure.errors import SessionNotFoundError
from perdure.messages import Message
from perdure.stores import MemoryStore
from perdure.transcript import Transcript
from perdure.transcript_cache import FIRST_BLOCK, Transcripts


class PathStore(MemoryStore):
    """Loads paths, and takes note of what it was asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.logs = 0
        self.loaded = 0

    async def load_entries(self, session_id: str) -> list[Entry]:
        self.logs += 1
        return await super().load_entries(session_id)

    async def load_path(
        self, session_id: str, leaf_id: str | None = None, *, limit: int | None = None
    ) -> list[Entry]:
        log = Transcript(await super().load_entries(session_id))
        await asyncio.sleep(0)
        path = log.path(leaf_id)
        found = path if limit is None else path[max(0, len(path) - limit) :]
        self.loaded += len(found)
        return found


def said(entry_id: str, parent_id: str = "", role: str = "user") -> MessageEntry:
    message = Message(role=role, content=entry_id)
    return MessageEntry(id=entry_id, parent_id=parent_id, message=message)


def chain(count: int, *, start: int = 0, parent_id: str = "") -> list[Entry]:
    """Messages `e0`, `e1`… in a row."""
    entries: list[Entry] = []
    for number in range(start, start + count):
        entries.append(said(f"e{number}", parent_id))
        parent_id = f"e{number}"
    return entries


def compacted(entry_id: str, parent_id: str, first_kept_id: str) -> CompactionEntry:
    return CompactionEntry(
        id=entry_id, parent_id=parent_id, summary="all that", first_kept_id=first_kept_id
    )


async def session(*entries: Entry) -> tuple[PathStore, Transcripts]:
    store = PathStore()
    await store.create_session("s")
    await store.append_entries("s", entries)
    return store, Transcripts(store)


def texts(messages: Sequence[Message]) -> list[str]:
    return [message.text for message in messages]


async def test_a_model_view_needs_what_follows_the_latest_compaction() -> None:
    """4.2: and is the same as that of the whole log."""
    log = [*chain(1000), compacted("c", "e999", "e990"), said("q", "c")]
    store, transcripts = await session(*log)
    view = (await transcripts.for_model("s", "q")).model_view("q")
    assert view == Transcript(log).model_view("q")
    assert texts(view)[0] == "all that"
    assert (store.logs, store.loaded) == (0, FIRST_BLOCK)


async def test_without_a_compaction_all_of_the_path_is_loaded_and_no_other_branch() -> None:
    log = [*chain(150), *(said(f"dead{n}", "e100") for n in range(2000)), said("q", "e149")]
    store, transcripts = await session(*log)
    view = (await transcripts.for_model("s", "q")).model_view("q")
    assert view == Transcript(log).model_view("q")
    assert (store.logs, store.loaded) == (0, 151)


async def test_an_ephemeral_message_finds_its_parent_behind_the_compaction() -> None:
    log = [*chain(1000), compacted("c", "e999", "e998")]
    _, transcripts = await session(*log)
    note = said("note", "e500").model_copy(update={"ephemeral": True})
    view = (await transcripts.for_model("s", "c", ["e500"])).model_view("c", ephemeral=[note])
    assert view == Transcript(log).model_view("c", ephemeral=[note])
    assert texts(view) == ["all that", "note", "e998", "e999"]


async def test_a_part_is_not_taken_for_the_log() -> None:
    store, transcripts = await session(*chain(500), said("branch", "e3"))
    await transcripts.path("s", "e499", lambda end: len(end) >= 2)
    whole = await transcripts.latest("s")
    assert (len(whole), whole.leaf_id) == (501, "branch")
    assert (await transcripts.holding("s", "e499")) is whole
    await transcripts.path("s", "e499")
    assert (await transcripts.for_model("s", "branch")) is whole
    assert store.logs == 1


async def test_where_somebody_went_back_behind_the_compaction_the_path_goes_back_further() -> None:
    """5.1, 5.4: an entry that the compaction kept is in memory, what comes before it is not yet."""
    log = [*chain(1000), compacted("c", "e999", "e990"), said("q", "c")]
    _, transcripts = await session(*log)
    await transcripts.for_model("s", "q")
    view = (await transcripts.for_model("s", "e995")).model_view("e995")
    assert texts(view) == [f"e{n}" for n in range(996)]


async def test_what_others_appended_is_loaded_to_where_the_part_ends() -> None:
    """1.5: the steps of a run may land on two workers by turns; branches join."""
    log = chain(50)
    store, transcripts = await session(*log)
    await transcripts.for_model("s", "e49")
    await store.append_entries("s", chain(3, start=50, parent_id="e49"))
    await store.append_entries("s", [said("other", "e30")])
    store.loaded = 0
    assert len(await transcripts.path("s", "e52")) == 53
    assert [entry.id for entry in await transcripts.path("s", "other")][-2:] == ["e30", "other"]
    assert (store.logs, store.loaded) == (0, 40)


async def test_what_this_worker_appends_goes_on_from_a_part() -> None:
    store, transcripts = await session(*chain(1000), compacted("c", "e999", ""))
    await transcripts.for_model("s", "c")
    store.loaded = 0
    await store.append_entries("s", [said("q", "c")])
    transcripts.add("s", [said("q", "c")])
    assert texts((await transcripts.for_model("s", "q")).model_view("q")) == ["all that", "q"]
    assert store.loaded == 0


async def test_the_last_entry_is_asked_for_alone() -> None:
    store, transcripts = await session(*chain(200), said("last", "e3"))
    assert await transcripts.last_id("s") == "last"
    assert (store.logs, store.loaded) == (0, 1)
    await transcripts.latest("s")
    assert await transcripts.last_id("s") == "last"
    assert store.logs == 2
    with pytest.raises(SessionNotFoundError):
        await transcripts.last_id("nobody")


async def test_an_entry_that_is_not_there_has_no_path() -> None:
    """4.1: neither has one whose parent is missing, or on the path already, more than there is."""
    around = [said("a", "c"), said("b", "a"), said("c", "b")]
    store, transcripts = await session(said("e1", "gone"), said("e2", "e1"), *around)
    assert await transcripts.path("s", "nothing") == []
    assert [entry.id for entry in await transcripts.path("s", "e2")] == ["e1", "e2"]
    assert [entry.id for entry in await transcripts.path("s", "c")] == ["a", "b", "c"]
    loaded = store.loaded
    await transcripts.path("s", "e2")
    await transcripts.path("s", "c")
    assert store.loaded == loaded
    with pytest.raises(SessionNotFoundError):
        await transcripts.path("nobody", "e1")


async def test_many_may_ask_at_the_same_time() -> None:
    log = [*chain(700), *(said(f"branch{n}", f"e{n * 60}") for n in range(10))]
    _, transcripts = await session(*log)
    paths, whole = await asyncio.gather(
        asyncio.gather(*(transcripts.path("s", f"branch{n}") for n in range(10))),
        transcripts.latest("s"),
    )
    assert paths == [Transcript(log).path(f"branch{n}") for n in range(10)]
    assert list(whole.entries) == log


async def test_parts_are_dropped_with_the_rest_when_there_are_too_many() -> None:
    store = PathStore()
    transcripts = Transcripts(store, max_bytes=2000)
    for session_id in ("a", "b", "a"):
        if session_id not in await store.list_sessions():
            await store.create_session(session_id)
            await store.append_entries(session_id, chain(20))
        await transcripts.path(session_id, "e19")
    assert store.loaded == 60
