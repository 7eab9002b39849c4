"""What a crash leaves at the end of a log, and how the session goes on after it."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from perdure.codec import encode_entry
from perdure.errors import SessionExistsError, SessionNotFoundError
from perdure.stores import FileStore, log_file
from tests.stores.logs import FIXTURES, HEADER, ids, log_of, note, notes, write_log

LAST = encode_entry(note("e3", 'é 👩‍💻 \u0085 \u2028 and \\ "'))


def cuts(line: bytes) -> Iterator[tuple[int, bytes]]:
    for size in range(1, len(line)):
        yield size, line[:size]


async def test_a_last_line_cut_at_any_byte_is_dropped_and_never_glued_to_the_next(
    tmp_path: Path,
) -> None:
    """2.7: a torn tail is dropped on load, and whatever is appended after it is readable."""
    whole = log_of(notes("e1", "e2"))
    for size, piece in cuts(LAST):
        root = tmp_path / str(size)
        path = write_log(root, whole + piece)
        store = FileStore(root)
        assert ids(await store.load_entries("s")) == ["e1", "e2"], size
        await store.append_entries("s", notes("e3", "e4"))
        assert path.read_bytes() == log_of(notes("e1", "e2", "e3", "e4")), size
        assert (root / "s.jsonl.torn-1").read_bytes() == piece
        assert ids(await store.load_entries("s")) == ["e1", "e2", "e3", "e4"], size


async def test_an_append_of_several_cut_at_any_byte_is_completed_by_its_retry(
    tmp_path: Path,
) -> None:
    """2.7, 2.8: a retry after a crash adds what is missing and doubles nothing."""
    start = log_of(notes("e1"))
    added = log_of(notes("e1", "e2", "e3", "e4")).removeprefix(start)
    for size in range(len(added) + 1):
        root = tmp_path / str(size)
        path = write_log(root, start + added[:size])
        store = FileStore(root)
        before = ids(await store.load_entries("s"))
        assert before == ["e1", "e2", "e3", "e4"][: len(before)], size
        await store.append_entries("s", notes("e2", "e3", "e4"))
        assert path.read_bytes() == log_of(notes("e1", "e2", "e3", "e4")), size
        assert ids(await store.load_entries("s")) == ["e1", "e2", "e3", "e4"], size


async def test_appending_to_a_torn_log_needs_no_load_before(tmp_path: Path) -> None:
    """2.7: the append itself looks at the tail."""
    for size in (0, 1, len(LAST) // 2, len(LAST) - 1):
        root = tmp_path / str(size)
        write_log(root, log_of(notes("e1", "e2")) + LAST[:size])
        await FileStore(root).append_entries("s", [note("e4")])
        assert ids(await FileStore(root).load_entries("s")) == ["e1", "e2", "e4"]


@pytest.mark.parametrize("size", [0, 1, len(LAST) // 2, len(LAST)])
@pytest.mark.parametrize("padding", [1, 511, 4096])
async def test_padding_with_nul_is_dropped(tmp_path: Path, size: int, padding: int) -> None:
    """2.7: a power cut can leave NUL bytes where the rest of the line should be."""
    write_log(tmp_path, log_of(notes("e1")) + LAST[:size] + b"\0" * padding)
    store = FileStore(tmp_path)
    assert ids(await store.load_entries("s")) == ["e1"]
    await store.append_entries("s", notes("e2"))
    assert (tmp_path / "s.jsonl").read_bytes() == log_of(notes("e1", "e2"))
    assert (tmp_path / "s.jsonl.torn-1").read_bytes() == LAST[:size] + b"\0" * padding


@pytest.mark.parametrize("end", [b"", b"\r", b" \t"])
async def test_a_whole_last_line_without_its_line_end_is_kept(tmp_path: Path, end: bytes) -> None:
    """2.7: it gets its line end with the next append, also if that is its own retry."""
    write_log(tmp_path, log_of(notes("e1")) + encode_entry(note("e2")) + end)
    store = FileStore(tmp_path)
    assert ids(await store.load_entries("s")) == ["e1", "e2"]
    await store.append_entries("s", notes("e2"))
    assert (tmp_path / "s.jsonl").read_bytes() == (
        log_of(notes("e1")) + encode_entry(note("e2")) + end + b"\n"
    )
    await store.append_entries("s", notes("e3"))
    assert ids(await store.load_entries("s")) == ["e1", "e2", "e3"]
    assert ids(await FileStore(tmp_path).load_entries("s")) == ["e1", "e2", "e3"]
    assert [path.name for path in tmp_path.iterdir()] == ["s.jsonl"]


async def test_a_torn_tail_is_reported_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """2.7: dropped visibly, with the file and the number of bytes."""
    whole = log_of(notes("e1"))
    path = write_log(tmp_path, whole + b'{"type":"mess')
    store = FileStore(tmp_path)
    with caplog.at_level(logging.WARNING, "perdure.stores"):
        for _ in range(3):
            await store.load_entries("s")
    assert [record.getMessage() for record in caplog.records] == [
        f"{path}: the last line is torn; its 13 bytes from byte {len(whole)} on are not loaded,"
        " and are moved aside by the next append"
    ]
    caplog.clear()
    with caplog.at_level(logging.WARNING, "perdure.stores"):
        await store.append_entries("s", notes("e2"))
        await store.load_entries("s")
    assert [record.getMessage() for record in caplog.records] == [
        f"{path}: moved a torn piece of 13 bytes to {path}.torn-1"
    ]


async def test_no_torn_piece_replaces_another(tmp_path: Path) -> None:
    """2.7: nothing is thrown away."""
    path = write_log(tmp_path, log_of(notes("e1")))
    store = FileStore(tmp_path)
    for number in (2, 3, 4):
        with path.open("ab") as log:
            log.write(b'{"torn":%d' % number)
        await store.append_entries("s", [note(f"e{number}")])
    pieces = {piece.name: piece.read_bytes() for piece in tmp_path.glob("*.torn-*")}
    assert pieces == {
        "s.jsonl.torn-1": b'{"torn":2',
        "s.jsonl.torn-2": b'{"torn":3',
        "s.jsonl.torn-3": b'{"torn":4',
    }
    assert ids(await store.load_entries("s")) == ["e1", "e2", "e3", "e4"]


async def test_the_torn_piece_of_a_log_with_a_very_long_name_is_kept_too(tmp_path: Path) -> None:
    """2.7: `<name>.torn-<n>` would be longer than a file name may be."""
    session_id = "x" * 249
    header = HEADER.replace(b'"id":"s"', b'"id":"%s"' % session_id.encode())
    write_log(tmp_path, log_of([], header) + b"torn", f"{session_id}.jsonl")
    store = FileStore(tmp_path)
    await store.append_entries(session_id, notes("e1"))
    assert ids(await store.load_entries(session_id)) == ["e1"]
    assert [piece.read_bytes() for piece in tmp_path.glob("*.torn-1")] == [b"torn"]


async def test_a_first_line_cut_at_any_byte_was_never_created(tmp_path: Path) -> None:
    """2.7: an ID can never get stuck between "exists" and "cannot be opened"."""
    for size in range(len(HEADER)):
        root = tmp_path / str(size)
        path = write_log(root, HEADER[:size])
        store = FileStore(root)
        with pytest.raises(SessionNotFoundError):
            await store.load_entries("s")
        with pytest.raises(SessionNotFoundError):
            await store.load_session("s")
        with pytest.raises(SessionNotFoundError):
            await store.append_entries("s", notes("e1"))
        assert path.read_bytes() == HEADER[:size]
        await store.create_session("s", "parent")
        await store.append_entries("s", notes("e1"))
        assert (await store.load_session("s")).parent_id == "parent"
        assert ids(await store.load_entries("s")) == ["e1"]
        assert [p.read_bytes() for p in root.glob("*.torn-*")] == ([HEADER[:size]] if size else [])


@pytest.mark.parametrize(
    "data", [b"\0" * 100, HEADER[:30] + b"\0" * 9, HEADER + b"\0", b"\n", b" "]
)
async def test_a_file_without_a_whole_first_line_was_never_created(
    tmp_path: Path, data: bytes
) -> None:
    """2.7: whatever a crash leaves of a first line."""
    write_log(tmp_path, data)
    store = FileStore(tmp_path)
    with pytest.raises(SessionNotFoundError):
        await store.load_entries("s")
    await store.create_session("s")
    assert await store.load_entries("s") == []
    assert (tmp_path / "s.jsonl.torn-1").read_bytes() == data


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
async def test_a_whole_first_line_without_its_line_end_is_a_session(
    tmp_path: Path, mark: bytes
) -> None:
    """2.7: it gets its line end with the first append."""
    write_log(tmp_path, mark + HEADER)
    store = FileStore(tmp_path)
    assert (await store.load_session("s")).id == "s"
    assert await store.load_entries("s") == []
    with pytest.raises(SessionExistsError):
        await store.create_session("s")
    await store.append_entries("s", notes("e1"))
    await store.append_entries("s", notes("e2"))
    assert (tmp_path / "s.jsonl").read_bytes() == mark + log_of(notes("e1", "e2"))
    assert ids(await store.load_entries("s")) == ["e1", "e2"]


async def test_the_torn_log_of_another_program_loads(tmp_path: Path) -> None:
    """2.7: as its own reader loads it."""
    write_log(tmp_path, (FIXTURES / "damaged" / "d1-torn-tail.jsonl").read_bytes(), "base.jsonl")
    store = FileStore(tmp_path)
    assert ids(await store.load_entries("base")) == ["e1", "e2", "e3", "e4", "e5"]


@pytest.mark.parametrize("block_size", [1, 2, 7, 100, 1000])
async def test_lines_are_found_wherever_a_block_of_the_file_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block_size: int
) -> None:
    monkeypatch.setattr(log_file, "BLOCK_SIZE", block_size)
    entries = [note("e1", "x" * 150), note("e2", "é" * 100), note("e3")]
    write_log(tmp_path, b"\xef\xbb\xbf" + log_of(entries).replace(b"\n", b"\r\n\r\n") + LAST[:50])
    store = FileStore(tmp_path)
    assert await store.load_entries("s") == entries
    assert (await store.load_session("s")).id == "s"
