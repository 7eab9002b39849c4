"""A decoded entry that was not looked at yet cannot be told from one that was made at once."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import given

from perdure.codec import decode_entry, encode_entry, entry_from_json, loads_json
from perdure.entries import CompactionEntry, CustomEntry, Entry, MessageEntry, OpaqueEntry
from tests.core.building import call
from tests.core.strategies import entries

LINE = (
    b'{"type":"message","id":"a","parent_id":"p","created_at":"2026-11-29T12:00:00.5+05:30",'
    b'"meta":true,"message":{"role":"assistant","content":[{"type":"text","text":"hi"},'
    b'{"type":"tool_call","id":"c1","name":"look","arguments":{"x":[1]}}],"usage":{"input":1},'
    b'"weight":2},"x":1}'
)
USES: list[Callable[[Any], Any]] = [
    repr,
    str,
    dict,
    hash,
    lambda entry: entry.model_dump(),
    lambda entry: entry.model_dump(mode="json", by_alias=True),
    lambda entry: entry.model_dump(include={"id"}),
    lambda entry: entry.model_dump_json(),
    lambda entry: entry.model_copy(),
    lambda entry: entry.model_copy(deep=True),
    lambda entry: entry.model_copy(update={"id": "b"}),
    lambda entry: copy.copy(entry),
    lambda entry: copy.deepcopy(entry),
    lambda entry: pickle.loads(pickle.dumps(entry)),
    lambda entry: entry.model_fields_set,
    lambda entry: entry.model_extra,
    lambda entry: entry.x,
    lambda entry: [entry.type, entry.id, entry.parent_id, str(entry.created_at)],
    lambda entry: entry.__pydantic_extra__,
    lambda entry: sorted(name for name in dir(entry) if not name.startswith("_")),
    lambda entry: type(entry).model_validate(entry) is entry,
    lambda entry: entry.with_header(id="b", parent_id=""),
]
MESSAGE_USES: list[Callable[[Any], Any]] = [
    lambda entry: entry.message,
    lambda entry: entry.message.text,
    lambda entry: entry.message.weight,
    lambda entry: entry.message.outline,
    lambda entry: entry.outline,
    lambda entry: entry.meta,
    lambda entry: entry.ephemeral,
    lambda entry: repr(entry.message),
    lambda entry: copy.deepcopy(entry.message),
    lambda entry: pickle.loads(pickle.dumps(entry.message)),
    lambda entry: entry.message.model_copy(update={"role": "user"}),
    lambda entry: hash(entry.message),
]


def made_at_once(line: bytes) -> Entry:
    return entry_from_json(loads_json(line))


@pytest.mark.parametrize("use", [*USES, *MESSAGE_USES])
def test_every_use_of_an_entry_gives_what_it_gives_of_one_made_at_once(
    use: Callable[[Any], Any],
) -> None:
    fresh = decode_entry(LINE)
    assert use(fresh) == use(made_at_once(LINE))
    assert fresh == made_at_once(LINE)
    assert use(fresh) == use(made_at_once(LINE))


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize(
    "line",
    [
        b'{"type":"compaction","id":"a","summary":"s","first_kept_id":"k","x":1}',
        b'{"id":"a","kind":"note","type":"custom","x":[1]}',
        b'{"type":"vote","id":"a","x":1}',
    ],
)
def test_entries_of_all_types_can_be_used_so(line: bytes, use: Callable[[Any], Any]) -> None:
    fresh = decode_entry(line)
    assert use(fresh) == use(made_at_once(line))
    assert fresh == made_at_once(line)


@given(entries)
def test_equality_holds_in_both_directions_before_and_after_use(entry: Entry) -> None:
    line = encode_entry(entry)
    assert decode_entry(line) == entry
    assert entry == decode_entry(line)
    assert decode_entry(line) == decode_entry(line)
    assert repr(decode_entry(line)) == repr(made_at_once(line))
    assert hash(decode_entry(line)) == hash(entry)
    assert decode_entry(line) != entry.model_copy(update={"parent_id": f"{entry.parent_id}x"})


def test_an_attribute_that_is_not_there_is_not_there() -> None:
    entry, message = decode_entry(LINE), decode_entry(LINE).message  # type: ignore[attr-defined]
    for model in (entry, message):
        for name in ("nothing", "_nothing", "__nothing__"):
            assert not hasattr(model, name)


def test_fields_of_the_type_are_there() -> None:
    compaction = decode_entry('{"type":"compaction","summary":"s","tokens_before":3}')
    assert isinstance(compaction, CompactionEntry)
    assert (compaction.tokens_before, compaction.summary, compaction.first_kept_id) == (3, "s", "")
    custom = decode_entry('{"type":"custom","kind":"note"}')
    assert isinstance(custom, CustomEntry)
    assert (custom.kind, custom.type) == ("note", "custom")
    opaque = decode_entry('{"type":"vote"}')
    assert isinstance(opaque, OpaqueEntry)
    assert (opaque.type, opaque.model_extra) == ("vote", {})


def test_a_copy_keeps_the_line_and_a_changed_one_does_not() -> None:
    entry = decode_entry(LINE)
    for kept in (entry.model_copy(), copy.copy(entry), pickle.loads(pickle.dumps(entry))):
        assert (kept.source_line, kept) == (LINE, entry)
    changed = entry.model_copy(update={"id": "b"})
    assert (changed.source_line, changed.id) == (None, "b")
    assert decode_entry(encode_entry(changed)) == changed


def test_a_change_inside_a_deep_copy_is_written() -> None:
    for twin in (copy.deepcopy(decode_entry(LINE)), decode_entry(LINE).model_copy(deep=True)):
        assert isinstance(twin, MessageEntry)
        twin.message.tool_calls[0].arguments["x"].append(2)
        again = decode_entry(encode_entry(twin))
        assert isinstance(again, MessageEntry)
        assert again.message.tool_calls == (call("c1", x=[1, 2]),)


def test_a_message_that_was_changed_changes_the_entry() -> None:
    entry = decode_entry(LINE)
    assert isinstance(entry, MessageEntry)
    message = entry.message.model_copy(update={"role": "user", "content": ()})
    changed = entry.model_copy(update={"message": message})
    assert (changed.outline.role, changed.outline.call_ids) == ("user", ())
    again = decode_entry(encode_entry(changed))
    assert isinstance(again, MessageEntry)
    assert (again.message, again.outline) == (message, changed.outline)


def test_entries_may_be_looked_at_from_several_threads() -> None:
    for _ in range(20):
        entry: Any = decode_entry(LINE)
        with ThreadPoolExecutor(8) as pool:
            uses = [use for use in (*USES, *MESSAGE_USES) for _ in range(2)]
            found = list(pool.map(lambda use, entry=entry: use(entry), uses))
        assert found == [use(made_at_once(LINE)) for use in uses]
