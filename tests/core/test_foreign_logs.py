"""Logs that another program wrote are read here as they were read there."""

from __future__ import annotations

from typing import Any

import pytest

from perdure.codec import decode_record, encode_entry, encode_record
from perdure.entries import Entry, MessageEntry
from perdure.errors import EntryDecodeError
from perdure.transcript import Transcript
from tests.core.building import interrupted
from tests.core.logs import FIXTURES, expected, logged

GOOD = [
    "s01-tiny",
    "s05-meta-ephemeral",
    "s06-custom",
    "s07-compaction",
    "s10-branches",
    "damaged/d1-torn-tail",
    "damaged/d7-orphan-parent",
]


def test_no_log_is_forgotten() -> None:
    others = {"interrupted", "damaged/d4-corrupt-middle", "damaged/d5-duplicate-ids"}
    names = {path.relative_to(FIXTURES).with_suffix("") for path in FIXTURES.rglob("*.jsonl")}
    assert {str(name) for name in names} == {*GOOD, *others}


@pytest.mark.parametrize("name", GOOD)
def test_the_entries_are_those_that_were_written(name: str) -> None:
    for entry, wanted in zip(logged(name), expected(name)["entries"], strict=True):
        keys = wanted.keys() - {"n", "blocks", "fields"}
        assert {key: _said_of(entry, key) for key in keys} == {key: wanted[key] for key in keys}
        if "blocks" in wanted and isinstance(entry, MessageEntry):
            assert [block.type for block in entry.message.content] == wanted["blocks"]
        if "fields" in wanted:
            assert entry.model_extra == wanted["fields"]


def _said_of(entry: Entry, key: str) -> Any:
    if key == "created_at":
        return str(entry.created_at)
    if key == "tool_calls" and isinstance(entry, MessageEntry):
        calls = [call.to_wire() for call in entry.message.tool_calls]
        return [{k: v for k, v in call.items() if k != "type"} for call in calls]
    found = getattr(entry, key, None)
    return getattr(entry.message, key) if found is None else found  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", GOOD)
def test_the_path_the_views_and_the_tree_are_those_of_the_other_program(name: str) -> None:
    """2.4, 4.1, 4.2, 4.3: both programs project one log alike."""
    transcript, wanted = Transcript(logged(name)), expected(name)
    assert transcript.leaf_id == wanted["leaf"]
    assert [entry.id for entry in transcript.path()] == wanted["path"]
    assert _model_view(transcript) == _repaired(wanted)
    assert [
        {"type": entry.type, "id": entry.id} for entry in transcript.transcript_view()
    ] == wanted["transcript_view"]
    assert _preorder(transcript) == wanted["tree"]


def _model_view(transcript: Transcript) -> list[Any]:
    view = [message.model_dump(mode="json") for message in transcript.model_view()]
    for message in view:
        message["content"] = message["content"] or []
    return view


def _repaired(wanted: dict[str, Any]) -> list[Any]:
    view = wanted["model_view"]
    assert wanted["repair_inserts"] == []
    for message in view:
        message["content"] = message["content"] or []
        if message.pop("_synthetic", None) == "compaction":
            message["timestamp"] = wanted["entries"][15]["created_at"]
    return list(view)


def _preorder(transcript: Transcript) -> list[list[Any]]:
    return [[depth, node.entry.id] for root in transcript.tree() for depth, node in root.walk()]


@pytest.mark.parametrize("name", [*GOOD, "interrupted", "damaged/d5-duplicate-ids"])
def test_lines_of_another_program_are_written_on_as_they_are(name: str) -> None:
    """2.9: whether or not an entry was looked at, and whether or not its line is at hand."""
    header, *lines, _ = (FIXTURES / f"{name}.jsonl").read_bytes().split(b"\n")
    assert encode_record(decode_record(header)) == header
    for line, entry in zip(lines, logged(name), strict=True):
        assert encode_entry(entry) == line
        assert encode_entry(Entry.model_validate(entry.model_dump(mode="json"))) == line


def test_damage_in_the_middle_is_an_error_that_tells_the_line() -> None:
    """2.7: damage anywhere but in the tail is never a silently shorter session."""
    with pytest.raises(EntryDecodeError) as failure:
        logged("damaged/d4-corrupt-middle")
    assert failure.value.index == 2


def test_the_first_of_two_entries_with_one_id_stands() -> None:
    """2.4: an append-only log has no overwriting. (The other program takes the last one.)"""
    transcript, wanted = (
        Transcript(logged("damaged/d5-duplicate-ids")),
        expected("damaged/d5-duplicate-ids"),
    )
    assert [entry.id for entry in transcript.path()] == wanted["path"]
    assert len(transcript) == wanted["entry_count"]
    assert [message.text for message in transcript.model_view()][:2] == [
        "hello",
        "hi, how can I help?",
    ]
    assert _preorder(transcript) == [
        [0, "e1"],
        [1, "e2"],
        [2, "e3"],
        [3, "e4"],
        [4, "e5"],
        [5, "e6"],
        [1, "e2"],
    ]


def test_a_conversation_that_died_in_a_tool_call_is_repaired() -> None:
    """4.4: the footprint of a crash gets its error result, in the view only."""
    entries = logged("interrupted")
    transcript = Transcript(entries)
    view = transcript.model_view()
    assert [message.role for message in view] == [
        "user",
        "user",
        "assistant",
        "tool_result",
        "assistant",
        "tool_result",
        "tool_result",
    ]
    assert view[-1] == interrupted("call_3", "search")
    assert list(transcript.entries) == entries == logged("interrupted")
