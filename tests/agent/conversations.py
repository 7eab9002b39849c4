"""Messages, made short, and what becomes of them for pydantic-ai, as plain data."""

from __future__ import annotations

from typing import Any

from pydantic_ai import messages as ai

from perdure.messages import (
    ContentBlock,
    Message,
    TextBlock,
)


def user(*content: ContentBlock | str) -> Message:
    blocks = (TextBlock(text=item) if isinstance(item, str) else item for item in content)
    return Message(role="user", content=tuple(blocks))


def result(call_id: str, *content: ContentBlock, is_error: bool = False) -> Message:
    return Message(role="tool_result", content=content, tool_call_id=call_id, is_error=is_error)


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
