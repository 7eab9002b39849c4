"""What a store remembers of its logs: nothing stale, nothing read twice, bounded."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from perdure.codec import encode_entry
from perdure.entries import Entry
from perdure.errors import SessionNotFoundError
from perdure.stores import FileStore
from perdure.stores.log_cache import ID_COST, LOG_COST, KnownLog, LogCache, Mark
from perdure.stores.log_file import LogPiece
from tests.stores.logs import ids, log_of, note, notes, write_log


@pytest.fixture
def bytes_read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The size of every read of a file."""
    sizes: list[int] = []
    real = os.pread

    def pread(*arguments: Any) -> bytes:
        data = real(*arguments)
        sizes.append(len(data))
        return data

    monkeypatch.setattr(os, "pread", pread)
    return sizes


async def test_loading_an_unchanged_log_again_reads_nothing(
    tmp_path: Path, bytes_read: list[int]
) -> None:
    entries = [note(f"e{number}", "x" * 500) for number in range(1000)]
    write_log(tmp_path, log_of(entries))
    store = FileStore(tmp_path)
    first = await store.load_entries("s")
    bytes_read.clear()
    second = await store.load_entries("s")
    assert bytes_read == []
    assert first == second == entries
    assert first is not second


async def test_an_append_does_not_read_the_log_again(tmp_path: Path, bytes_read: list[int]) -> None:
    write_log(tmp_path, log_of([note(f"e{number}", "x" * 500) for number in range(1000)]))
    store = FileStore(tmp_path)
    await store.append_entries("s", notes("a"))
    bytes_read.clear()
    for name in "bcd":
        await store.append_entries("s", notes("e7", name))
    assert sum(bytes_read) < 3 * 600
    bytes_read.clear()
    assert ids(await store.load_entries("s"))[-5:] == ["e999", "a", "b", "c", "d"]
    assert bytes_read == []


async def test_only_what_others_appended_is_read(tmp_path: Path, bytes_read: list[int]) -> None:
    write_log(tmp_path, log_of([note(f"e{number}", "x" * 500) for number in range(1000)]))
    one, other = FileStore(tmp_path), FileStore(tmp_path)
    await one.load_entries("s")
    await other.append_entries("s", notes("new"))
    bytes_read.clear()
    assert ids(await one.load_entries("s"))[-2:] == ["e999", "new"]
    await one.append_entries("s", notes("new", "newer"))
    assert sum(bytes_read) < 2000
    assert ids(await other.load_entries("s"))[-3:] == ["e999", "new", "newer"]


async def test_a_log_too_large_for_the_cache_is_not_read_by_appends(
    tmp_path: Path, bytes_read: list[int]
) -> None:
    write_log(tmp_path, log_of([note(f"e{number}", "x" * 500) for number in range(1000)]))
    store = FileStore(tmp_path, cache_size=1000)
    assert len(await store.load_entries("s")) == 1000
    bytes_read.clear()
    await store.append_entries("s", notes("e7", "a"))
    await store.append_entries("s", notes("a", "b"))
    assert sum(bytes_read) < 2000
    assert ids(await store.load_entries("s"))[-3:] == ["e999", "a", "b"]


async def test_a_deleted_log_is_not_found(tmp_path: Path) -> None:
    write_log(tmp_path, log_of(notes("e1")))
    store = FileStore(tmp_path)
    await store.load_entries("s")
    (tmp_path / "s.jsonl").unlink()
    with pytest.raises(SessionNotFoundError):
        await store.load_entries("s")
    with pytest.raises(SessionNotFoundError):
        await store.append_entries("s", notes("e2"))
    await store.create_session("s")
    assert await store.load_entries("s") == []
    await store.append_entries("s", notes("e1"))
    assert ids(await store.load_entries("s")) == ["e1"]


def _rename(path: Path, data: bytes) -> None:
    other = path.with_suffix(".other")
    other.write_bytes(data)
    other.rename(path)


def _recreate(path: Path, data: bytes) -> None:
    path.unlink()
    path.write_bytes(data)


@pytest.mark.parametrize("replace", [_rename, _recreate, Path.write_bytes])
@pytest.mark.parametrize(
    "entries",
    [notes("e1"), notes("x1", "x2"), [note("e1"), note("e2", "THIS IS e2")], notes(*"abcdefgh")],
    ids=["shorter", "of the same size", "another content", "longer"],
)
async def test_a_log_that_was_replaced_is_read_again(
    tmp_path: Path, replace: Any, entries: list[Entry]
) -> None:
    path = write_log(tmp_path, log_of(notes("e1", "e2")))
    store = FileStore(tmp_path)
    await store.load_entries("s")
    replace(path, log_of(entries))
    assert await store.load_entries("s") == entries
    replace(path, log_of(notes("e1", "e2")))
    await store.append_entries("s", notes("e2", "e3"))
    assert await store.load_entries("s") == notes("e1", "e2", "e3")


async def test_a_log_that_was_cut_is_read_again(tmp_path: Path) -> None:
    path = write_log(tmp_path, log_of(notes("e1", "e2", "e3")))
    store = FileStore(tmp_path)
    await store.load_entries("s")
    os.truncate(path, len(log_of(notes("e1", "e2"))))
    await store.append_entries("s", notes("e3"))
    assert path.read_bytes() == log_of(notes("e1", "e2", "e3"))
    assert ids(await store.load_entries("s")) == ["e1", "e2", "e3"]


async def test_a_list_that_was_returned_is_the_callers(tmp_path: Path) -> None:
    write_log(tmp_path, log_of(notes("e1", "e2")))
    store = FileStore(tmp_path)
    (await store.load_entries("s")).clear()
    (await store.load_entries("s")).append(note("e3"))
    assert ids(await store.load_entries("s")) == ["e1", "e2"]


def known_log(entries: Sequence[Entry]) -> KnownLog:
    size = sum(len(encode_entry(entry)) + 1 for entry in entries)
    known = KnownLog()
    known.extend(
        known.mark, LogPiece(end=size, line_count=len(entries), entries=list(entries)), Mark(size)
    )
    return known


def test_the_logs_that_were_used_last_keep_their_entries() -> None:
    log_size = known_log(notes("e1")).size
    cache = LogCache(3 * log_size)
    logs = {name: known_log(notes("e1")) for name in (b"a", b"b", b"c", b"d")}
    for name in (b"a", b"b", b"c"):
        cache.put(name, logs[name])
    cache.get(b"a")
    cache.put(b"d", logs[b"d"])
    assert {name: log.has_entries for name, log in logs.items()} == {
        b"a": True,
        b"b": False,
        b"c": True,
        b"d": True,
    }
    assert cache.get(b"b") is logs[b"b"]
    assert "e1" in logs[b"b"]


def test_the_ids_of_logs_are_bounded_too_but_for_those_of_the_last() -> None:
    cache = LogCache(4 * (LOG_COST + ID_COST) - 1)
    logs = {name: known_log(notes("e1")) for name in (b"a", b"b")}
    for name, log in logs.items():
        log.drop_entries()
        cache.put(name, log)
    assert cache.get(b"a") is None
    assert cache.get(b"b") is logs[b"b"]


def test_of_two_threads_that_read_the_same_lines_one_adds_them() -> None:
    known = known_log(notes("e1"))
    start = known.mark
    piece = LogPiece(end=start.end + 10, line_count=2, entries=list(notes("e2")))
    after = Mark(piece.end, piece.line_count)
    assert known.extend(start, piece, after) == 0
    assert known.extend(start, piece, after) is None
    assert ids(known.copy_entries() or []) == ["e1", "e2"]
