"""What comes back of a pydantic-ai model's answer, and goes to its provider again."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic_ai import messages as ai
from pydantic_ai.usage import RequestUsage

from perdure.codec import decode_entry, encode_entry
from perdure.entries import MessageEntry
from perdure.errors import ModelError
from perdure.messages import (
    FileBlock,
    ImageBlock,
    Message,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolOutput,
)
from perdure.models.protocol import ModelRequest
from perdure.models.pydantic_ai_files import Reader
from perdure.models.pydantic_ai_requests import model_messages
from perdure.models.pydantic_ai_responses import assistant_message
from perdure.timestamps import Timestamp
from perdure.usage import Usage
from tests.agent.conversations import result

NOON = datetime(2026, 11, 29, 12, tzinfo=UTC)


def answer(*parts: ai.ModelResponsePart, **fields: Any) -> Message:
    fields.setdefault("provider_details", {"finish_reason": "end_turn"})
    response = ai.ModelResponse(parts=parts, timestamp=NOON, **fields)
    return assistant_message(response, api="anthropic-messages", label="anthropic:claude")


def test_an_answer_comes_back_whole() -> None:
    message = answer(
        ai.ThinkingPart("near", signature="sig", provider_name="anthropic"),
        ai.TextPart("Looking."),
        ai.ToolCallPart("find_order", '{"order_id": "7"}', "1"),
        ai.FilePart(ai.BinaryContent(b"hi", media_type="image/png")),
        ai.FilePart(ai.BinaryContent(b"hi", media_type="application/pdf")),
        usage=RequestUsage(
            input_tokens=100,
            cache_read_tokens=60,
            cache_write_tokens=30,
            output_tokens=20,
            output_reasoning_tokens=5,
        ),
        model_name="claude-sonnet-5-5",
        provider_name="anthropic",
        provider_response_id="msg_1",
        provider_url="https://anthropic.example",
        finish_reason="tool_call",
    )

    assert message == Message(
        role="assistant",
        content=(
            ThinkingBlock(thinking="near", signature="sig"),
            TextBlock(text="Looking."),
            ToolCallBlock(id="1", name="find_order", arguments={"order_id": "7"}),
            ImageBlock(data="aGk=", mime_type="image/png"),
            FileBlock(data="aGk=", mime_type="application/pdf"),
        ),
        api="anthropic-messages",
        provider="anthropic",
        model="claude-sonnet-5-5",
        usage=Usage(input=10, output=20, cache_read=60, cache_write=30, reasoning=5),
        stop_reason="tool_use",
        timestamp=Timestamp.of(NOON),
        provider_data={"response_id": "msg_1", "url": "https://anthropic.example"},
    )


def test_a_call_that_the_provider_ran_is_kept_and_not_ours_to_run() -> None:
    message = answer(
        ai.NativeToolCallPart("web_search", {"query": "x"}, "s1", provider_name="anthropic"),
        ai.NativeToolReturnPart("web_search", [{"title": "X"}], "s1", provider_name="anthropic"),
        ai.TextPart("Found it."),
    )

    assert message.content == (
        ToolCallBlock.model_validate(
            {
                "id": "s1",
                "name": "web_search",
                "arguments": {"query": "x"},
                "server": True,
                "server_type": "web_search",
                "output": ToolOutput(raw=[{"title": "X"}]),
                "provider_data": {"part": "call", "return": {"place": 1}},
            }
        ),
        TextBlock(text="Found it."),
    )
    assert (message.tool_calls, message.stop_reason) == ((), "stop")


@pytest.mark.parametrize(
    "arguments, kept",
    [
        (None, {}),
        ("", {}),
        ("{}", {}),
        ('{"a": 12345678901234567890, "b": "\\ud800"}', {"a": 12345678901234567890, "b": "\ud800"}),
        ('{"a": ', {"INVALID_JSON": '{"a": '}),
        ("[1]", {"INVALID_JSON": "[1]"}),
        ('{"a": NaN}', {"INVALID_JSON": '{"a": NaN}'}),
    ],
)
def test_arguments_are_read_or_kept_as_the_model_wrote_them(arguments: Any, kept: Any) -> None:
    assert answer(ai.ToolCallPart("find", arguments, "1")).tool_calls[0].arguments == kept


@pytest.mark.parametrize(
    "fields, stop_reason",
    [
        ({}, "stop"),
        ({"finish_reason": "stop"}, "stop"),
        ({"finish_reason": "length"}, "length"),
        ({"finish_reason": "tool_call"}, "stop"),
    ],
)
def test_the_stop_reason_is_named(fields: dict[str, Any], stop_reason: str) -> None:
    assert answer(ai.TextPart("a"), **fields).stop_reason == stop_reason
    assert answer(ai.TextPart("a"), ai.ToolCallPart("f")).stop_reason == "tool_use"


@pytest.mark.parametrize(
    "fields, reason, retryable",
    [
        ({"finish_reason": "content_filter"}, "content filter stopped the answer", False),
        ({"finish_reason": "error"}, "ended the answer with an error", True),
        ({"state": "incomplete"}, "the answer broke off before its end", True),
        ({"state": "interrupted"}, "the answer broke off before its end", True),
        ({"provider_details": None}, "the answer broke off before its end", True),
        ({"state": "suspended"}, "paused its answer", False),
    ],
)
def test_half_an_answer_is_never_taken_for_a_whole_one(
    fields: dict[str, Any], reason: str, retryable: bool
) -> None:
    with pytest.raises(ModelError, match=reason) as raised:
        answer(ai.TextPart("a"), **fields)

    assert raised.value.retryable is retryable


ANY_TEXT = st.text(min_size=1)
IDS = st.text(alphabet="abc_123", min_size=1)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(-1e6, 1e6) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)
DETAILS = st.none() | st.dictionaries(IDS, JSON, min_size=1)
OWN = {"id": st.none() | IDS, "provider_name": st.just("google"), "provider_details": DETAILS}
PARTS: st.SearchStrategy[Any] = st.one_of(
    st.builds(ai.TextPart, ANY_TEXT, **OWN),
    st.builds(ai.ThinkingPart, ANY_TEXT, signature=st.none() | ANY_TEXT, **OWN),
    st.builds(ai.ToolCallPart, IDS, st.dictionaries(st.text(), JSON), IDS, **OWN),
    st.builds(
        ai.TextPart,
        ANY_TEXT,
        provider_name=st.just("google"),
        provider_details=st.fixed_dictionaries({"thought_signature": ANY_TEXT}),
    ),
    st.builds(
        ai.FilePart,
        st.binary(min_size=1).map(lambda data: ai.BinaryImage(data, media_type="image/png")),
        **OWN,
    ),
)
SERVED = st.lists(
    st.builds(
        lambda call_id, arguments, content, own: (
            ai.NativeToolCallPart("web_search", arguments, call_id, **own),
            ai.NativeToolReturnPart("web_search", content, call_id, provider_name="google"),
        ),
        IDS,
        st.dictionaries(st.text(), JSON),
        JSON.filter(lambda content: content is not None),
        st.fixed_dictionaries(OWN),
    ),
    max_size=3,
    unique_by=lambda pair: pair[0].tool_call_id,
)


@st.composite
def answers(draw: st.DrawFn) -> list[ai.ModelResponsePart]:
    """Parts in any order, in which what a provider ran has its result somewhere after the call."""
    drawn: list[Any] = draw(st.lists(PARTS, min_size=1))
    parts = [
        replace(part, tool_call_id=f"c{number}") if isinstance(part, ai.ToolCallPart) else part
        for number, part in enumerate(drawn)
    ]
    for call, returned in draw(SERVED):
        place = draw(st.integers(0, len(parts)))
        parts.insert(place, call)
        parts.insert(draw(st.integers(place + 1, len(parts))), returned)
    return parts


def untimed(part: ai.ModelResponsePart) -> ai.ModelResponsePart:
    return replace(part, timestamp=NOON) if isinstance(part, ai.NativeToolReturnPart) else part


@given(
    parts=answers(),
    response_id=st.none() | IDS,
    results=st.lists(st.lists(ANY_TEXT, min_size=1, max_size=1) | st.just([]), max_size=3),
)
def test_what_a_provider_said_goes_back_to_it_as_it_was(
    parts: list[ai.ModelResponsePart], response_id: str | None, results: list[list[str]]
) -> None:
    """Through the log and back, with what only the provider understands."""
    response = ai.ModelResponse(
        parts=parts,
        model_name="gemini",
        provider_name="google",
        canonical_system="google",
        provider_response_id=response_id,
        provider_details={"finish_reason": "STOP", "container": "c1"},
        timestamp=NOON,
    )
    message = assistant_message(response, api="google-generative-ai", label="google:gemini")
    stored = decode_entry(encode_entry(MessageEntry(id="e1", message=message)))
    assert isinstance(stored, MessageEntry)
    returned = [result(f"r{n}", *map(text_block, texts)) for n, texts in enumerate(results)]

    again, *requests = model_messages(ModelRequest([stored.message, *returned]), Reader("google"))

    assert isinstance(again, ai.ModelResponse)
    assert [*map(untimed, again.parts)] == [*map(untimed, parts)]
    assert (again.provider_name, again.model_name, again.canonical_system) == (
        "google",
        "gemini",
        "google",
    )
    assert again.provider_response_id == response_id
    assert again.provider_details == {"container": "c1"}
    assert [part.content for request in requests for part in request.parts] == [  # type: ignore[union-attr]
        "".join(texts) for texts in results
    ]


def text_block(text: str) -> TextBlock:
    return TextBlock(text=text)
