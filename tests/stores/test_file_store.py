"""The store in a folder: what it writes, and when that is on disk."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Sequence
from pathlib import Path

import pytest

from perdure.codec import encode_entry
from perdure.entries import Entry, MessageEntry
from perdure.errors import (
    EntryEncodeError,
    InvalidSessionIdError,
    SessionExistsError,
    SessionNotFoundError,
    StoreError,
)
from perdure.messages import Message, ToolCallBlock
from perdure.stores import FileStore
from tests.stores.logs import FIXTURES, ids, log_of, note, notes, write_log


async def test_a_session_is_one_file_of_lines_with_the_record_first(tmp_path: Path) -> None:
    """2.4: `<root>/<session-id>.jsonl`, the first line is the session_init with the record."""
    store = FileStore(tmp_path / "sessions")
    await store.create_session("child", "parent")
    await store.append_entries("child", notes("e1", "e2"))
    await store.append_entries("child", [note("e3")])
    assert [path.name for path in (tmp_path / "sessions").iterdir()] == ["child.jsonl"]
    data = (tmp_path / "sessions" / "child.jsonl").read_bytes()
    header, *lines = data.removesuffix(b"\n").split(b"\n")
    record = await store.load_session("child")
    assert json.loads(header) == {
        "type": "session_init",
        "id": "child",
        "parent_id": "parent",
        "created_at": str(record.created_at),
    }
    assert lines == [encode_entry(entry) for entry in notes("e1", "e2", "e3")]


async def test_the_record_is_never_touched_again(tmp_path: Path) -> None:
    """1.1, 1.4: written once, never updated; it carries existence and lineage and nothing else."""
    store = FileStore(tmp_path)
    await store.create_session("s")
    header = (tmp_path / "s.jsonl").read_bytes()
    before = await store.load_session("s")
    for number in range(5):
        await store.append_entries("s", [note(f"e{number}")])
    assert (tmp_path / "s.jsonl").read_bytes().startswith(header)
    assert sorted(json.loads(header)) == ["created_at", "id", "type"]
    assert await store.load_session("s") == before


async def test_nothing_is_ever_rewritten(tmp_path: Path) -> None:
    """2.4: the file only grows."""
    store = FileStore(tmp_path)
    await store.create_session("s")
    inode = (tmp_path / "s.jsonl").stat().st_ino
    before = b""
    for number in range(10):
        await store.append_entries("s", notes(f"a{number}", f"b{number}", "a0"))
        data = (tmp_path / "s.jsonl").read_bytes()
        assert data.startswith(before)
        assert len(data) > len(before)
        before = data
    assert (tmp_path / "s.jsonl").stat().st_ino == inode


async def test_the_record_of_an_unknown_session_is_not_found(tmp_path: Path) -> None:
    """2.2: the concrete stores load the record too."""
    for store in (FileStore(tmp_path), FileStore(tmp_path / "no folder yet")):
        with pytest.raises(SessionNotFoundError) as caught:
            await store.load_session("gone")
        assert caught.value.session_id == "gone"
        assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "name", sorted(path.stem for path in FIXTURES.glob("*.jsonl") if path.stem.startswith("s"))
)
async def test_logs_of_another_program_load_in_order(tmp_path: Path, name: str) -> None:
    """2.4, 2.5: files written elsewhere load here, in append order."""
    data = (FIXTURES / f"{name}.jsonl").read_bytes()
    write_log(tmp_path, data, f"{name}.jsonl")
    expected = json.loads((FIXTURES / f"{name}.expected.json").read_bytes())
    entries = await FileStore(tmp_path).load_entries(name)
    assert [(e.id, e.parent_id, str(e.created_at)) for e in entries] == [
        (e["id"], e["parent_id"], e["created_at"]) for e in expected["entries"]
    ]


async def test_a_log_of_another_program_is_appended_to_byte_for_byte(tmp_path: Path) -> None:
    """2.4: what another program wrote stays as it wrote it."""
    data = (FIXTURES / "s01-tiny.jsonl").read_bytes()
    path = write_log(tmp_path, data, "s01-tiny.jsonl")
    await FileStore(tmp_path).append_entries("s01-tiny", [note("new")])
    assert path.read_bytes() == data + encode_entry(note("new")) + b"\n"


async def test_files_and_folders_have_ordinary_modes(tmp_path: Path) -> None:
    mask = os.umask(0o022)
    try:
        store = FileStore(tmp_path / "a" / "b")
        await store.create_session("s")
    finally:
        os.umask(mask)
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o755
    assert stat.S_IMODE((tmp_path / "a" / "b").stat().st_mode) == 0o755
    assert stat.S_IMODE((tmp_path / "a" / "b" / "s.jsonl").stat().st_mode) == 0o644


async def test_a_folder_that_was_deleted_is_made_again(tmp_path: Path) -> None:
    store = FileStore(tmp_path / "root")
    await store.create_session("s")
    (tmp_path / "root" / "s.jsonl").unlink()
    (tmp_path / "root").rmdir()
    with pytest.raises(SessionNotFoundError):
        await store.append_entries("s", [note("e1")])
    await store.create_session("s")
    assert await store.load_entries("s") == []


def _bad(entry_id: str = "bad") -> MessageEntry:
    call = ToolCallBlock(id="c", name="t", arguments={"x": float("inf")})
    return MessageEntry(id=entry_id, message=Message(role="assistant", content=[call]))


@pytest.mark.parametrize(
    "entries",
    [[note("e1"), _bad()], [_bad(), note("e1")], [note("e1"), note("")]],
    ids=["bad last", "bad first", "no ID"],
)
async def test_a_call_with_one_bad_entry_writes_nothing(
    tmp_path: Path, entries: Sequence[Entry]
) -> None:
    """2.1, 2.9: all or none, and never what it would refuse to read."""
    store = FileStore(tmp_path)
    await store.create_session("s")
    before = (tmp_path / "s.jsonl").read_bytes()
    with pytest.raises(EntryEncodeError):
        await store.append_entries("s", entries)
    assert (tmp_path / "s.jsonl").read_bytes() == before


async def test_one_append_is_one_write_that_is_flushed_before_it_returns(
    tmp_path: Path, disk_calls: list[str]
) -> None:
    """2.6: durable when it returns; a name that is new to this store is flushed once as well."""
    await FileStore(tmp_path).create_session("s")
    store = FileStore(tmp_path)
    disk_calls.clear()
    await store.append_entries("s", notes("e1", "e2", "e3"))
    assert disk_calls == ["write s.jsonl", "flush s.jsonl", f"flush {tmp_path.name}"]
    disk_calls.clear()
    await store.append_entries("s", notes("e4"))
    assert disk_calls == ["write s.jsonl", "flush s.jsonl"]


async def test_a_retry_that_adds_nothing_is_flushed_all_the_same(
    tmp_path: Path, disk_calls: list[str]
) -> None:
    """2.6, 2.8: who wrote the lines may have died before they were on disk."""
    store = FileStore(tmp_path)
    await store.create_session("s")
    await store.append_entries("s", notes("e1"))
    size = (tmp_path / "s.jsonl").stat().st_size
    disk_calls.clear()
    await store.append_entries("s", notes("e1"))
    assert "flush s.jsonl" in disk_calls
    assert (tmp_path / "s.jsonl").stat().st_size == size


async def test_a_session_has_no_name_before_its_record_is_on_disk(
    tmp_path: Path, disk_calls: list[str]
) -> None:
    """2.7: an ID cannot get stuck between "exists" and "cannot be opened"."""
    store = FileStore(tmp_path / "root")
    await store.create_session("s")
    assert disk_calls == [
        f"flush {tmp_path.name}",
        "write .new",
        "flush .new",
        "link .new s.jsonl",
        "flush root",
    ]
    assert [path.name for path in (tmp_path / "root").iterdir()] == ["s.jsonl"]


async def test_where_there_are_no_links_a_session_is_created_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """2.7: some file systems have no hard links."""

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    store = FileStore(tmp_path)
    await store.create_session("s", "parent")
    assert (await store.load_session("s")).parent_id == "parent"
    with pytest.raises(SessionExistsError):
        await store.create_session("s")
    assert [path.name for path in tmp_path.iterdir()] == ["s.jsonl"]


@pytest.mark.parametrize("call", ["fdatasync", "write"])
async def test_an_append_that_fails_is_undone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    """2.6, 2.8: after a failed flush nobody knows what is on disk, so the retry writes it anew."""
    store = FileStore(tmp_path)
    await store.create_session("s")
    await store.append_entries("s", notes("e1"))
    before = (tmp_path / "s.jsonl").read_bytes()
    real = getattr(os, call)

    def fail(descriptor: int, *arguments: bytes) -> int:
        for data in arguments:
            real(descriptor, data[:40])
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(os, call, fail)
        with pytest.raises(StoreError) as caught:
            await store.append_entries("s", notes("e2", "e3"))
    assert str(caught.value) == (
        f"{tmp_path}/s.jsonl: Input/output error; look at the disk that holds it"
    )
    assert (tmp_path / "s.jsonl").read_bytes() == before
    assert ids(await store.load_entries("s")) == ["e1"]
    await store.append_entries("s", notes("e2", "e3"))
    assert ids(await store.load_entries("s")) == ["e1", "e2", "e3"]
    assert ids(await FileStore(tmp_path).load_entries("s")) == ["e1", "e2", "e3"]


async def test_a_root_below_a_file_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    store = FileStore(tmp_path / "file" / "root")
    for attempt in (
        store.create_session("s"),
        store.load_entries("s"),
        store.append_entries("s", [note("e1")]),
    ):
        with pytest.raises(StoreError, match="Not a directory; name a folder for the store"):
            await attempt


async def test_a_folder_that_cannot_be_made_is_a_clear_error() -> None:
    """Not even the superuser makes a folder there."""
    with pytest.raises(StoreError, match=r"^/dev/null/sessions"):
        await FileStore("/dev/null/sessions").create_session("s")


async def test_a_link_in_the_folder_is_not_followed(tmp_path: Path) -> None:
    """1.2: no ID can ever reach a file outside the store's folder."""
    outside = write_log(tmp_path / "elsewhere", log_of(notes("e1")))
    store = FileStore(tmp_path / "root")
    await store.create_session("other")
    (tmp_path / "root" / "s.jsonl").symlink_to(outside)
    before = outside.read_bytes()
    for attempt in (
        store.create_session("s"),
        store.load_entries("s"),
        store.load_session("s"),
        store.append_entries("s", [note("e2")]),
    ):
        with pytest.raises(StoreError, match="links are not followed"):
            await attempt
    assert outside.read_bytes() == before


@pytest.mark.parametrize("make", [os.mkdir, os.mkfifo])
async def test_what_is_no_ordinary_file_is_a_clear_error(
    tmp_path: Path, make: type[os.PathLike[str]]
) -> None:
    """2.7: and it does not wait for the other end of a pipe."""
    make(tmp_path / "s.jsonl")  # type: ignore[call-arg]
    store = FileStore(tmp_path)
    for attempt in (
        store.create_session("s"),
        store.load_entries("s"),
        store.append_entries("s", [note("e1")]),
    ):
        with pytest.raises(StoreError, match=r"s\.jsonl"):
            await attempt


async def test_a_file_system_with_shorter_names_makes_it_an_invalid_id(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """1.2: too long for the store is a clear error."""
    real = os.open

    def refuse(path: bytes, *arguments: int) -> int:
        if path.endswith(b".jsonl"):
            raise OSError(36, "File name too long", path)
        return real(path, *arguments)

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(InvalidSessionIdError, match="too long here; choose a shorter one"):
        await FileStore(tmp_path).load_entries("s")
