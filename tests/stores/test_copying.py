"""Sessions from one store to another, and what is said of those that cannot be copied."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest

from perdure.codec import encode_entry
from perdure.entries import Entry
from perdure.errors import StoreError
from perdure.stores import FileStore, MemoryStore
from perdure.stores.contract import Store
from perdure.stores.copying import Copied, copy_sessions
from tests.core.logs import FIXTURES
from tests.stores.logs import ids, note, notes


@pytest.fixture
def source(tmp_path: Path) -> FileStore:
    return FileStore(tmp_path / "source")


@pytest.fixture
def target(tmp_path: Path) -> FileStore:
    return FileStore(tmp_path / "target")


async def copied(source: Store, target: Store, session_ids: Iterable[str]) -> list[Copied]:
    """What is told, by session."""
    told: list[Copied] = []
    witness = FileStore(target.root) if isinstance(target, FileStore) else target
    await copy_sessions(source, target, witness, session_ids, told.append)
    return sorted(told, key=lambda one: one.session_id)


async def test_sessions_arrive_line_for_line_with_their_records(
    source: FileStore, target: FileStore
) -> None:
    """2.9: also what other programs wrote, and what this one does not know."""
    source.root.mkdir()
    for log in FIXTURES.glob("s*.jsonl"):
        (source.root / log.name).write_bytes(log.read_bytes())
    await source.create_session("child/1", "s01-tiny")
    names = await source.list_sessions()
    assert len(names) > 5
    told = await copied(source, target, names)
    assert [one.problem for one in told if one.problem] == []
    for name in names:
        assert await target.load_session(name) == await source.load_session(name)
        lines = [encode_entry(entry) for entry in await source.load_entries(name)]
        assert [encode_entry(entry) for entry in await target.load_entries(name)] == lines


async def test_a_copy_that_was_interrupted_goes_on_where_it_stopped(
    source: FileStore, target: FileStore
) -> None:
    """Nothing is copied twice; a session may have gone on in the target meanwhile."""
    await source.create_session("s")
    await source.append_entries("s", notes(*(f"e{n}" for n in range(1200))))
    flaky = FailsAfter(target, appends=2)
    with pytest.raises(StoreError):
        await copied(source, flaky, ["s"])
    assert await copied(source, target, ["s"]) == [Copied("s", 1200, added=200)]
    assert await copied(source, target, ["s"]) == [Copied("s", 1200)]
    await target.append_entries("s", notes("later"))
    await source.append_entries("s", notes("e1200"))
    assert await copied(source, target, ["s"]) == [Copied("s", 1201, added=1, extra=1)]


class FailsAfter(MemoryStore):
    """A target that is lost after some appends."""

    def __init__(self, target: Store, appends: int) -> None:
        super().__init__()
        self._target = target
        self._left = appends

    async def create_session(self, session_id: str, parent_id: str = "") -> None:
        await self._target.create_session(session_id, parent_id)

    async def restore_session(self, record: object) -> None:
        await self._target.restore_session(record)  # type: ignore[attr-defined]

    async def append_entries(self, session_id: str, entries: Sequence[Entry]) -> None:
        if not self._left:
            raise StoreError("the database is down")
        self._left -= 1
        await self._target.append_entries(session_id, entries)


async def test_what_cannot_be_copied_is_named_and_the_others_go_on(
    source: FileStore, target: FileStore
) -> None:
    for name in ("damaged", "nameless", "other", "record", "sound"):
        await source.create_session(name)
        await source.append_entries(name, notes("e1", "e2"))
    with (source.root / "damaged.jsonl").open("a") as log:
        log.write("nonsense\n")
        log.write('{"type":"message","id":"e3"}\n')
    with (source.root / "nameless.jsonl").open("ab") as log:
        log.write(encode_entry(note("")) + b"\n")
    (source.root / "empty.jsonl").touch()
    await target.restore_session(await source.load_session("other"))
    await target.append_entries("other", [note("e2", "something else")])
    await target.create_session("record", "of a parent")

    told = await copied(source, target, await source.list_sessions())
    problems = {one.session_id: one.problem for one in told if one.problem}
    assert list(problems) == ["damaged", "empty", "nameless", "other", "record"]
    assert "damaged.jsonl, line 4: " in problems["damaged"]
    assert [one.is_missing for one in told if one.problem] == [False, True, False, False, False]
    assert "an entry without an ID cannot be stored" in problems["nameless"]
    assert problems["other"] == "entries that the target has with other content: 1"
    assert problems["record"] == "the target has another of this ID"
    assert ids(await target.load_entries("other")) == ["e2"]
    assert await target.load_entries("record") == []
    assert ids(await target.load_entries("sound")) == ["e1", "e2"]


async def test_what_the_target_lost_or_reordered_is_found_by_the_check(source: FileStore) -> None:
    await source.create_session("s")
    await source.append_entries("s", notes("e1", "e2", "e3"))
    for held, store in ((2, LosesTheLast()), (1, TurnsRound())):
        [one] = await copied(source, store, ["s"])
        assert one.problem == f"the target holds {held} of 3 entries in the order of the source"


class LosesTheLast(MemoryStore):
    async def append_entries(self, session_id: str, entries: Sequence[Entry]) -> None:
        await super().append_entries(session_id, entries[:-1])


class TurnsRound(MemoryStore):
    async def append_entries(self, session_id: str, entries: Sequence[Entry]) -> None:
        await super().append_entries(session_id, entries[::-1])


async def test_only_names_that_an_id_makes_are_listed(source: FileStore) -> None:
    """2.4: not what was moved aside, and nothing that no ID leads to."""
    assert await source.list_sessions() == []
    for name in ("b", "a/b", "..", "é"):
        await source.create_session(name)
    for file in (".new-1", "b.jsonl.torn-1", "notes.txt", "a%2fb.jsonl", ".jsonl"):
        (source.root / file).touch()
    assert await source.list_sessions() == ["..", "a/b", "b", "é"]
