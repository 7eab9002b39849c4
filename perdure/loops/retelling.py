"""A conversation as text, for a command that cannot be given its messages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from perdure.codec import dumps_json
from perdure.messages import Message, TextBlock, ToolCallBlock

MAX_RESULT_CHARACTERS: Final = 10_000
"""How much of a tool's result is retold, in characters."""


def retold(messages: Iterable[Message]) -> str:
    """The messages as one text, speaker by speaker. Thoughts are left out, and so is what is not
    text.
    """
    return "\n\n".join(part for message in messages for part in _parts(message))


def _parts(message: Message) -> Iterator[str]:
    speaker = {"user": "User", "assistant": "Assistant"}.get(message.role)
    if message.role == "tool_result":
        outcome = "Error" if message.is_error else "Result"
        yield f"[{outcome} of {message.tool_name or 'a tool'}]\n{_short(message.text)}"
        return
    for block in message.content:
        match block:
            case TextBlock():
                yield f"{speaker}: {block.text}"
            case ToolCallBlock():
                arguments = dumps_json(block.arguments).decode("utf-8", "replace")
                yield f"[{speaker} called {block.name} with {arguments}]"
            case _ if block.type != "thinking":
                yield f"[{speaker} sent content of type {block.type}]"


def _short(text: str) -> str:
    if len(text) <= MAX_RESULT_CHARACTERS:
        return text
    return (
        f"{text[:MAX_RESULT_CHARACTERS]}\n[{len(text) - MAX_RESULT_CHARACTERS:,} more characters]"
    )
