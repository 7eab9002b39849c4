"""The promises of a store, one function each: its docstring is the promise.

They use only the three operations of the contract, and `load_session` and `load_path` where a store
has them.
"""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Awaitable, Sequence
from typing import Protocol

from perdure.codec import decode_entry, encode_entry, loads_json
from perdure.entries import Entry, MessageEntry, SessionRecord, ephemeral
from perdure.errors import (
    EntryEncodeError,
    PerdureError,
    SessionExistsError,
    SessionNotFoundError,
)
from perdure.messages import Message, ToolCallBlock
from perdure.stores.contract import Store
from perdure.stores.extensions import path_loader
from perdure.testing.store_samples import (
    EVERY_KIND,
    FROM_ELSEWHERE,
    STRANGE_IDS,
    STRANGE_NUMBERS,
    STRANGE_TEXT,
)
from perdure.timestamps import Timestamp
from perdure.transcript import Transcript


class Broken(Exception):
    """A promise is broken; the text says what was seen."""


class Promise(Protocol):
    """A check of one promise on an empty store."""

    __name__: str

    async def __call__(self, store: Store) -> None:
        """Raise `Broken` if the store breaks the promise."""
        ...


def note(entry_id: str, content: str = "", parent_id: str = "") -> MessageEntry:
    """Return a short message of a user."""
    message = Message(role="user", content=content or f"this is {entry_id}")
    return MessageEntry(id=entry_id, parent_id=parent_id, message=message)


async def creates_empty(store: Store) -> None:
    """A session that was created has no entries."""
    await store.create_session("s")
    await _expect(store, "s", [])


async def creates_once(store: Store) -> None:
    """Creating an ID that is taken raises SessionExistsError and changes nothing."""
    await store.create_session("s")
    await store.append_entries("s", [note("e1")])
    await _expect_error(SessionExistsError, "creating it again", store.create_session("s"))
    await _expect(store, "s", [note("e1")])


async def creates_for_one_caller(store: Store) -> None:
    """Of callers that create one ID at the same time exactly one succeeds."""
    outcomes = await asyncio.gather(
        *(store.create_session("s") for _ in range(20)), return_exceptions=True
    )
    others = [outcome for outcome in outcomes if outcome is not None]
    if len(others) != 19 or not all(isinstance(other, SessionExistsError) for other in others):
        raise Broken(f"{20 - len(others)} of 20 succeeded; the others: {others[:3]}")


async def knows_what_it_does_not_have(store: Store) -> None:
    """Loading or appending to an unknown ID raises SessionNotFoundError and creates nothing."""
    await _expect_error(SessionNotFoundError, "loading", store.load_entries("s"))
    await _expect_error(SessionNotFoundError, "appending", store.append_entries("s", [note("e1")]))
    await _expect_error(SessionNotFoundError, "appending nothing", store.append_entries("s", []))
    await store.create_session("s")
    await _expect(store, "s", [])


async def takes_any_id(store: Store) -> None:
    """Any ID names a session of its own, however close to another; each is found by its ID only."""
    for number, session_id in enumerate(STRANGE_IDS):
        await store.create_session(session_id)
        await store.append_entries(session_id, [note("e1", f"session number {number}")])
    for number, session_id in enumerate(STRANGE_IDS):
        await _expect(store, session_id, [note("e1", f"session number {number}")])


async def keeps_order(store: Store) -> None:
    """Entries come back in the order in which they were appended, whatever they say themselves."""
    await store.create_session("s")
    entries = [note("e9"), note("e1", parent_id="e9"), note("e5"), note("e3", parent_id="gone")]
    later = [note("e4", parent_id="e1"), note("e0", parent_id="e4")]
    stamps = ["2026-03-01T00:00:00Z", "2026-01-01T00:00:00+05:30", "2026-02-01T00:00:00Z"]
    for index, stamp in enumerate(stamps):
        entries[index] = entries[index].with_header(created_at=Timestamp.parse(stamp))
    await store.append_entries("s", entries)
    await store.append_entries("s", later)
    await _expect(store, "s", [*entries, *later])


async def keeps_every_kind(store: Store) -> None:
    """Entries and content of every kind come back equal, field for field."""
    await _round_trip(store, EVERY_KIND)


async def keeps_what_it_does_not_know(store: Store) -> None:
    """Types, blocks, kinds and fields of other programs come back as they were."""
    await _round_trip(store, FROM_ELSEWHERE)


async def keeps_any_text(store: Store) -> None:
    """Text of any characters comes back equal: NUL, lone surrogates, line separators, all of it."""
    await _round_trip(store, STRANGE_TEXT)


async def keeps_numbers(store: Store) -> None:
    """Numbers come back as they were, also beyond 64 bits; an integer stays one."""
    await _round_trip(store, STRANGE_NUMBERS)


async def appends_all_or_nothing(store: Store) -> None:
    """A call with an entry that cannot be stored adds none of its entries, and says so."""
    call = ToolCallBlock(id="c", name="t", arguments={"x": math.nan})
    bad = MessageEntry(id="bad", message=Message(role="assistant", content=[call]))
    await _refuses(store, [note("e2"), bad, note("e3")])


async def refuses_entries_without_id(store: Store) -> None:
    """An entry without an ID is refused: nothing could tell a retry from a second entry."""
    await _refuses(store, [note("e2"), note("")])


async def refuses_ephemeral_entries(store: Store) -> None:
    """An ephemeral entry is refused."""
    await _refuses(store, [note("e2"), ephemeral(note("e3"))])


async def appends_nothing(store: Store) -> None:
    """Appending no entries changes nothing."""
    await store.create_session("s")
    await store.append_entries("s", [note("e1")])
    await store.append_entries("s", [])
    await _expect(store, "s", [note("e1")])


async def repeats_without_effect(store: Store) -> None:
    """Appending the same entries again adds nothing."""
    await store.create_session("s")
    for _ in range(3):
        await store.append_entries("s", [note("e1"), note("e2")])
    await _expect(store, "s", [note("e1"), note("e2")])


async def completes_half_an_append(store: Store) -> None:
    """Appending entries of which some are there adds the others, in order."""
    await store.create_session("s")
    await store.append_entries("s", [note("e1"), note("e2")])
    await store.append_entries("s", [note("e2"), note("e3"), note("e1"), note("e4")])
    await _expect(store, "s", [note("e1"), note("e2"), note("e3"), note("e4")])


async def keeps_the_first_of_an_id(store: Store) -> None:
    """Of two entries with one ID the first stands, in one call and over several."""
    await store.create_session("s")
    await store.append_entries("s", [note("e1", "first"), note("e1", "second"), note("e2")])
    await store.append_entries("s", [note("e2", "another"), note("e3")])
    await _expect(store, "s", [note("e1", "first"), note("e2"), note("e3")])


async def shares_nothing_with_its_callers(store: Store) -> None:
    """Changing what was given to it, or a list that it returned, changes nothing stored."""
    await store.create_session("s")
    arguments = {"x": 1}
    call = ToolCallBlock(id="c", name="t", arguments=arguments)
    given = [MessageEntry(id="e1", message=Message(role="assistant", content=[call]))]
    expected = [decode_entry(encode_entry(entry)) for entry in given]
    await store.append_entries("s", given)
    arguments["x"] = 2
    call.arguments["x"] = 3
    given.append(note("e2"))
    (await store.load_entries("s")).clear()
    (await store.load_entries("s")).append(note("e3"))
    await _expect(store, "s", expected)


async def loses_nothing_to_others(store: Store) -> None:
    """Appends at the same time all arrive, each in one piece, and those of a task in its order."""
    await store.create_session("s")

    async def append_five(task: int) -> None:
        for number in range(5):
            names = [f"t{task}-{number}-{part}" for part in range(3)]
            await store.append_entries("s", [note(name) for name in names])

    await asyncio.gather(*(append_five(task) for task in range(20)))
    found = [entry.id for entry in await store.load_entries("s")]
    calls = [found[start].rsplit("-", 1)[0] for start in range(0, len(found), 3)]
    whole = [f"{call}-{part}" for call in calls for part in range(3)]
    if found != whole:
        raise Broken("entries of one call do not stand together, in order")
    wanted = [[f"t{task}-{number}" for number in range(5)] for task in range(20)]
    if [[c for c in calls if c.startswith(f"t{task}-")] for task in range(20)] != wanted:
        raise Broken(f"of 100 calls by 20 tasks {len(set(calls))} arrived, or out of order")


async def repeats_at_the_same_time_without_effect(store: Store) -> None:
    """The same entries appended by many at the same time are there once."""
    await store.create_session("s")
    entries = [note(f"e{number}") for number in range(5)]
    await asyncio.gather(*(store.append_entries("s", entries) for _ in range(10)))
    await _expect(store, "s", entries)


async def grows_long(store: Store) -> None:
    """A session of thousands of entries, one of them large, comes back whole."""
    await store.create_session("s")
    entries = [note(f"e{number}", parent_id=f"e{number - 1}") for number in range(3000)]
    entries[1500] = note("e1500", "large " * 200_000)
    for start in range(0, len(entries), 100):
        await store.append_entries("s", entries[start : start + 100])
    await _expect(store, "s", entries)


async def keeps_the_record(store: Store) -> None:
    """`load_session`, where there is one, gives the ID and the parent that it was created with."""
    load_session = getattr(store, "load_session", None)
    if load_session is None:
        return
    await store.create_session("s")
    await store.create_session("child/1", "s")
    await store.append_entries("child/1", [note("e1")])
    for session_id, parent_id in (("s", ""), ("child/1", "s")):
        record: SessionRecord = await load_session(session_id)
        if (record.id, record.parent_id) != (session_id, parent_id):
            raise Broken(f"the record of {session_id!r} is {record!r}")
    await _expect_error(SessionNotFoundError, "loading no record", load_session("gone"))


async def loads_paths(store: Store) -> None:
    """`load_path`, where there is one, gives what the whole log makes of a path, or its end."""
    await store.create_session("s")
    loader = path_loader(store)
    if loader is None:
        return
    log = [note("e0"), *(note(f"e{n}", parent_id=f"e{n - 1}") for n in range(1, 250))]
    log += [note("dead", parent_id="e40"), note("lost", parent_id="gone")]
    log += [note("ring1", parent_id="ring3"), note("ring2", parent_id="ring1")]
    log += [note("ring3", parent_id="ring2"), note("\u0000 \ud800", parent_id="e249")]
    await store.append_entries("s", log)
    whole = Transcript(log)
    for leaf in ("e0", "e249", "dead", "lost", "ring3", "\u0000 \ud800", "nothing", "", None):
        for limit in (None, 1, 7, 1000):
            path = await loader.load_path("s", leaf, limit=limit)
            wanted = whole.path(leaf)[-limit if limit else 0 :]
            if list(map(_meaning, path)) != list(map(_meaning, wanted)):
                found = [entry.id for entry in path]
                raise Broken(f"the path to {leaf!r}, limit {limit}, is {_short(found)}")
    await _expect_error(SessionNotFoundError, "loading no path", loader.load_path("gone", "e0"))


async def _round_trip(store: Store, entries: Sequence[Entry]) -> None:
    await store.create_session("s")
    for entry in entries:
        await store.append_entries("s", [entry])
    await _expect(store, "s", entries)
    await store.create_session("together")
    await store.append_entries("together", entries)
    await _expect(store, "together", entries)


async def _refuses(store: Store, entries: Sequence[Entry]) -> None:
    await store.create_session("s")
    await store.append_entries("s", [note("e1")])
    await _expect_error(EntryEncodeError, "appending it", store.append_entries("s", entries))
    await _expect(store, "s", [note("e1")])


async def _expect(store: Store, session_id: str, entries: Sequence[Entry]) -> None:
    found = await store.load_entries(session_id)
    found_ids, ids = [entry.id for entry in found], [entry.id for entry in entries]
    if found_ids != ids:
        raise Broken(
            f"session {session_id!r} should hold {_short(ids)}, it holds {_short(found_ids)}"
        )
    for one, other in zip(found, entries, strict=True):
        if _meaning(one) != _meaning(other):
            raise Broken(f"{_short(_meaning(other))} came back as {_short(_meaning(one))}")


async def _expect_error(wanted: type[PerdureError], deed: str, attempt: Awaitable[object]) -> None:
    try:
        await attempt
    except wanted:
        return
    except Exception as error:
        raise Broken(
            f"{deed} raised {type(error).__name__} and not {wanted.__name__}: {error}"
        ) from error
    raise Broken(f"{deed} raised no {wanted.__name__}")


def _meaning(entry: Entry) -> str:
    """Return what the entry's line says, whatever the order of its keys."""
    return json.dumps(loads_json(encode_entry(entry)), sort_keys=True)


def _short(value: object) -> str:
    text = str(value)
    return text if len(text) <= 300 else f"{text[:200]} … {text[-80:]}"


PROMISES: tuple[Promise, ...] = (
    creates_empty,
    creates_once,
    creates_for_one_caller,
    knows_what_it_does_not_have,
    takes_any_id,
    keeps_order,
    keeps_every_kind,
    keeps_what_it_does_not_know,
    keeps_any_text,
    keeps_numbers,
    appends_all_or_nothing,
    refuses_entries_without_id,
    refuses_ephemeral_entries,
    appends_nothing,
    repeats_without_effect,
    completes_half_an_append,
    keeps_the_first_of_an_id,
    shares_nothing_with_its_callers,
    loses_nothing_to_others,
    repeats_at_the_same_time_without_effect,
    grows_long,
    keeps_the_record,
    loads_paths,
)
