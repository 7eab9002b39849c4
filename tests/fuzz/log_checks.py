"""What holds for any bytes in place of a log, and for any in place of a line."""

from __future__ import annotations

import asyncio
import tempfile
from contextlib import suppress
from pathlib import Path

from perdure import Transcript
from perdure.codec import decode_entry, decode_record, encode_entry, loads_json
from perdure.entries import Entry
from perdure.errors import (
    DamagedLogError,
    EntryDecodeError,
    JsonError,
    SessionExistsError,
    SessionNotFoundError,
)
from perdure.stores import FileStore
from perdure.stores.log_survey import survey
from tests.core.provider import check_as_a_provider
from tests.stores.logs import note

BLANK = b" \t\r"
BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def check_line(data: bytes) -> None:
    """A line is read or refused by name; what was read is written so that it is read again."""
    with suppress(JsonError):
        loads_json(data)
    with suppress(EntryDecodeError):
        decode_record(data)
    try:
        entry = decode_entry(data)
    except EntryDecodeError:
        return
    line = encode_entry(entry)
    assert b"\n" not in line
    again = decode_entry(line)
    assert again == entry
    assert encode_entry(again) == line
    assert encode_entry(entry.with_header(id="other")) != b""


def check_log(data: bytes, session_id: str = "s") -> None:
    """A log is read whole, or refused with its name and a line of it: nothing before the tail is
    lost without a sign. What was read stays when more is appended.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"{session_id}.jsonl"
        path.write_bytes(data)
        asyncio.run(_check(path, data, session_id))


async def _check(path: Path, data: bytes, session_id: str) -> None:
    store = FileStore(path.parent)
    try:
        entries = await store.load_entries(session_id)
    except SessionNotFoundError:
        # There was no whole first line: whoever creates the session gets it, and nothing is gone.
        assert _whole_lines(data) == []
        await store.create_session(session_id)
        assert await store.load_entries(session_id) == []
        assert not data or data in [piece.read_bytes() for piece in path.parent.iterdir()]
        return
    except DamagedLogError as error:
        _check_damage(error, path, data, session_id)
        return
    _check_entries(entries, data)
    assert not survey(path, session_id).damages
    _check_views(entries)
    with suppress(SessionExistsError):
        await store.create_session(session_id)
        raise AssertionError("a session was created anew")
    added = note("added by the fuzzer")
    await store.append_entries(session_id, [added])
    await store.append_entries(session_id, [added])
    whole = data[: data.rfind(b"\n") + 1]
    assert path.read_bytes().startswith(whole)
    for other in (store, FileStore(path.parent)):
        after = await other.load_entries(session_id)
        assert after[: len(entries)] == entries
        assert [entry.id for entry in after[len(entries) :]] in ([], [added.id])
        assert added.id in [entry.id for entry in after]


def _check_damage(damage: DamagedLogError, path: Path, data: bytes, session_id: str) -> None:
    """The error says where, nothing was changed, and whoever looks at every line finds it too."""
    assert damage.path == str(path)
    assert 1 <= damage.line <= data.count(b"\n") + 1
    assert path.read_bytes() == data
    assert survey(path, session_id).damages


def _whole_lines(data: bytes) -> list[bytes]:
    """The lines that end with a line feed, but for blank ones."""
    lines = data.removeprefix(BYTE_ORDER_MARK).split(b"\n")[:-1]
    return [line for line in lines if line.strip(BLANK)]


def _check_entries(entries: list[Entry], data: bytes) -> None:
    """Each whole line after the first is an entry, or repeats the ID of one."""
    in_lines: dict[str, Entry] = {}
    nameless: list[Entry] = []
    for entry in map(decode_entry, _whole_lines(data)[1:]):
        if entry.id:
            in_lines.setdefault(entry.id, entry)
        else:
            nameless.append(entry)
    loaded = [entry for entry in entries if entry.id]
    assert loaded[: len(in_lines)] == list(in_lines.values())
    assert len(loaded) - len(in_lines) in (0, 1)  # a last line without its line end
    assert len([entry for entry in entries if not entry.id]) >= len(nameless)


def _check_views(entries: list[Entry]) -> None:
    transcript = Transcript(entries)
    for leaf_id in transcript.leaves()[:20]:
        with suppress(EntryDecodeError):  # a message may be damaged below what is looked at first
            check_as_a_provider(transcript.model_view(leaf_id))
