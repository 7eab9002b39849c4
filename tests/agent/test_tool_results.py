"""What a tool's result looks like to a model."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum, StrEnum
from typing import Any

import pytest
from pydantic import BaseModel, Field

from perdure.entries import MessageEntry, file, image, text
from perdure.errors import ToolResultError
from perdure.messages import FileBlock, ImageBlock, Message, TextBlock, ToolCallBlock
from perdure.tool_results import content_blocks


class Colour(StrEnum):
    RED = "red"


class Size(Enum):
    SMALL = 1


@dataclass
class Point:
    x: int
    y: int


class Order(BaseModel):
    number: str = Field(serialization_alias="orderNumber")
    due: datetime
    size: Size = Size.SMALL


@pytest.mark.parametrize(
    "result, shown",
    [
        ("It ships.", "It ships."),
        ("", ""),
        (Colour.RED, "red"),
        ("lone \ud800 surrogate", "lone \ud800 surrogate"),
        (True, "true"),
        (3, "3"),
        (1.5, "1.5"),
        (10**30, "1" + "0" * 30),
        (float("nan"), "NaN"),
        ([], "[]"),
        ({}, "{}"),
        (["a", 1, None], '["a",1,null]'),
        (("a", 1), '["a",1]'),
        ({"größe": "39½", "in": ["Zürich"]}, '{"größe":"39½","in":["Zürich"]}'),
        ({"lone": "\ud800"}, '{"lone":"\ud800"}'),
        ({1: b"\x00\x01"}, '{"1":"AAE="}'),
        (Point(1, 2), '{"x":1,"y":2}'),
        ([Point(1, 2)], '[{"x":1,"y":2}]'),
        (
            Order(number="7", due=datetime(2026, 11, 29, tzinfo=UTC)),
            '{"orderNumber":"7","due":"2026-11-29T00:00:00Z","size":1}',
        ),
        ({"when": datetime(2026, 11, 29, tzinfo=UTC)}, '{"when":"2026-11-29T00:00:00Z"}'),
    ],
)
def test_values_become_one_block_of_text(result: Any, shown: str) -> None:
    assert content_blocks(result) == (TextBlock(text=shown),)


def test_nothing_is_no_content() -> None:
    assert content_blocks(None) == ()


IMAGE = ImageBlock(data="aGk=", mime_type="image/png")
FILE = FileBlock(data="aGk=", mime_type="text/plain", filename="hi.txt")


@pytest.mark.parametrize(
    "result, blocks",
    [
        (IMAGE, (IMAGE,)),
        (FILE, (FILE,)),
        ([IMAGE, FILE], (IMAGE, FILE)),
        (
            ("The chart:", IMAGE, {"n": 1}),
            (TextBlock(text="The chart:"), IMAGE, TextBlock(text='{"n":1}')),
        ),
        (image(b"hi", "image/png"), (IMAGE,)),
        (
            [text("Here:"), file(data=b"hi", mime_type="text/plain", filename="hi.txt")],
            (TextBlock(text="Here:"), FILE),
        ),
    ],
)
def test_content_passes_through(result: Any, blocks: tuple[Any, ...]) -> None:
    assert content_blocks(result) == blocks


def circle() -> list[Any]:
    items: list[Any] = []
    items.append(items)
    return items


def nested(depth: int) -> list[Any]:
    items: list[Any] = []
    for _ in range(depth):
        items = [items]
    return items


@pytest.mark.parametrize(
    "result, reason",
    [
        (b"\x89PNG", "the tool returned bytes, which a model cannot read"),
        (bytearray(b"x"), "the tool returned bytes, which a model cannot read"),
        (
            object(),
            "the tool returned object, which cannot be written as JSON (Unable to serialize",
        ),
        ([{"a": object()}], "the tool returned list, which cannot be written as JSON"),
        (circle(), "(Circular reference detected"),
        (nested(100_000), "the tool returned list, which cannot be written as JSON"),
        ([IMAGE, b"\x89PNG"], "the tool returned bytes, which a model cannot read"),
    ],
)
def test_what_a_model_cannot_be_shown_is_a_clear_error(result: Any, reason: str) -> None:
    with pytest.raises(ToolResultError) as raised:
        content_blocks(result)

    assert reason in str(raised.value)


def test_a_message_of_a_model_is_no_result() -> None:
    """A call inside of a result would be refused by every provider."""
    asked = Message(role="assistant", content=[ToolCallBlock(id="c1", name="add")])
    with pytest.raises(ToolResultError, match="a block of type 'tool_call'"):
        content_blocks([MessageEntry(message=asked)])
