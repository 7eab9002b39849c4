"""The store that lives in one process."""

from __future__ import annotations

import asyncio
import threading

import pytest

from perdure.entries import MessageEntry, SessionRecord
from perdure.errors import SessionNotFoundError
from perdure.messages import Message, ToolCallBlock
from perdure.stores import MemoryStore
from tests.stores.logs import ids, notes


async def test_a_session_is_a_record_and_a_log() -> None:
    """1.1: two persisted things; the record is written once, whatever is appended."""
    store = MemoryStore()
    await store.create_session("child", "parent")
    before = await store.load_session("child")
    await store.append_entries("child", notes("e1", "e2"))
    assert await store.load_session("child") == before
    assert (before.id, before.parent_id) == ("child", "parent")
    assert ids(await store.load_entries("child")) == ["e1", "e2"]


async def test_the_record_has_no_room_for_application_state() -> None:
    """1.4: existence and lineage, nothing else."""
    store = MemoryStore()
    await store.create_session("child", "parent")
    record = await store.load_session("child")
    assert list(record.model_dump(mode="json", by_alias=True)) == [
        "type",
        "id",
        "parent_id",
        "created_at",
    ]


async def test_the_record_of_an_unknown_session_is_not_found() -> None:
    """2.2: the concrete stores load the record too."""
    with pytest.raises(SessionNotFoundError) as caught:
        await MemoryStore().load_session("gone")
    assert caught.value.session_id == "gone"


async def test_what_it_returns_are_copies_all_the_way_down() -> None:
    """2.3: what it returns are copies."""
    store = MemoryStore()
    await store.create_session("s")
    call = ToolCallBlock(id="c", name="t", arguments={"deep": {"x": [1]}})
    entry = MessageEntry(id="e1", message=Message(role="assistant", content=[call]))
    await store.append_entries("s", [entry])
    [loaded] = await store.load_entries("s")
    assert isinstance(loaded, MessageEntry)
    loaded.message.tool_calls[0].arguments["deep"]["x"].append(2)
    assert await store.load_entries("s") == [entry]


async def test_threads_with_loops_of_their_own_lose_nothing() -> None:
    """2.3: safe for concurrent use."""
    store = MemoryStore()
    await store.create_session("s")

    async def append(thread: int) -> None:
        for number in range(100):
            await store.append_entries("s", notes(f"{thread}-{number}-a", f"{thread}-{number}-b"))

    threads = [threading.Thread(target=asyncio.run, args=(append(n),)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        await asyncio.to_thread(thread.join)
    found = ids(await store.load_entries("s"))
    assert len(found) == 800
    assert found[1::2] == [first.removesuffix("a") + "b" for first in found[::2]]


async def test_a_session_starts_with_the_record_of_now() -> None:
    """1.1: the record says when the session came into being."""
    store = MemoryStore()
    await store.create_session("a")
    await store.create_session("b")
    first, second = await store.load_session("a"), await store.load_session("b")
    assert isinstance(first, SessionRecord)
    assert first.created_at <= second.created_at
    assert str(first.created_at).endswith("Z")
