"""The entries that activities make of messages can be told from what the log has."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure import Message, MessageEntry
from perdure.activities import recent_leaves
from perdure.activities.appending import Appends, is_message_after, message_after
from perdure.codec import decode_entry, encode_entry
from perdure.entries import Entry, text
from perdure.messages import TextBlock
from perdure.stores import MemoryStore
from perdure.transcript_cache import Transcripts
from tests.core.strategies import any_text, messages


@given(messages, any_text.filter(bool))
def test_whatever_a_message_holds_its_author_knows_it_again(message: Message, author: str) -> None:
    entry = message_after("leaf", message.to_wire(), session_id="s", author=author)
    stored = decode_entry(encode_entry(entry))
    assert isinstance(stored, MessageEntry)
    assert stored.message.to_wire() == entry.to_wire()["message"]
    assert is_message_after("leaf", stored, session_id="s", author=author)


@given(st.sampled_from(["leaf", "session", "author"]))
def test_what_another_wrote_or_elsewhere_is_not_taken_for_it(differs: str) -> None:
    message = Message(role="assistant", content=(TextBlock(text="Hello."),))
    entry = message_after("leaf", message.to_wire(), session_id="session", author="author")
    place = {name: f"{name}{'!' * (name == differs)}" for name in ("leaf", "session", "author")}
    assert not is_message_after(
        place["leaf"], entry, session_id=place["session"], author=place["author"]
    )


async def test_what_another_worker_stored_meanwhile_has_the_time_that_it_has_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """6.3: this worker was silent for long. Another took the session over, stored the next entry,
    and died before anyone heard of it; now the same entry is this one's to store.
    """
    store = MemoryStore()
    ours, theirs = await _two_workers(store)
    await ours.add("s", [_entry("e1", "")])
    await theirs.add("s", [_entry("e2", "e1")])

    monkeypatch.setattr(recent_leaves, "_FRESH", 0.0)  # the second has passed
    assert await ours.add("s", [_entry("e2", "e1", hour=13)]) == {"e2": NOON}


async def test_each_of_several_entries_that_another_worker_stored_has_its_time() -> None:
    """6.3: what is done again step by step may have been done to its end."""
    store = MemoryStore()
    ours, theirs = await _two_workers(store)
    chain = [("e1", ""), ("e2", "e1"), ("e3", "e2")]
    for names in chain:
        await theirs.add("s", [_entry(*names)])
    told = [await ours.add("s", [_entry(*names, hour=13)]) for names in chain]
    assert told == [{"e1": NOON}, {"e2": NOON}, {"e3": NOON}]


async def test_another_worker_that_is_still_at_it_may_be_first() -> None:
    """6.3: one that is slow is taken for dead, and stores the entry just before its successor."""
    store = Overtaken()
    ours, theirs = await _two_workers(store)
    store.before_append = lambda: theirs.add("s", [_entry("e1", "")])
    assert await ours.add("s", [_entry("e1", "", hour=13)]) == {"e1": NOON}
    assert [str(entry.created_at) for entry in await store.load_entries("s")] == [NOON]


class Overtaken(MemoryStore):
    before_append: Callable[[], Awaitable[object]] | None = None

    async def append_entries(self, session_id: str, entries: Sequence[Entry]) -> None:
        before, self.before_append = self.before_append, None
        if before is not None:
            await before()
        await super().append_entries(session_id, entries)


NOON = "2026-01-01T12:00:00Z"


async def _two_workers(store: MemoryStore) -> tuple[Appends, Appends]:
    await store.create_session("s")
    return Appends(store, Transcripts(store)), Appends(store, Transcripts(store))


def _entry(entry_id: str, parent_id: str, *, hour: int = 12) -> Entry:
    header = {"id": entry_id, "parent_id": parent_id, "created_at": f"2026-01-01T{hour}:00:00Z"}
    return decode_entry(encode_entry(MessageEntry.model_validate(text("hello").to_wire() | header)))
