"""What a pydantic-ai model is sent of a conversation."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from pydantic_ai import messages as ai

from perdure.messages import (
    FileBlock,
    ImageBlock,
    Message,
    TextBlock,
    ToolCallBlock,
)
from perdure.models.protocol import ModelRequest
from perdure.models.pydantic_ai_files import Reader
from perdure.models.pydantic_ai_requests import model_messages
from perdure.models.valid_text import valid_text
from tests.agent.conversations import plain, result, user


def sent(*messages: Message, instructions: str = "", system: str = "anthropic") -> list[Any]:
    """The requests and responses as plain data, without the times at which they were made."""
    request = ModelRequest(messages, instructions)
    return [plain(message) for message in model_messages(request, Reader(system))]


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
    messages = model_messages(request, Reader("anthropic"))

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
