"""Damage that no crash makes: an error that names the file and the line, and nothing is touched."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest

from perdure.codec import encode_entry
from perdure.errors import DamagedLogError, SessionNotFoundError
from perdure.stores import FileStore
from perdure.transcript import Transcript
from tests.stores.logs import FIXTURES, HEADER, ids, log_of, note, notes, write_log

E1, E2, E3 = (encode_entry(entry) for entry in notes("e1", "e2", "e3"))


@pytest.mark.parametrize(
    "lines,line",
    [
        ([HEADER, E1, b"garbage", E2, b""], 3),
        ([HEADER, E1, E2[:40], E3, b""], 3),
        ([HEADER, E1, b"\0" * 40, E3, b""], 3),
        ([HEADER, E1, b"\0" * 40 + E2, E3, b""], 3),
        ([HEADER, E1, b"", b" ", b"[]", E3, b""], 5),
        ([HEADER, E1, E2, E3[:40], b""], 4),
        ([HEADER, E1, E2, b"\0" * 40, b""], 4),
        ([HEADER, E1, E1 + E2, E3, b""], 3),
        ([HEADER, b'{"id":"no type"}', E3, b""], 2),
        ([HEADER, b'{"type":"message","id":7}', E3, b""], 2),
        ([HEADER, E1, b"null", b""], 3),
        ([HEADER, E1, b'{"type":"message","id":7}'], 3),  # whole, though its line end is missing
        ([HEADER, E1, b"\xef\xbb\xbf" + E2, b""], 3),
        ([b"", HEADER, b"", b"", b"{", E1, b""], 5),
    ],
)
async def test_damage_names_the_file_and_the_line_and_changes_nothing(
    tmp_path: Path, lines: list[bytes], line: int
) -> None:
    """2.7: damage anywhere else is a clear error, never a silently shorter session."""
    path = write_log(tmp_path, b"\n".join(lines))
    store = FileStore(tmp_path)
    for attempt in (store.load_entries("s"), store.append_entries("s", [note("e9")])):
        with pytest.raises(DamagedLogError) as caught:
            await attempt
        assert (caught.value.path, caught.value.line) == (str(path), line)
    assert path.read_bytes() == b"\n".join(lines)
    assert [file.name for file in tmp_path.iterdir()] == ["s.jsonl"]


@pytest.mark.parametrize(
    "first,reason",
    [
        (b"garbage", "no session_init but 'garbage': not JSON"),
        (HEADER[:30], f"no session_init but {HEADER[:30].decode()!r}: not JSON"),
        (E1, f"no session_init but {E1[:60].decode()!r}: "),
        (b"{}", "no session_init but '{}': "),
        (b"null", "no session_init but 'null': "),
        (b'{"type":"session_init"}', """no session_init but '{"type":"session_init"}': id: """),
        (
            HEADER.replace(b'"id":"s"', b'"id":"other"'),
            "this is the record of session 'other', the file is named for 's'",
        ),
    ],
)
async def test_a_first_line_that_is_not_the_record_is_an_error_of_line_1(
    tmp_path: Path, first: bytes, reason: str
) -> None:
    """2.7: the session is not taken for another, nor for one that does not exist."""
    path = write_log(tmp_path, first + b"\n" + E1 + b"\n")
    store = FileStore(tmp_path)
    for attempt in (
        store.load_entries("s"),
        store.load_session("s"),
        store.append_entries("s", [note("e9")]),
        store.create_session("s"),
    ):
        with pytest.raises(DamagedLogError) as caught:
            await attempt
        assert (caught.value.path, caught.value.line) == (str(path), 1)
        assert caught.value.reason.startswith(reason)
    assert path.read_bytes() == first + b"\n" + E1 + b"\n"


@pytest.mark.parametrize("first", [b'{"type":"message"}', b"{}", HEADER.replace(b'"s"', b'"t"')])
async def test_a_whole_first_line_that_is_not_the_record_is_no_torn_record(
    tmp_path: Path, first: bytes
) -> None:
    """2.7: without its line end too; no piece of a line is a whole object."""
    write_log(tmp_path, first)
    with pytest.raises(DamagedLogError, match="line 1"):
        await FileStore(tmp_path).load_entries("s")


async def test_an_unreadable_first_line_with_nothing_after_it_is_an_error(tmp_path: Path) -> None:
    """2.7: a line that has its line end was whole once."""
    write_log(tmp_path, HEADER[:30] + b"\n")
    with pytest.raises(DamagedLogError, match="line 1"):
        await FileStore(tmp_path).load_entries("s")


async def test_a_log_with_carriage_returns_and_a_byte_order_mark_loads(tmp_path: Path) -> None:
    """2.4: as other programs and editors leave it."""
    data = b"\xef\xbb\xbf" + log_of(notes("e1", "e2")).replace(b"\n", b"\r\n")
    write_log(tmp_path, data)
    store = FileStore(tmp_path)
    assert await store.load_entries("s") == notes("e1", "e2")
    assert (await store.load_session("s")).id == "s"
    await store.append_entries("s", notes("e2", "e3"))
    assert (tmp_path / "s.jsonl").read_bytes() == data + E3 + b"\n"
    assert await store.load_entries("s") == notes("e1", "e2", "e3")


async def test_blank_lines_are_passed_over(tmp_path: Path) -> None:
    """2.7: they hold nothing that could be lost."""
    write_log(tmp_path, b"\n\n" + b"\n\n \t\r\n".join([HEADER, E1, E2]) + b"\n\n")
    store = FileStore(tmp_path)
    assert await store.load_entries("s") == notes("e1", "e2")
    assert (await store.load_session("s")).id == "s"


async def test_only_a_line_feed_ends_a_line(tmp_path: Path) -> None:
    """2.4: U+0085, U+2028 and their like occur inside of lines."""
    odd = note("e1", "\u0085 \u2028 \u2029 \x0b \x0c \x1c")
    line = json.dumps(odd.model_dump(mode="json", by_alias=True), ensure_ascii=False).encode()
    assert "\u2028".encode() in line
    write_log(tmp_path, HEADER + b"\n" + line + b"\n")
    assert await FileStore(tmp_path).load_entries("s") == [odd]


async def test_the_damaged_log_of_another_program_is_an_error(tmp_path: Path) -> None:
    """2.7: line 4 of it is no JSON."""
    data = (FIXTURES / "damaged" / "d4-corrupt-middle.jsonl").read_bytes()
    path = write_log(tmp_path, data, "base.jsonl")
    with pytest.raises(DamagedLogError) as caught:
        await FileStore(tmp_path).load_entries("base")
    assert (caught.value.path, caught.value.line) == (str(path), 4)


async def test_of_two_entries_with_one_id_the_first_stands(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """2.9: an append-only log has no overwriting; that a line is passed over is said."""
    data = (FIXTURES / "damaged" / "d5-duplicate-ids.jsonl").read_bytes()
    path = write_log(tmp_path, data, "base.jsonl")
    store = FileStore(tmp_path)
    with caplog.at_level(logging.WARNING, "perdure.stores"):
        entries = await store.load_entries("base")
        await store.load_entries("base")
    assert ids(entries) == ["e1", "e2", "e3", "e4", "e5", "e6"]
    assert b"how can I help?" in encode_entry(entries[1])
    assert [record.getMessage() for record in caplog.records] == [
        f"{path}: lines that repeat an earlier ID and are not loaded: 1"
    ]


async def test_an_entry_whose_parent_is_gone_loads(tmp_path: Path) -> None:
    """2.5: the order is that of the log, whatever the parent pointers say."""
    data = (FIXTURES / "damaged" / "d7-orphan-parent.jsonl").read_bytes()
    write_log(tmp_path, data, "base.jsonl")
    entries = await FileStore(tmp_path).load_entries("base")
    assert ids(entries) == ["e1", "e2", "e3", "e4", "e5", "e6"]
    assert Transcript(entries).leaf_id == "e6"


async def test_entries_without_an_id_are_kept(tmp_path: Path) -> None:
    """2.9: they are there, as often as they are there, and stop no append."""
    nameless = E1.replace(b'"id":"e1"', b'"id":""')
    write_log(tmp_path, b"\n".join([HEADER, nameless, E2, nameless, b""]))
    store = FileStore(tmp_path)
    await store.append_entries("s", notes("e3"))
    assert ids(await store.load_entries("s")) == ["", "e2", "", "e3"]


async def test_a_damaged_log_does_not_hide_that_another_is_whole(tmp_path: Path) -> None:
    """2.7: an error is that of its own session."""
    write_log(tmp_path, HEADER + b"\n{\n")
    store = FileStore(tmp_path)
    await store.create_session("other")
    with pytest.raises(DamagedLogError):
        await store.load_entries("s")
    await store.append_entries("other", notes("e1"))
    with pytest.raises(SessionNotFoundError):
        await store.load_entries("third")
    assert ids(await store.load_entries("other")) == ["e1"]
