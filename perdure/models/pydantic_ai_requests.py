"""Our messages as pydantic-ai's.

The log keeps lone surrogates as it got them; providers take valid UTF-8 only, so here each becomes
U+FFFD. What a provider needs back from an earlier answer of its own travels in `signature` and
`provider_data` (see `pydantic_ai_responses`); whether another provider can be given it is for
pydantic-ai to judge, by the provider's name on the message.
"""

from __future__ import annotations

import base64
import json
import mimetypes
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, cast, get_args

from pydantic_ai import messages as ai
from pydantic_ai.models import ModelRequestParameters
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
from perdure.models.protocol import ModelRequest

THOUGHT_SIGNATURE: Final = "thought_signature"
"""Where pydantic-ai keeps Gemini's signature of a text or a tool call; our blocks have a field for
it.
"""

_FILE_STORES: Final = frozenset(get_args(ai.UploadedFileProviderName))


def model_messages(request: ModelRequest, system: str) -> list[ai.ModelMessage]:
    """The conversation as pydantic-ai takes it: user messages and results that follow each other
    are one request, messages without content are left out. `system` is pydantic-ai's name for the
    provider that will read it.
    """
    converted: list[ai.ModelMessage] = []
    tool_names: dict[str, str] = {}
    for message in request.messages:
        if message.role == Role.ASSISTANT:
            tool_names.update((block.id, block.name) for block in message.tool_calls)
            parts = _response_parts(message)
            if parts:
                converted.append(_response(message, parts))
        else:
            request_parts = _request_parts(message, tool_names, system)
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


def request_parameters(request: ModelRequest) -> ModelRequestParameters:
    """The tools and the instructions of a request."""
    instructions = valid_text(request.instructions)
    return ModelRequestParameters(
        function_tools=[
            ToolDefinition(
                name=tool.name,
                description=valid_text(tool.description) or None,
                parameters_json_schema=_valid_json(tool.parameters),
            )
            for tool in request.tools
        ],
        instruction_parts=[ai.InstructionPart(content=instructions)] if instructions else [],
    )


def valid_text(text: str) -> str:
    """The text with U+FFFD for each lone surrogate."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def _valid_json(value: Any) -> Any:
    text = json.dumps(value, ensure_ascii=False)
    valid = valid_text(text)
    return value if valid is text else json.loads(valid)


def _request_parts(
    message: Message, tool_names: Mapping[str, str], system: str
) -> list[ai.ModelRequestPart]:
    content = list(_user_content(message.content, system))
    if message.role == Role.TOOL_RESULT:
        name = message.tool_name or tool_names.get(message.tool_call_id, "")
        return [
            ai.ToolReturnPart(
                tool_name=valid_text(name),
                content=_tool_content(content),
                tool_call_id=valid_text(message.tool_call_id),
                outcome="failed" if message.is_error else "success",
            )
        ]
    if not content:
        return []
    only = content[0] if len(content) == 1 else None
    return [ai.UserPromptPart(content=only if isinstance(only, str) else content)]


def _user_content(blocks: Iterable[ContentBlock], system: str) -> Iterable[ai.UserContent]:
    for block in blocks:
        if isinstance(block, TextBlock) and block.text:
            yield valid_text(block.text)
        elif isinstance(block, ImageBlock):
            yield _binary(block.data, block.mime_type or "image/png", "image")
        elif isinstance(block, FileBlock):
            file = _file(block, system)
            if file is not None:
                yield file


def _file(block: FileBlock, system: str) -> ai.UserContent | None:
    named = block.filename or block.url
    mime_type = block.mime_type or mimetypes.guess_type(named)[0] or ""
    if block.data:
        return _binary(block.data, mime_type or "application/octet-stream", "file")
    if block.url:
        return _linked(valid_text(block.url), mime_type)
    if not block.file_id:
        return None
    if system not in _FILE_STORES:
        return f"[file {valid_text(block.file_id)}, kept by another provider]"
    provider = cast(ai.UploadedFileProviderName, system)
    return ai.UploadedFile(
        file_id=valid_text(block.file_id), provider_name=provider, media_type=mime_type or None
    )


def _linked(url: str, mime_type: str) -> ai.UserContent:
    if not mime_type:
        return url  # nothing says what it is, so only a reader of links can make something of it
    match mime_type.partition("/")[0]:
        case "image":
            return ai.ImageUrl(url=url, media_type=mime_type)
        case "audio":
            return ai.AudioUrl(url=url, media_type=mime_type)
        case "video":
            return ai.VideoUrl(url=url, media_type=mime_type)
        case _:
            return ai.DocumentUrl(url=url, media_type=mime_type)


def _binary(data: str, mime_type: str, kind: str) -> ai.UserContent:
    try:
        decoded = base64.b64decode(data)
    except ValueError:
        decoded = b""
    if not decoded:
        return f"[{kind} whose data cannot be read]"
    return ai.BinaryContent.narrow_type(ai.BinaryContent(data=decoded, media_type=mime_type))


def _tool_content(content: Sequence[ai.UserContent]) -> Any:
    merged: list[ai.UserContent] = []
    for item in content:
        if isinstance(item, str) and merged and isinstance(merged[-1], str):
            merged[-1] += f"\n{item}"
        else:
            merged.append(item)
    if not merged:
        return ""
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
    )


def _response_parts(message: Message) -> list[ai.ModelResponsePart]:
    converted = (_response_part(block, message.provider or None) for block in message.content)
    return [part for part in converted if part is not None]


def _response_part(block: ContentBlock, provider: str | None) -> ai.ModelResponsePart | None:
    data = _provider_data(block)
    details = dict(data.get("details") or {})
    if isinstance(block, ThinkingBlock):
        if not (block.thinking or block.signature or data):
            return None
        return ai.ThinkingPart(
            content=valid_text(block.thinking),
            id=data.get("id"),
            signature=block.signature or None,
            provider_name=provider,
            provider_details=details or None,
        )
    if isinstance(block, (TextBlock, ToolCallBlock)) and block.signature and _signs_parts(provider):
        details[THOUGHT_SIGNATURE] = block.signature
    if isinstance(block, TextBlock):
        if not (block.text or data or details):
            return None
        return ai.TextPart(
            content=valid_text(block.text),
            id=data.get("id"),
            provider_name=provider,
            provider_details=details or None,
        )
    if isinstance(block, ToolCallBlock) and not block.server:
        return ai.ToolCallPart(
            tool_name=valid_text(block.name),
            args=_valid_json(dict(block.arguments)),
            tool_call_id=valid_text(block.id),
            id=data.get("id"),
            provider_name=provider,
            provider_details=details or None,
        )
    if isinstance(block, ImageBlock):
        image = _binary(block.data, block.mime_type or "image/png", "image")
        return ai.FilePart(content=image) if isinstance(image, ai.BinaryContent) else None
    return None


def _signs_parts(provider: str | None) -> bool:
    return provider is not None and provider.startswith("google")


def _provider_data(holder: Message | ContentBlock) -> dict[str, Any]:
    data = (holder.model_extra or {}).get("provider_data")
    return dict(data) if isinstance(data, Mapping) else {}
