"""What a pydantic-ai model is sent, and what comes back of its answers."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic_ai import messages as ai
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, DeltaToolCalls, FunctionModel
from pydantic_ai.models.test import TestModel as AnyAnswerModel
from pydantic_ai.usage import RequestUsage

from perdure.codec import decode_entry, encode_entry
from perdure.entries import MessageEntry
from perdure.errors import ModelError
from perdure.messages import (
    ContentBlock,
    FileBlock,
    ImageBlock,
    Message,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolOutput,
)
from perdure.models.protocol import Delta, ModelRequest, ToolSpec
from perdure.models.pydantic_ai import PydanticAIModel
from perdure.models.pydantic_ai_requests import model_messages, valid_text
from perdure.models.pydantic_ai_responses import assistant_message
from perdure.timestamps import Timestamp
from perdure.usage import Usage

NOON = datetime(2026, 11, 29, 12, tzinfo=UTC)
SPEC = ToolSpec("find_order", "Look an order up.", {"type": "object", "properties": {}})


def user(*content: ContentBlock | str) -> Message:
    blocks = (TextBlock(text=item) if isinstance(item, str) else item for item in content)
    return Message(role="user", content=tuple(blocks))


def result(call_id: str, *content: ContentBlock, is_error: bool = False) -> Message:
    return Message(role="tool_result", content=content, tool_call_id=call_id, is_error=is_error)


def sent(*messages: Message, instructions: str = "", system: str = "anthropic") -> list[Any]:
    """The requests and responses as plain data, without the times at which they were made."""
    request = ModelRequest(messages, instructions)
    return [plain(message) for message in model_messages(request, system)]


def plain(message: ai.ModelMessage) -> Any:
    parts = [plain_part(part) for part in message.parts]
    return (message.kind, *parts)


def plain_part(part: Any) -> Any:
    match part:
        case ai.UserPromptPart():
            return ("user", part.content)
        case ai.ToolReturnPart():
            return (part.outcome, part.tool_name, part.tool_call_id, part.content)
        case ai.TextPart():
            return ("text", part.content)
        case ai.ToolCallPart():
            return ("call", part.tool_name, part.tool_call_id, part.args)
        case ai.ThinkingPart():
            return ("thinking", part.content, part.signature, part.provider_name)
        case _:
            return part


CALLS = Message(
    role="assistant",
    content=(
        TextBlock(text="Looking."),
        ToolCallBlock(id="1", name="find_order", arguments={"order_id": "7"}),
        ToolCallBlock(id="2", name="now"),
    ),
)


def test_a_conversation_alternates_between_requests_and_responses() -> None:
    assert sent(
        user("Where is it?"),
        user("The shoe."),
        CALLS,
        result("1", TextBlock(text="on its way")),
        result("2", TextBlock(text="no clock"), is_error=True),
        user("Thanks."),
    ) == [
        ("request", ("user", "Where is it?"), ("user", "The shoe.")),
        (
            "response",
            ("text", "Looking."),
            ("call", "find_order", "1", {"order_id": "7"}),
            ("call", "now", "2", {}),
        ),
        (
            "request",
            ("success", "find_order", "1", "on its way"),
            ("failed", "now", "2", "no clock"),
            ("user", "Thanks."),
        ),
    ]


def test_what_is_empty_is_not_sent_except_a_result() -> None:
    nothing = Message(role="assistant")

    assert sent(user(), user("a"), nothing, user(FileBlock()), user("b"), CALLS, result("1")) == [
        ("request", ("user", "a"), ("user", "b")),
        (
            "response",
            ("text", "Looking."),
            ("call", "find_order", "1", {"order_id": "7"}),
            ("call", "now", "2", {}),
        ),
        ("request", ("success", "find_order", "1", "")),
    ]


def test_instructions_go_with_the_last_request() -> None:
    request = ModelRequest([user("a"), CALLS, result("1"), CALLS], instructions="Help.")
    messages = model_messages(request, "anthropic")

    assert [getattr(message, "instructions", None) for message in messages] == [
        None,
        None,
        "Help.",
        None,
    ]


def test_images_and_files_are_sent_as_what_they_are() -> None:
    message = user(
        "See:",
        ImageBlock(data="aGk=", mime_type="image/gif"),
        FileBlock(data="aGk=", filename="hi.pdf"),
        FileBlock(url="https://example.com/a.png"),
        FileBlock(url="https://example.com/a?x=1", mime_type="text/html"),
        FileBlock(url="https://example.com/a", mime_type="audio/mpeg"),
        FileBlock(url="https://example.com/a", mime_type="video/mp4"),
        FileBlock(url="https://example.com/what"),
        FileBlock(file_id="file_abc", mime_type="text/plain"),
        ImageBlock(data="aGk", mime_type="image/gif"),
    )

    assert sent(message) == [
        (
            "request",
            (
                "user",
                [
                    "See:",
                    ai.BinaryImage(b"hi", media_type="image/gif"),
                    ai.BinaryContent(b"hi", media_type="application/pdf"),
                    ai.ImageUrl("https://example.com/a.png", media_type="image/png"),
                    ai.DocumentUrl("https://example.com/a?x=1", media_type="text/html"),
                    ai.AudioUrl("https://example.com/a", media_type="audio/mpeg"),
                    ai.VideoUrl("https://example.com/a", media_type="video/mp4"),
                    "https://example.com/what",
                    ai.UploadedFile("file_abc", "anthropic", media_type="text/plain"),
                    "[image whose data cannot be read]",
                ],
            ),
        )
    ]
    assert sent(user(FileBlock(file_id="file_abc")), system="groq") == [
        ("request", ("user", "[file file_abc, kept by another provider]"))
    ]


def test_a_tool_result_is_one_text_or_texts_between_files() -> None:
    picture = ImageBlock(data="aGk=", mime_type="image/png")
    mixed = result("2", TextBlock(text="a"), TextBlock(text="b"), picture, TextBlock(text="c"))

    assert sent(CALLS, result("1", TextBlock(text="a"), TextBlock(text="b")), mixed)[1] == (
        "request",
        ("success", "find_order", "1", "a\nb"),
        ("success", "now", "2", ["a\nb", ai.BinaryImage(b"hi", media_type="image/png"), "c"]),
    )


def test_lone_surrogates_are_replaced_on_the_way_out_only() -> None:
    call = ToolCallBlock(id="1", name="find", arguments={"\ud800": ["\udfff", {"a": "😀\ud83d"}]})
    message = Message(role="assistant", content=(TextBlock(text="a\ud800b"), call))

    assert sent(user("\ud800"), message, result("1", TextBlock(text="\udc00"))) == [
        ("request", ("user", "\ufffd")),
        (
            "response",
            ("text", "a\ufffdb"),
            ("call", "find", "1", {"\ufffd": ["\ufffd", {"a": "😀\ufffd"}]}),
        ),
        ("request", ("success", "find", "1", "\ufffd")),
    ]
    assert message.text == "a\ud800b"


@given(st.text(alphabet=st.characters(exclude_categories=[])))
def test_valid_text_is_valid_and_changes_only_lone_surrogates(text: str) -> None:
    valid = valid_text(text)

    assert valid.encode().decode() == valid
    assert len(valid) == len(text)
    assert all(
        a == b or ("\ud800" <= a <= "\udfff" and b == "\ufffd")
        for a, b in zip(text, valid, strict=True)
    )


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
        model_name="claude-sonnet-4-5",
        provider_name="anthropic",
        provider_response_id="msg_1",
        provider_url="https://api.anthropic.com",
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
        model="claude-sonnet-4-5",
        usage=Usage(input=10, output=20, cache_read=60, cache_write=30, reasoning=5),
        stop_reason="tool_use",
        timestamp=Timestamp.of(NOON),
        provider_data={"response_id": "msg_1", "url": "https://api.anthropic.com"},
    )


def test_a_call_that_the_provider_ran_is_kept_and_not_ours_to_run() -> None:
    message = answer(
        ai.NativeToolCallPart("web_search", {"query": "x"}, "s1", provider_name="anthropic"),
        ai.NativeToolReturnPart("web_search", [{"title": "X"}], "s1", provider_name="anthropic"),
        ai.TextPart("Found it."),
    )

    assert message.content == (
        ToolCallBlock(
            id="s1",
            name="web_search",
            arguments={"query": "x"},
            server=True,
            output=ToolOutput(raw=[{"title": "X"}]),
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
    ),
)


@given(
    parts=st.lists(PARTS, min_size=1),
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
        timestamp=NOON,
    )
    message = assistant_message(response, api="google-generative-ai", label="google:gemini")
    stored = decode_entry(encode_entry(MessageEntry(id="e1", message=message)))
    assert isinstance(stored, MessageEntry)
    returned = [result(f"r{n}", *map(text_block, texts)) for n, texts in enumerate(results)]

    again, *requests = model_messages(ModelRequest([stored.message, *returned]), "google")

    assert isinstance(again, ai.ModelResponse)
    assert again.parts == parts
    assert (again.provider_name, again.model_name, again.canonical_system) == (
        "google",
        "gemini",
        "google",
    )
    assert again.provider_response_id == response_id
    assert [part.content for request in requests for part in request.parts] == [  # type: ignore[union-attr]
        "".join(texts) for texts in results
    ]


def text_block(text: str) -> TextBlock:
    return TextBlock(text=text)


async def test_a_model_is_asked_with_tools_and_instructions() -> None:
    seen: list[Any] = []

    def reply(messages: list[ai.ModelMessage], info: AgentInfo) -> ai.ModelResponse:
        seen.append(([plain(message) for message in messages], info))
        return ai.ModelResponse(parts=[ai.TextPart("On its way."), ai.ToolCallPart("now", {}, "1")])

    model = PydanticAIModel(FunctionModel(reply, model_name="mine"))
    message = await model.respond(ModelRequest([user("Where is it?")], "Help.", [SPEC]))

    assert model.name == "function:mine"
    assert message.content == (TextBlock(text="On its way."), ToolCallBlock(id="1", name="now"))
    assert (message.provider, message.model, message.stop_reason) == (
        "",
        "mine",
        "tool_use",
    )
    [(messages, info)] = seen
    assert messages == [("request", ("user", "Where is it?"))]
    assert info.instructions == "Help."
    [definition] = info.function_tools
    assert (definition.name, definition.description, definition.parameters_json_schema) == (
        "find_order",
        "Look an order up.",
        {"type": "object", "properties": {}},
    )


async def test_pieces_are_passed_on_while_they_arrive() -> None:
    async def stream(
        messages: list[ai.ModelMessage], info: AgentInfo
    ) -> AsyncIterator[str | DeltaToolCalls]:
        yield "On "
        yield "its way."
        yield {1: DeltaToolCall("now", '{"zone": ', tool_call_id="1")}
        yield {1: DeltaToolCall(json_args='"UTC"}')}

    heard: list[Delta] = []
    model = PydanticAIModel(FunctionModel(stream_function=stream))
    message = await model.respond(ModelRequest([user("Where is it?")]), heard.append)

    assert message.content == (
        TextBlock(text="On its way."),
        ToolCallBlock(id="1", name="now", arguments={"zone": "UTC"}),
    )
    assert heard == [
        Delta("text", "On ", 0),
        Delta("text", "its way.", 0),
        Delta("tool_arguments", '{"zone": ', 1),
        Delta("tool_arguments", '"UTC"}', 1),
    ]


async def test_any_model_of_pydantic_ai_will_do() -> None:
    message = await PydanticAIModel(
        AnyAnswerModel(custom_output_text="Hello.", call_tools=[])
    ).respond(ModelRequest([user("Hi.")], tools=[SPEC]))

    assert (message.text, message.provider, message.model) == ("Hello.", "test", "test")


async def test_an_empty_conversation_is_not_sent() -> None:
    def reply(messages: list[ai.ModelMessage], info: AgentInfo) -> ai.ModelResponse:
        raise AssertionError("nothing was to be sent")

    with pytest.raises(ModelError, match="the conversation is empty") as raised:
        await PydanticAIModel(FunctionModel(reply)).respond(ModelRequest([user()]))

    assert not raised.value.retryable
