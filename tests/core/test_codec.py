from __future__ import annotations

import gc
import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.codec import (
    decode_entries,
    decode_entry,
    decode_record,
    dumps_json,
    encode_entry,
    encode_record,
    entry_from_json,
    loads_json,
)
from perdure.entries import (
    CompactionEntry,
    CustomEntry,
    Entry,
    MessageEntry,
    OpaqueEntry,
    SessionRecord,
    ephemeral,
    text,
)
from perdure.errors import EntryDecodeError, EntryEncodeError
from perdure.messages import (
    FileBlock,
    ImageBlock,
    Message,
    OpaqueBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolOutput,
)
from perdure.timestamps import ZERO, Timestamp
from perdure.usage import Cost, Usage
from tests.core.building import decoded, line_of, message_line
from tests.core.strategies import any_text, entries, json_values

MORNING = Timestamp.parse("2026-11-29T12:00:00Z")
NOON = Timestamp.parse("2026-11-29T12:00:00.000000001+05:30")


def block(**keys: Any) -> bytes:
    return message_line(content=[keys])


@given(entries)
def test_whatever_is_written_is_read_back(entry: Entry) -> None:
    """2.9: what is written loads again, whole, with what perdure does not know."""
    assert decode_entry(encode_entry(entry)) == entry


@given(entries)
def test_what_was_read_is_written_as_the_same_line(entry: Entry) -> None:
    line = encode_entry(entry)
    read = decode_entry(line)
    assert encode_entry(read) == line
    assert dumps_json(read.model_dump(mode="json", by_alias=True)) == line


@given(entries)
def test_the_dump_of_an_entry_is_its_line(entry: Entry) -> None:
    assert dumps_json(entry.model_dump(mode="json", by_alias=True)) == encode_entry(entry)


@given(entries)
def test_the_json_object_of_a_line_is_the_entry(entry: Entry) -> None:
    wire = loads_json(encode_entry(entry))
    assert entry_from_json(wire) == Entry.model_validate(wire) == entry


MUTATIONS = st.sampled_from(
    [
        ("type",), ("id",), ("parent_id",), ("created_at",), ("meta",), ("message",),
        ("message", "role"), ("message", "content"), ("message", "usage"),
        ("message", "timestamp"), ("message", "is_error"), ("message", "tool_call_id"),
        ("message", "usage", "input"), ("message", "usage", "cost"),
        ("message", "usage", "cost", "output"),
        ("message", "content", 0), ("message", "content", 0, "type"),
        ("message", "content", 0, "text"), ("message", "content", 1, "id"),
        ("message", "content", 1, "arguments"), ("message", "content", 1, "server"),
        ("message", "content", 1, "output"), ("message", "content", 1, "name"),
        ("message", "unknown"),
    ]
)  # fmt: skip


@given(MUTATIONS, json_values | st.sampled_from([2**63, -(2**63) - 1, "text", "tool_call", ""]))
def test_a_line_is_read_just_when_the_models_read_it(path: tuple[Any, ...], value: Any) -> None:
    """The quick look at plain lines lets nothing through that the models refuse."""
    wire: Any = {
        "type": "message",
        "id": "e1",
        "created_at": "2026-11-29T12:00:00Z",
        "message": {
            "role": "assistant",
            "content": [
                {"type": "text", "text": "hi"},
                {"type": "tool_call", "id": "c1", "name": "look", "arguments": {}},
            ],
            "usage": {"input": 1, "cost": {"output": 0.5}},
        },
    }
    place = wire
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    line = json.dumps(wire).encode()
    try:
        expected = entry_from_json(loads_json(line))
    except EntryDecodeError:
        with pytest.raises(EntryDecodeError):
            decode_entry(line)
        return
    read = decode_entry(line)
    assert read == expected
    assert isinstance(read, MessageEntry) is isinstance(expected, MessageEntry)
    if isinstance(read, MessageEntry) and isinstance(expected, MessageEntry):
        assert decode_entry(line).outline == expected.outline  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "entry, line",
    [
        (
            MessageEntry(
                id="a",
                parent_id="b",
                created_at=NOON,
                meta=True,
                message=Message(
                    role="assistant",
                    content="<hi>",
                    api="x",
                    provider="p",
                    model="m",
                    usage=Usage(input=3, cost=Cost(input=3.0, output=0.5)),
                    stop_reason="stop",
                    error="e",
                    tool_call_id="c",
                    tool_name="t",
                    is_error=True,
                    timestamp=NOON,
                ),
            ),
            r'{"type":"message","id":"a","parent_id":"b",'
            r'"created_at":"2026-11-29T12:00:00.000000001+05:30","meta":true,'
            r'"message":{"role":"assistant","content":[{"type":"text","text":"\u003chi\u003e"}],'
            r'"api":"x","provider":"p","model":"m","usage":{"input":3,"cost":{"input":3,"output":0.5}},'
            r'"stop_reason":"stop","error":"e","tool_call_id":"c","tool_name":"t","is_error":true,'
            r'"timestamp":"2026-11-29T06:30:00.000000001Z"}}',
        ),
        (
            MessageEntry(id="a"),
            '{"type":"message","id":"a","created_at":"0001-01-01T00:00:00Z",'
            '"message":{"role":"","content":null}}',
        ),
        (
            CompactionEntry(id="a"),
            '{"type":"compaction","id":"a","created_at":"0001-01-01T00:00:00Z","summary":"",'
            '"first_kept_id":"","tokens_before":0}',
        ),
        (
            CustomEntry(id="a", parent_id="b", kind="", zebra=1, Ant=None),  # type: ignore[call-arg]
            '{"Ant":null,"created_at":"0001-01-01T00:00:00Z","id":"a","kind":"","parent_id":"b",'
            '"type":"custom","zebra":1}',
        ),
        (
            OpaqueEntry(type="vote", id="a", weight=1),  # type: ignore[call-arg]
            '{"type":"vote","id":"a","created_at":"0001-01-01T00:00:00Z","weight":1}',
        ),
    ],
)
def test_lines_have_the_keys_and_the_order_of_the_format(entry: Entry, line: str) -> None:
    assert encode_entry(entry).decode() == line


@pytest.mark.parametrize(
    "content, written",
    [
        (TextBlock(), '{"type":"text"}'),
        (TextBlock(text="a", signature="s"), '{"type":"text","text":"a","signature":"s"}'),
        (
            ThinkingBlock(thinking="a", signature="s"),
            '{"type":"thinking","signature":"s","thinking":"a"}',
        ),
        (
            ImageBlock(data="YQ==", mime_type="image/png"),
            '{"type":"image","data":"YQ==","mime_type":"image/png"}',
        ),
        (
            FileBlock(data="d", mime_type="m", url="u", file_id="i", filename="f"),
            '{"type":"file","data":"d","mime_type":"m","url":"u","file_id":"i","filename":"f"}',
        ),
        (ToolCallBlock(id="c", name="n"), '{"type":"tool_call","id":"c","name":"n"}'),
        (
            ToolCallBlock(
                signature="s",
                id="c",
                name="n",
                arguments={"b": 1, "a": None},
                server=True,
                server_type="bash",
                output=ToolOutput(content="x", raw=0, is_error=True),
            ),
            '{"type":"tool_call","signature":"s","id":"c","name":"n","arguments":{"b":1,"a":null},'
            '"server":true,"server_type":"bash","output":{"content":"x","raw":0,"is_error":true}}',
        ),
        (OpaqueBlock(type="video", fps=3), '{"type":"video","fps":3}'),  # type: ignore[call-arg]
    ],
)
def test_blocks_have_the_keys_and_the_order_of_the_format(content: Any, written: str) -> None:
    entry = MessageEntry(id="a", message=Message(role="user", content=[content]))
    line = encode_entry(entry).decode()
    assert f'"content":[{written}]' in line
    read = decode_entry(line)
    assert isinstance(read, MessageEntry)
    assert read.message.content == (content,)


@pytest.mark.parametrize("reader", [decode_entry, lambda line: entry_from_json(loads_json(line))])
@pytest.mark.parametrize(
    "line",
    [
        b"{}",
        line_of(type=None),
        line_of(type=""),
        line_of(type=5),
        line_of(id=5),
        line_of(parent_id=["a"]),
        line_of(meta="yes"),
        line_of(meta=1),
        line_of(message="hello"),
        line_of(message=[]),
        line_of(created_at=5),
        line_of(created_at="yesterday"),
        line_of(created_at="2026-11-29 12:00:00Z"),
        line_of(created_at="2026-11-29T12:00:00"),
        line_of(created_at="2026-11-29T12:00:00+0530"),
        line_of(created_at="2026-11-29T12:00:60Z"),
        message_line(content="hello"),
        message_line(content={}),
        message_line(content=[None]),
        message_line(content=["hello"]),
        message_line(content=[[]]),
        message_line(is_error=1),
        message_line(usage=5),
        message_line(usage={"input": 1.0}),
        message_line(usage={"input": True}),
        message_line(usage={"input": "1"}),
        message_line(usage={"input": 2**63}),
        message_line(usage={"cost": {"input": "1"}}),
        message_line(usage={"cost": 1}),
        message_line(usage={"cost": {"input": 10**400}}),
        message_line(usage={"cost": {"input": True}}),
        message_line(tool_call_id=5),
        block(type=""),
        block(type=None),
        block(text="no type"),
        block(type=5),
        block(type="text", text=5),
        block(type="tool_call", arguments=[]),
        block(type="tool_call", arguments="{}"),
        block(type="tool_call", server="yes"),
        block(type="tool_call", output=[]),
        line_of(type="compaction", summary=5),
        line_of(type="compaction", tokens_before=1.5),
        line_of(type="compaction", tokens_before=1.0),
        line_of(type="custom", kind=5),
        line_of(type="custom", id=5),
        line_of(type="vote", id=5),
        line_of(type="vote", created_at=5),
    ],
)
def test_a_line_that_is_no_entry_is_refused(reader: Any, line: bytes) -> None:
    with pytest.raises(EntryDecodeError):
        reader(line)


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"null",
        b"[]",
        b"3",
        b'"message"',
        b'{"type":"message","id":"e1"',
        b'{"type":"message"} x',
        b'{"type":"message","id":"a\x01b"}',
        b'\xef\xbb\xbf{"type":"message"}',
        b'{"type":"message","message":{"usage":{"input":NaN}}}',
        b'{"type":"message","message":{"content":[{"type":"tool_call","arguments":{"n":[1e400]}}]}}',
        b'{"type":"message","message":{"usage":{"cost":{"input":1e400}}}}',
        b'{"type":"message","x":' + b"[" * 10_001 + b"]" * 10_001 + b"}",
        b'{"type":"message","x":1e400',
        b"1e400 x",
    ],
)
def test_a_line_that_is_no_json_object_is_refused(line: bytes) -> None:
    with pytest.raises(EntryDecodeError):
        decode_entry(line)


def test_the_error_says_where_and_what() -> None:
    with pytest.raises(EntryDecodeError, match=r"message\.usage\.input: Input should be a valid"):
        decode_entry(message_line(usage={"input": 1.0}))


@pytest.mark.parametrize(
    "line, expected",
    [
        (b'{"type":"message"}', MessageEntry()),
        (
            line_of(
                id=None, parent_id=None, created_at=None, meta=None, message=None
            ),
            MessageEntry(),
        ),
        (
            message_line(
                role=None, content=None, usage=None, is_error=None, timestamp=None, error=None
            ),
            MessageEntry(id="e1", created_at=MORNING),
        ),
        (
            message_line(
                content=[{"type": "tool_call", "id": None, "arguments": None, "output": None}]
            ),
            MessageEntry(
                id="e1",
                created_at=MORNING,
                message=Message(role="user", content=[ToolCallBlock()]),
            ),
        ),
        (
            message_line(content=[], usage={"input": None, "cost": {"output": None}}),
            MessageEntry(id="e1", created_at=MORNING, message=Message(role="user", usage=Usage())),
        ),
        (
            line_of(type="compaction", summary=None, tokens_before=None),
            CompactionEntry(id="e1", created_at=MORNING),
        ),
        (line_of(type="custom", kind=None), CustomEntry(id="e1", created_at=MORNING)),
    ],
)  # fmt: skip
def test_a_null_of_a_known_key_means_that_it_is_absent(line: bytes, expected: Entry) -> None:
    assert decode_entry(line) == expected


def test_a_null_of_an_unknown_key_is_kept() -> None:
    assert decoded(colour=None).model_dump(mode="json")["colour"] is None


@pytest.mark.parametrize("time", ["garbage", "", "2026-11-29 12:00:00Z", 5, [], {"a": 1}])
def test_a_message_time_that_cannot_be_read_is_ignored(time: Any) -> None:
    line = message_line(timestamp=time)
    entry = decode_entry(line)
    assert isinstance(entry, MessageEntry)
    assert entry.message.timestamp is None
    assert encode_entry(entry) == line


def test_keys_match_exactly() -> None:
    entry = decode_entry('{"type":"message","ID":"x","Message":5}')
    assert (entry.id, entry.model_extra) == ("", {"ID": "x", "Message": 5})


def test_of_duplicate_keys_the_last_wins() -> None:
    entry = decode_entry('{"type":"message","id":"a","id":"b"}')
    assert (entry.id, entry.with_header(id="c").id) == ("b", "c")


def test_unknown_keys_are_kept_on_every_level_after_those_that_are_known() -> None:
    wire = {
        "new": [1, {"a": None}],
        "type": "message",
        "id": "e1",
        "created_at": "2026-11-29T12:00:00Z",
        "message": {
            "weight": 2,
            "role": "user",
            "content": [{"lang": "en", "type": "text", "text": "hi"}],
            "usage": {"total": 7, "input": 3, "cost": {"total": 0.5, "input": 0.5}},
        },
    }
    entry = decode_entry(json.dumps(wire))
    changed = entry.model_copy(update={"id": "e2"})
    assert loads_json(encode_entry(changed)) == {**wire, "id": "e2"}
    assert encode_entry(changed).decode() == (
        '{"type":"message","id":"e2","created_at":"2026-11-29T12:00:00Z",'
        '"message":{"role":"user","content":[{"type":"text","text":"hi","lang":"en"}],'
        '"usage":{"input":3,"cost":{"input":0.5,"total":0.5},"total":7},"weight":2},'
        '"new":[1,{"a":null}]}'
    )


@given(any_text, json_values)
def test_unknown_keys_may_be_any_text(key: str, value: Any) -> None:
    wire = {"type": "note", "id": "a", "created_at": "2026-11-29T12:00:00Z", f"x{key}": value}
    entry = entry_from_json(wire)
    assert isinstance(entry, OpaqueEntry)
    assert entry.model_dump(mode="json") == wire


@pytest.mark.parametrize("model", [MessageEntry, Message])
def test_unknown_keys_may_have_the_names_of_attributes(model: type[MessageEntry | Message]) -> None:
    odd = {name: [1] for name in ("self", "data", "context", *dir(model))}
    message: dict[str, Any] = {"role": "user", "content": None}
    wire: dict[str, Any] = {"type": "message", "id": "a", "created_at": "2026-11-29T12:00:00Z"}
    wire["message"] = message
    (wire if model is MessageEntry else message).update(odd)
    entry = decode_entry(dumps_json(wire))
    assert entry.model_dump(mode="json") == wire
    assert entry == entry_from_json(wire)
    assert loads_json(encode_entry(entry.model_copy(update={"id": "b"}))) == {**wire, "id": "b"}


def test_entries_and_blocks_of_unknown_types_are_kept_and_shown_as_such() -> None:
    """2.9: what a newer version or another program wrote is passed on, not refused."""
    vote = decode_entry('{"type":"vote","id":"v1","parent_id":"e0","for":["e1"],"weight":1.50}')
    assert isinstance(vote, OpaqueEntry)
    assert (vote.type, vote.id, vote.parent_id, vote.created_at) == ("vote", "v1", "e0", ZERO)
    assert vote.model_extra == {"for": ["e1"], "weight": 1.5}
    film = decode_entry(block(type="video", url="u", fps=1.50))
    assert isinstance(film, MessageEntry)
    assert film.message.content == (OpaqueBlock(type="video", url="u", fps=1.5),)  # type: ignore[call-arg]
    assert film.message.text == ""


def test_what_perdure_gives_no_meaning_may_hold_numbers_beyond_a_float() -> None:
    line = (
        b'{"type":"message","message":{"role":"assistant","content":[{"type":"tool_call",'
        b'"server":true,"output":{"raw":{"n":1e400}}}]},"x":-1e999}'
    )
    entry = decode_entry(line)
    assert encode_entry(entry) == line
    assert entry.with_header(id="a").source_line == line.replace(
        b'"message",', b'"message","id":"a",', 1
    )
    with pytest.raises(EntryEncodeError, match="no number for"):
        encode_entry(entry.model_copy(update={"id": "a"}))


def test_line_ends_and_space_around_and_between_tokens_do_not_reach_the_log() -> None:
    pretty = json.dumps({"type": "message", "message": {"role": "user"}}, indent=1)
    entry = decode_entry(f" {pretty}\r\n".encode())
    line = encode_entry(entry)
    assert (b"\n" in line, line.strip(), decode_entry(line)) == (False, line, entry)


def test_bytes_that_are_not_utf_8_are_replaced_one_by_one() -> None:
    entry = decode_entry(b'{"type":"message","id":"a\xe2\x80","message":{}}')
    assert (entry.id, b"a\xef\xbf\xbd\xef\xbf\xbd" in encode_entry(entry)) == (
        "a\ufffd\ufffd",
        True,
    )


def test_a_line_given_as_text_may_hold_lone_surrogates() -> None:
    entry = decode_entry('{"type":"message","id":"a\ud800"}')
    assert (entry.id, encode_entry(entry)) == ("a\ud800", rb'{"type":"message","id":"a\ud800"}')


def test_characters_that_other_readers_cut_lines_at_stand_inside_of_lines() -> None:
    entry = decode_entry('{"type":"message","id":"a\x85b\u2028c"}')
    assert entry.id == "a\x85b\u2028c"
    assert decode_entry(encode_entry(entry.model_copy(update={"parent_id": "p"}))).id == entry.id


@pytest.mark.parametrize("depth", [300, 2_000, 9_990])
def test_deep_arguments_are_read_and_written(depth: int) -> None:
    nested: Any = 1e3
    for _ in range(depth):
        nested = [nested]
    call = ToolCallBlock(id="c", arguments={"x": nested})
    entry = MessageEntry(id="a", message=Message(role="assistant", content=[call]))
    line = encode_entry(entry)
    read = decode_entry(line)
    assert isinstance(read, MessageEntry)
    assert dumps_json(read.message.content[0].to_wire()["arguments"]["x"]) == dumps_json(nested)
    copied = read.model_copy(update={"parent_id": "p"})
    assert encode_entry(copied) == line.replace(b'"a"', b'"a","parent_id":"p"', 1)


def test_an_entry_that_is_nested_too_deeply_is_refused() -> None:
    nested: Any = []
    for _ in range(10_000):
        nested = [nested]
    call = ToolCallBlock(arguments={"x": nested})
    with pytest.raises(EntryEncodeError, match="nesting"):
        encode_entry(MessageEntry(message=Message(content=[call])))


@pytest.mark.parametrize(
    "entry",
    [
        Entry(id="a"),
        OpaqueEntry(id="a"),
        OpaqueEntry(type="message", id="a"),
        MessageEntry.model_construct(id=5),
        MessageEntry.model_construct(id=None),
        MessageEntry.model_construct(parent_id=5),
        MessageEntry.model_construct(parent_id=None),
        MessageEntry.model_construct(created_at="yesterday"),
        MessageEntry.model_construct(created_at=NOON.datetime),
        MessageEntry.model_construct(message="hello"),
        MessageEntry().model_copy(update={"meta": "yes"}),
        MessageEntry(message=Message.model_construct(content=[TextBlock()])),
        MessageEntry(message=Message.model_construct(content=5)),
        MessageEntry(message=Message.model_construct(role=5)),
        MessageEntry(message=Message.model_construct(timestamp=5, content=("a",))),
        MessageEntry(message=Message(usage=Usage.model_construct(input=1.5))),
        MessageEntry(message=Message(usage=Usage.model_construct(input=2**63))),
        MessageEntry(message=Message(usage=Usage(cost=Cost.model_construct(input=math.inf)))),
        MessageEntry(message=Message(content=[ToolCallBlock(arguments={"n": math.nan})])),
        MessageEntry(message=Message(content=[ToolCallBlock(arguments={"n": {5: 1}})])),
        MessageEntry(message=Message(content=[ToolCallBlock(arguments={"n": object()})])),
        MessageEntry(message=Message(content=[ToolCallBlock.model_construct(arguments=[1])])),
        MessageEntry(message=Message.model_construct(content=(OpaqueBlock.model_construct(),))),
        CompactionEntry.model_construct(tokens_before=1.5),
        CustomEntry(kind="note", n=math.inf),  # type: ignore[call-arg]
    ],
)
def test_an_entry_that_would_not_load_again_is_not_written(entry: Entry) -> None:
    """2.9: a store never writes what it would refuse to read."""
    with pytest.raises(EntryEncodeError):
        encode_entry(entry)


def test_an_ephemeral_entry_is_never_written() -> None:
    """3.2: an ephemeral message is seen in one run and not stored."""
    with pytest.raises(EntryEncodeError, match="never stored"):
        encode_entry(ephemeral("today is Friday"))
    with pytest.raises(EntryEncodeError, match="never stored"):
        encode_entry(ephemeral(decode_entry(message_line()).model_copy()))  # type: ignore[arg-type]


@pytest.mark.parametrize("value", [True, "yes", None])
@pytest.mark.parametrize("time", ["2026-11-29T12:00:00Z", None])
def test_what_is_stored_is_not_ephemeral(value: Any, time: str | None) -> None:
    line = line_of(ephemeral=value, created_at=time, message={"role": "user"}, x=1)
    entry = decode_entry(line)
    assert isinstance(entry, MessageEntry)
    assert (entry.ephemeral, entry.model_extra, encode_entry(entry)) == (False, {"x": 1}, line)


def test_many_lines_are_read_at_once_and_the_error_counts_them() -> None:
    lines = [encode_entry(text(str(number))) for number in range(5)]
    assert decode_entries(lines) == [decode_entry(line) for line in lines]
    with pytest.raises(EntryDecodeError) as failure:
        decode_entries([*lines, b"{}", lines[0]])
    assert (failure.value.index, gc.isenabled()) == (5, True)


def test_reading_leaves_a_collector_that_was_off_off() -> None:
    gc.disable()
    try:
        decode_entries([line_of()])
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_a_session_record_is_the_first_line_of_a_log() -> None:
    """1.1, 2.4: the record is written once, as a `session_init`."""
    record = SessionRecord(id="user-42", created_at=NOON)
    line = (
        b'{"type":"session_init","id":"user-42","created_at":"2026-11-29T12:00:00.000000001+05:30"}'
    )
    assert encode_record(record) == line
    assert decode_record(line) == record
    fork = SessionRecord(id="b", parent_id="user-42", created_at=NOON)
    assert decode_record(encode_record(fork)) == fork


def test_a_byte_order_mark_before_the_record_is_accepted() -> None:
    assert decode_record(b'\xef\xbb\xbf{"type":"session_init","id":"a"}\r').id == "a"


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"null",
        b"{}",
        b'{"type":"message","id":"a"}',
        b'{"id":"a"}',
        b'{"type":"session_init"}',
        b'{"type":"session_init","id":null}',
        b'{"type":"session_init","id":5}',
        b'{"type":"session_init","id":"a","created_at":"now"}',
        b'{"type":"session_init","id":"a"',
    ],
)
def test_what_is_no_session_record_is_refused(line: bytes) -> None:
    with pytest.raises(EntryDecodeError):
        decode_record(line)


def test_a_record_that_would_not_load_again_is_not_written() -> None:
    with pytest.raises(EntryEncodeError):
        encode_record(SessionRecord.model_construct(id=5))


@pytest.mark.parametrize(
    "rest",
    [
        '"message":{"role":"user","content":[{"type":"text","text":"NaN"}]}',
        '"message":{"role":"user","n":1e400}',
        '"message":{"role":"user"},"x":[-1e999]',
        '"message":{"role":"user"},"x":NaN',
        '"message":{"role":"user"},"x":-Infinity',
        '"message":{"usage":{"cost":{"input":1e400}}}',
        '"message":{"usage":{"cost":{"input":123456789012345678901234567890}}}',
        '"message":{"usage":{"input":-0,"output":1.0}}',
        '"message":{"usage":{"input":9223372036854775808}}',
        '"message":{"content":[{"type":"tool_call","id":"c","arguments":{"n":[1e400]}}]}',
        '"message":{"content":[{"type":"tool_call","id":"c","arguments":{"n":[1e40,{}]}}]}',
        '"message":{"content":[{"type":"tool_call","id":"c","id":"d"}]}',
        '"message":{"role":"user"},"id":"b","message":{"role":"assistant"}',
        '"message":{"role":"user"},"type":"unknown"',
        '"message":{"role":"user"},"x":' + "[" * 300 + "]" * 300,
        '"message":{"role":"user"},"x":' + "9" * 5_000,
        '"message":{"role":"user"},"x":01',
        '"message":{"role":"user"},"x":"\x01"',
        '"message":{"role":"user"},"x":"\\u0000"',
        '"message":{"role":"user"},',
        '"message":{"role":"user"}} {',
    ],
)
def test_both_parsers_judge_a_line_alike(rest: str) -> None:
    """The quick parser leaves lines with a lone surrogate to the other one."""
    header = '{"type":"message","id":"a","created_at":"2026-11-29T12:00:00Z",'
    quickly, thoroughly = header + rest + "}", header + r'"lone":"\ud800",' + rest + "}"
    assert judged(quickly) == judged(thoroughly)


def judged(line: str) -> tuple[object, ...]:
    try:
        entry = decode_entry(line)
    except EntryDecodeError:
        return ()
    assert entry.source_line == line.strip().encode()
    outline = entry.outline if isinstance(entry, MessageEntry) else None
    return type(entry), entry.id, entry.parent_id, entry.type, outline
