"""Transcripts that a worker keeps: how often the store is asked."""

from __future__ import annotations

from perdure.entries import Entry, MessageEntry
from perdure.messages import Message
from perdure.stores import MemoryStore
from perdure.transcript_cache import Transcripts


class CountingStore(MemoryStore):
    def __init__(self) -> None:
        super().__init__()
        self.loads = 0

    async def load_entries(self, session_id: str) -> list[Entry]:
        self.loads += 1
        return await super().load_entries(session_id)


def said(entry_id: str, parent_id: str = "") -> MessageEntry:
    return MessageEntry(
        id=entry_id, parent_id=parent_id, message=Message(role="user", content=entry_id)
    )


async def session(*entries: Entry) -> tuple[CountingStore, Transcripts]:
    store = CountingStore()
    await store.create_session("s")
    await store.append_entries("s", entries)
    return store, Transcripts(store)


async def test_what_was_appended_here_is_not_read_again() -> None:
    store, transcripts = await session(said("e1"))
    await transcripts.latest("s")
    await store.append_entries("s", [said("e2", "e1")])
    transcripts.add("s", [said("e2", "e1")])
    transcripts.add("s", [said("e2", "e1")])

    transcript = await transcripts.holding("s", "e2")
    assert [entry.id for entry in transcript.path("e2")] == ["e1", "e2"]
    assert (len(transcript), store.loads) == (2, 1)


async def test_entries_whose_parent_is_not_known_here_are_read_from_the_store() -> None:
    store, transcripts = await session(said("e1"))
    await transcripts.latest("s")
    await store.append_entries("s", [said("e2", "e1"), said("e3", "e2")])
    transcripts.add("s", [said("e3", "e2")])

    transcript = await transcripts.holding("s", "e3")
    assert [entry.id for entry in transcript.path("e3")] == ["e1", "e2", "e3"]
    assert store.loads == 2


async def test_what_others_appended_meanwhile_comes_with_the_next_reading() -> None:
    """1.5: the other's branch is there, in the order of the log."""
    store, transcripts = await session(said("e1"))
    await transcripts.latest("s")
    await store.append_entries("s", [said("theirs", "e1"), said("ours", "e1")])
    transcripts.add("s", [said("ours", "e1")])

    mine = await transcripts.holding("s", "ours")
    assert [entry.id for entry in mine.path("ours")] == ["e1", "ours"]
    whole = await transcripts.latest("s")
    assert [entry.id for entry in whole.entries] == ["e1", "theirs", "ours"]
    assert whole.leaves() == ["theirs", "ours"]


async def test_a_transcript_is_carried_on_rather_than_indexed_anew() -> None:
    store, transcripts = await session(said("e1"))
    first = await transcripts.latest("s")
    await store.append_entries("s", [said("e2", "e1")])
    assert await transcripts.latest("s") is first
    assert "e2" in first


async def test_the_least_recently_used_transcripts_make_room() -> None:
    store, _ = await session(said("e1"))
    transcripts = Transcripts(store, max_bytes=1)
    await transcripts.holding("s", "e1")
    await transcripts.holding("s", "e1")
    assert store.loads == 1

    await store.create_session("other")
    await store.append_entries("other", [said("e1")])
    await transcripts.holding("other", "e1")
    await transcripts.holding("s", "e1")
    assert store.loads == 3
