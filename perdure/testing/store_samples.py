"""What a store is tried with: entries of every kind, and strange ones as real logs hold them."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from perdure.codec import decode_entry
from perdure.entries import CompactionEntry, CustomEntry, Entry, MessageEntry
from perdure.messages import (
    FileBlock,
    ImageBlock,
    Message,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
)
from perdure.timestamps import Timestamp
from perdure.usage import Usage

STRANGE_IDS = (
    "org/team@example.com",
    "org%2Fteam@example.com",
    "org%252Fteam@example.com",
    "a/b",
    "a\\b",
    "a:b",
    "a b",
    " ",
    ".",
    "..",
    "...",
    "../s",
    ".hidden",
    "-rf",
    "%",
    "100%",
    "'; drop table sessions; --",
    "Straße",
    "strasse",
    "STRASSE",
    "\u00e9",  # one letter in two normal forms
    "e\u0301",
    "数据",
    "👩‍💻",
    "\u2028",
    "x" * 200,
    "x" * 199,
)

_MOMENT = Timestamp.parse("2026-05-06T12:38:09.123456789+05:30")


def _user(entry_id: str, *content: TextBlock | ImageBlock | FileBlock) -> MessageEntry:
    message = Message(role="user", content=content, timestamp=_MOMENT)
    return MessageEntry(id=entry_id, created_at=_MOMENT, message=message)


def _calls(entry_id: str, arguments: dict[str, object]) -> MessageEntry:
    call = ToolCallBlock(id="c1", name="look", arguments=arguments)
    return MessageEntry(id=entry_id, message=Message(role="assistant", content=[call]))


EVERY_KIND: tuple[Entry, ...] = (
    _user("e1", TextBlock(text="hello", signature="sig")),
    _user("e2", TextBlock()),
    _user("e3", ImageBlock(data="aGVsbG8=", mime_type="image/png")),
    _user("e4", FileBlock(data="aGVsbG8=", mime_type="application/pdf", filename="a <b>.pdf")),
    _user("e5", FileBlock(url="https://example.com/a?x=1&y=2"), FileBlock(file_id="file_1")),
    MessageEntry(id="e6", parent_id="e5", meta=True, message=Message(role="user", content="quiet")),
    MessageEntry(
        id="e7",
        parent_id="e6",
        created_at=_MOMENT,
        message=Message(
            role="assistant",
            content=[
                ThinkingBlock(thinking="near because midnight", signature="sig"),
                TextBlock(text="let me see"),
                ToolCallBlock(id="c1", name="calc", arguments={"b": [1, {"a": None}], "a": True}),
            ],
            api="messages",
            provider="anthropic",
            model="claude",
            usage=Usage(input=17195, output=388),
            stop_reason="tool_use",
        ),
    ),
    MessageEntry(
        id="e8",
        parent_id="e7",
        message=Message(
            role="tool_result",
            content="no such thing",
            tool_call_id="c1",
            tool_name="calc",
            is_error=True,
        ),
    ),
    MessageEntry(id="e9", message=Message(role="assistant", stop_reason="error", error="busy")),
    CompactionEntry(
        id="e10", parent_id="e9", summary="so far", first_kept_id="e7", tokens_before=9
    ),
    CompactionEntry(id="e11"),
)

FROM_ELSEWHERE: tuple[Entry, ...] = tuple(
    decode_entry(line)
    for line in (
        '{"type":"hologram","id":"f1","created_at":"2026-05-06T07:08:09Z","depth":{"z":[1,2]}}',
        '{"type":"message","id":"f2","created_at":"2026-05-06T07:08:09.1Z","colour":"red",'
        '"message":{"role":"user","content":[{"type":"smell","strength":3},'
        '{"type":"text","text":"roses","language":"en"}],"mood":"good"}}',
        '{"type":"message","id":"f3","created_at":"0001-01-01T00:00:00Z",'
        '"message":{"role":"oracle","content":null}}',
        '{"Title":"Plan","created_at":"2026-05-06T07:08:09Z","id":"f4","kind":"kind nobody knows",'
        '"parent_id":"f3","tags":["a","b"],"type":"custom","version":1}',
        '{"created_at":"2026-05-06T07:08:09Z","id":"f5","kind":"","type":"custom"}',
    )
)

assert isinstance(FROM_ELSEWHERE[-1], CustomEntry)


def _runs_of_characters() -> Iterator[str]:
    yield "".join(map(chr, range(0x100)))
    yield "\u0085\u2028\u2029\ufeff\ufffe\uffff\U0001f469\u200d\U0001f4bb\U0010ffff"
    yield "\ud800 \udfff \ude00\ud83d"
    yield "\r\n" * 3 + "\\n \\u0000 <script>&amp;</script> %s {} '\" --"
    yield chr(sys.maxunicode) * 3


STRANGE_TEXT: tuple[Entry, ...] = (
    *(_user(f"t{n}", TextBlock(text=text)) for n, text in enumerate(_runs_of_characters())),
    *(_calls(f"a{n}", {text: [text]}) for n, text in enumerate(_runs_of_characters())),
    _user("\u2028 / \x00 ' \ud83d 👩‍💻", TextBlock(text="an ID is any text")),
)

STRANGE_NUMBERS: tuple[Entry, ...] = (
    _calls("n1", {"big": 12345678901234567890, "huge": 2**200, "negative": -(2**63) - 1}),
    _calls("n2", {"odd": 2**53 + 1, "zero": 0, "half": 0.5, "long": 0.1 + 0.2}),
    _calls("n3", {"small": 5e-324, "large": 1.7976931348623157e308, "negative": -0.0}),
    _calls("n4", {"true": True, "one": 1, "text": "1", "none": None, "empty": [{}, [], ""]}),
)
