"""`perdure verify`: each kind of finding, and what a reader really does about it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from perdure.cli.checks import check_entries
from perdure.cli.verify import report_of
from perdure.entries import CompactionEntry, Entry, OpaqueEntry, text
from perdure.errors import DamagedLogError, SessionNotFoundError
from perdure.messages import ToolCallBlock
from perdure.stores import FileStore, MemoryStore
from perdure.stores.log_survey import survey
from tests.cli.sessions import answer, conversation, placed, result, write
from tests.cli.test_command_line import perdure


def said(entry_id: str, parent_id: str = "") -> Entry:
    return placed(text(f"this is {entry_id}"), entry_id, parent_id, 0)


def called(entry_id: str, parent_id: str, *call_ids: str) -> Entry:
    calls = [ToolCallBlock(id=call_id, name="look") for call_id in call_ids]
    return placed(answer("", *calls), entry_id, parent_id, 0)


def told(entry_id: str, parent_id: str, call_id: str) -> Entry:
    return placed(result(call_id, "found"), entry_id, parent_id, 0)


COMPACTION = CompactionEntry(summary="short", first_kept_id="elsewhere")

FINDINGS: list[tuple[list[Entry], list[tuple[str, str, int, str]]]] = [
    (conversation(), []),
    ([said("a"), said("a")], [("warning", "duplicate_id", 2, "a")]),
    ([said("")], [("warning", "no_id", 1, "")]),
    ([said("a", "gone")], [("warning", "missing_parent", 1, "a")]),
    (
        [said("a", "c"), said("b", "a"), said("c", "b"), said("d", "c")],
        [("warning", "circle", line, entry_id) for line, entry_id in enumerate("abc", 1)],
    ),
    ([said("a", "a")], [("warning", "circle", 1, "a")]),
    ([said("b", "a"), said("a")], [("note", "late_parent", 1, "b")]),
    ([said("a"), placed(COMPACTION, "b", "a", 0)], [("note", "kept_nothing", 2, "b")]),
    ([called("a", "", "c1"), told("b", "a", "c1"), said("c", "b")], []),
    ([called("a", "", "c1"), said("b", "a")], [("note", "orphaned_call", 1, "a")]),
    ([called("a", "", "c1", "c2"), told("b", "a", "c2")], [("note", "orphaned_call", 1, "a")]),
    # One branch has the result, the other has not.
    (
        [called("a", "", "c1"), told("b", "a", "c1"), said("c", "a")],
        [("note", "orphaned_call", 1, "a")],
    ),
    ([said("a"), told("b", "a", "c1")], [("note", "orphaned_result", 2, "b")]),
    (
        [called("a", "", "c1"), told("b", "a", "c1"), told("c", "b", "c1")],
        [("note", "orphaned_result", 3, "c")],
    ),
    (
        [OpaqueEntry.model_validate({"type": "hologram", "id": "a"})],
        [("note", "unknown", 1, "a")],
    ),
]


@pytest.mark.parametrize("entries, expected", FINDINGS)
def test_what_is_found_among_entries(
    entries: list[Entry], expected: list[tuple[str, str, int, str]]
) -> None:
    found = check_entries(entries, range(1, len(entries) + 1))
    assert [(f.weight.value, f.kind, f.line, f.entry_id) for f in found] == expected


def test_very_long_chains_of_calls_and_parents_are_no_trouble() -> None:
    entries: list[Entry] = []
    parent_id = ""
    for number in range(3_000):
        entries.append(called(f"e{number}", parent_id, "c1"))
        parent_id = f"e{number}"
    assert len(check_entries(entries, range(1, 3_001))) == 3_000


def cut_last_line(data: bytes) -> bytes:
    return data[:-20]


def lose_line_end(data: bytes) -> bytes:
    return data[:-1]


def break_two_lines(data: bytes) -> bytes:
    lines = data.split(b"\n")
    lines[3], lines[5] = b"garbage", b'{"type":"message"'
    return b"\n".join(lines)


def break_record(data: bytes) -> bytes:
    return b"{}" + data[data.index(b"\n") :]


def blank_lines(data: bytes) -> bytes:
    return data.replace(b"\n", b"\n \n", 2)


@pytest.mark.parametrize(
    "damage, expected",
    [
        (cut_last_line, [("warning", "torn_tail", 12)]),
        (lose_line_end, [("note", "no_line_end", 12)]),
        (break_two_lines, [("error", "damage", 4), ("error", "damage", 6)]),
        (break_record, [("error", "damage", 1)]),
        (blank_lines, [("note", "blank_lines", 0)]),
    ],
)
async def test_all_damage_of_a_file_is_found_and_a_reader_does_as_told(
    tmp_path: Path,
    damage: Callable[[bytes], bytes],
    expected: list[tuple[str, str, int]],
) -> None:
    log = write(tmp_path, "user-42", conversation())
    log.write_bytes(damage(log.read_bytes()))
    store = FileStore(tmp_path)
    found = [
        (finding.weight.value, finding.kind, finding.line)
        for finding in (await report_of(store, "user-42")).findings
        if finding.kind in {kind for _, kind, _ in expected}
    ]
    assert found == expected
    if "error" in {weight for weight, _, _ in expected}:
        with pytest.raises(DamagedLogError) as raised:
            await store.load_entries("user-42")
        assert raised.value.line == expected[0][2]
    else:
        loaded = await store.load_entries("user-42")
        assert loaded == survey(log, "user-42").entries


async def test_a_store_without_files_is_checked_by_its_entries() -> None:
    store = MemoryStore()
    await store.create_session("user-42")
    await store.append_entries("user-42", [called("a", "", "c1"), said("b", "a")])
    report = await report_of(store, "user-42")
    assert [finding.kind for finding in report.findings] == ["orphaned_call"]
    with pytest.raises(SessionNotFoundError):
        await report_of(store, "nobody")


def test_a_torn_tail_is_moved_aside_and_nothing_is_lost(folder: Path) -> None:
    log = folder / "sessions/user-42.jsonl"
    whole = log.read_bytes()
    log.write_bytes(whole + b'{"type":"message","id":"torn')

    status, said_, errors = perdure("verify", "user-42", cwd=folder)
    assert status == 1
    assert said_ == (
        "user-42 · 11 entries · not all in order\n"
        f"  warning line 13: the last line is torn: 28 bytes from byte {len(whole):,} on\n"
        "    a reader leaves them out; the next append, or --repair-tail, moves them aside\n"
    )
    assert errors == "perdure: 1 session of 1 not all in order\n"

    status, said_, errors = perdure("verify", "user-42", "--repair-tail", cwd=folder)
    aside = folder / "sessions/user-42.jsonl.torn-1"
    assert (status, errors.count("\n")) == (0, 0)
    assert f"moved the torn tail to {aside}" in said_
    assert log.read_bytes() == whole
    assert aside.read_bytes() == b'{"type":"message","id":"torn'


def test_a_tail_is_left_alone_in_a_log_with_other_damage(folder: Path) -> None:
    log = folder / "sessions/user-42.jsonl"
    broken = break_two_lines(log.read_bytes()) + b'{"type'
    log.write_bytes(broken)
    status, said_, _ = perdure("verify", "user-42", "--repair-tail", cwd=folder)
    assert (status, said_.count("error line ")) == (1, 2)
    assert log.read_bytes() == broken


def test_json_of_all_sessions_is_one_report_a_line(folder: Path) -> None:
    with (folder / "sessions/what-if.jsonl").open("ab") as log:
        log.write(b"{")
    (folder / "sessions/empty.jsonl").touch()  # no session yet
    status, said_, _ = perdure("verify", "--all", "--json", cwd=folder)
    assert status == 1
    assert [json.loads(line) for line in said_.splitlines()] == [
        {"session_id": "user-42", "ok": True, "entries": 11, "findings": [], "moved_to": None},
        {
            "session_id": "what-if",
            "ok": False,
            "entries": 5,
            "findings": [
                {
                    "weight": "warning",
                    "kind": "torn_tail",
                    "line": 7,
                    "entry_id": "",
                    "message": "the last line is torn: 1 bytes from byte "
                    f"{(folder / 'sessions/what-if.jsonl').stat().st_size - 1:,} on",
                    "reader": "leaves them out; the next append, or --repair-tail, "
                    "moves them aside",
                }
            ],
            "moved_to": None,
        },
    ]
