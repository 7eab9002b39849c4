"""Our messages as pydantic-ai's.

What a provider needs back from an earlier answer of its own travels in `signature` and
`provider_data` (see `pydantic_ai_responses`). Whether the provider that reads it now can be given
it is for pydantic-ai to judge, by the provider's name on the message; what it does not judge (IDs
of calls, files, empty thoughts) is adapted here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from pydantic_ai import messages as ai
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.native_tools import AbstractNativeTool
from pydantic_ai.tools import ToolDefinition

from perdure.messages import (
    ContentBlock,
    FileBlock,
    ImageBlock,
    Message,
    Role,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
)
from perdure.models.call_ids import CallIds
from perdure.models.protocol import ModelRequest
from perdure.models.pydantic_ai_files import Reader, binary, user_content
from perdure.models.pydantic_ai_native import native_part, native_return
from perdure.models.valid_text import valid_json, valid_text

THOUGHT_SIGNATURE: Final = "thought_signature"
"""Where pydantic-ai keeps Gemini's signature of a text or a tool call; our blocks have a field for
it.
"""


def model_messages(request: ModelRequest, reader: Reader) -> list[ai.ModelMessage]:
    """The conversation as pydantic-ai takes it: user messages and results that follow each other
    are one request, messages without content are left out.

    The same messages always come out the same, whatever follows them: what a provider has cached of
    a conversation stays its beginning.
    """
    converted: list[ai.ModelMessage] = []
    ids = CallIds(reader.system, reader.api)
    tool_names: dict[str, str] = {}
    for message in request.messages:
        if message.role == Role.ASSISTANT:
            tool_names.update((block.id, block.name) for block in message.tool_calls)
            parts = _response_parts(message, ids.of_calls(message), reader)
            if parts:
                converted.append(_response(message, parts))
        else:
            request_parts = _request_parts(message, ids, tool_names, reader)
            last = converted[-1] if converted else None
            if isinstance(last, ai.ModelRequest):
                last.parts = [*last.parts, *request_parts]
            elif request_parts:
                converted.append(ai.ModelRequest(parts=request_parts))
    for sent in reversed(converted):
        if isinstance(sent, ai.ModelRequest):
            sent.instructions = valid_text(request.instructions) or None
            break
    return converted


def request_parameters(
    request: ModelRequest, native_tools: Sequence[AbstractNativeTool] = ()
) -> ModelRequestParameters:
    """The tools and the instructions of a request."""
    instructions = valid_text(request.instructions)
    return ModelRequestParameters(
        function_tools=[
            ToolDefinition(
                name=tool.name,
                description=valid_text(tool.description) or None,
                parameters_json_schema=valid_json(tool.parameters),
            )
            for tool in request.tools
        ],
        native_tools=list(native_tools),
        instruction_parts=[ai.InstructionPart(content=instructions)] if instructions else [],
    )


def _request_parts(
    message: Message, ids: CallIds, tool_names: Mapping[str, str], reader: Reader
) -> list[ai.ModelRequestPart]:
    content = list(user_content(message.content, reader))
    if message.role == Role.TOOL_RESULT:
        name = message.tool_name or tool_names.get(message.tool_call_id, "")
        return [
            ai.ToolReturnPart(
                tool_name=valid_text(name),
                content=_tool_content(content, is_error=message.is_error),
                tool_call_id=valid_text(ids.of_result(message.tool_call_id)),
                outcome="failed" if message.is_error else "success",
            )
        ]
    if not content:
        return []
    only = content[0] if len(content) == 1 else None
    return [ai.UserPromptPart(content=only if isinstance(only, str) else content)]


def _tool_content(content: Sequence[ai.UserContent], *, is_error: bool) -> Any:
    merged: list[ai.UserContent] = []
    for item in content:
        if isinstance(item, str) and merged and isinstance(merged[-1], str):
            merged[-1] += f"\n{item}"
        else:
            merged.append(item)
    if not merged:
        return "error" if is_error else ""  # an error that says nothing is refused
    return merged[0] if len(merged) == 1 else merged


def _response(message: Message, parts: Sequence[ai.ModelResponsePart]) -> ai.ModelResponse:
    data = _provider_data(message)
    return ai.ModelResponse(
        parts=parts,
        provider_name=message.provider or None,
        model_name=message.model or None,
        provider_url=data.get("url"),
        canonical_system=data.get("canonical_system"),
        provider_response_id=data.get("response_id"),
        provider_details=data.get("details"),
    )


def _response_parts(
    message: Message, call_ids: Sequence[str], reader: Reader
) -> list[ai.ModelResponsePart]:
    provider = message.provider or None
    left = iter(call_ids)
    parts: list[ai.ModelResponsePart | None] = []
    returns: list[tuple[int, ai.NativeToolReturnPart]] = []
    for block in message.content:
        data = _provider_data(block)
        if isinstance(block, ToolCallBlock) and block.server:
            parts.append(native_part(block, data, provider))
            returned = native_return(block, data, provider)
            returns += [returned] if returned is not None else []
        else:
            call_id = next(left) if isinstance(block, ToolCallBlock) else ""
            parts.append(_response_part(block, data, provider, call_id, reader))
    for place, part in sorted(returns, key=lambda returned: returned[0]):
        parts.insert(place, part)
    return [part for part in parts if part is not None]


def _response_part(
    block: ContentBlock, data: Mapping[str, Any], provider: str | None, call_id: str, reader: Reader
) -> ai.ModelResponsePart | None:
    details = dict(data.get("details") or {})
    if isinstance(block, ThinkingBlock):
        return _thinking_part(block, data, provider, reader)
    if isinstance(block, (TextBlock, ToolCallBlock)) and block.signature and _signs_parts(provider):
        details[THOUGHT_SIGNATURE] = block.signature
    if isinstance(block, TextBlock):
        blank = not block.text.strip() if reader.refuses_blank_text else not block.text
        if blank and (reader.refuses_blank_text or not (data or details)):
            return None
        return ai.TextPart(
            content=valid_text(block.text),
            id=data.get("id"),
            provider_name=provider,
            provider_details=details or None,
        )
    if isinstance(block, ToolCallBlock):
        return ai.ToolCallPart(
            tool_name=valid_text(block.name),
            args=valid_json(dict(block.arguments)),
            tool_call_id=valid_text(call_id),
            id=data.get("id"),
            provider_name=provider,
            provider_details=details or None,
        )
    if isinstance(block, (ImageBlock, FileBlock)) and block.data:
        content = binary(block.data, block.mime_type or "image/png", "file")
        if isinstance(content, ai.BinaryContent):
            return ai.FilePart(
                content=content,
                id=data.get("id"),
                provider_name=provider,
                provider_details=details or None,
            )
    return None


def _thinking_part(
    block: ThinkingBlock, data: Mapping[str, Any], provider: str | None, reader: Reader
) -> ai.ThinkingPart | None:
    if not block.thinking and not (block.signature or data):
        return None
    if not block.thinking and provider != reader.system and reader.api.startswith("openai-"):
        return None  # it would be shown the tags around nothing
    return ai.ThinkingPart(
        content=valid_text(block.thinking),
        id=data.get("id"),
        signature=block.signature or None,
        provider_name=provider,
        provider_details=data.get("details"),
    )


def _signs_parts(provider: str | None) -> bool:
    return provider is not None and provider.startswith("google")


def _provider_data(holder: Message | ContentBlock) -> dict[str, Any]:
    data = (holder.model_extra or {}).get("provider_data")
    return dict(data) if isinstance(data, Mapping) else {}
