"""pydantic-ai's answers as our messages.

What only the provider that answered understands (IDs of its parts, of the response, its own
details) is kept beside the content, in a `provider_data` object on the block or the message: a
field that other programs ignore and hand on.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from pydantic_ai import messages as ai
from pydantic_ai.usage import RequestUsage
from pydantic_core import to_jsonable_python

from perdure.errors import ModelError
from perdure.json_reader import loads_json
from perdure.messages import (
    ContentBlock,
    FileBlock,
    ImageBlock,
    Message,
    Role,
    StopReason,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
)
from perdure.models.protocol import Delta
from perdure.models.pydantic_ai_requests import THOUGHT_SIGNATURE
from perdure.timestamps import Timestamp
from perdure.tool_schema import INVALID_JSON
from perdure.usage import Usage

STATES_ITS_END: Final = frozenset({"anthropic-messages", "openai-completions"})
"""Protocols in which every answer says why it ended, so that one without a reason was cut."""


def assistant_message(response: ai.ModelResponse, *, api: str, label: str) -> Message:
    """The answer as a message.

    Raises `ModelError` when it is not a whole answer: broken off (worth another attempt), stopped
    by a content filter, or waiting to be continued. `label` names the model in that error.
    """
    _check_whole(response, api, label)
    calls = any(isinstance(part, ai.ToolCallPart) for part in response.parts)
    data = {
        "response_id": response.provider_response_id,
        "url": response.provider_url,
        "canonical_system": response.canonical_system,
    }
    return Message.model_validate(
        {
            "role": Role.ASSISTANT,
            "content": tuple(_blocks(response)),
            "api": api,
            "provider": response.provider_name or "",
            "model": response.model_name or "",
            "usage": _usage(response.usage),
            "stop_reason": _stop_reason(response.finish_reason, calls),
            "timestamp": Timestamp.of(response.timestamp),
            **_kept(data),
        }
    )


def delta_of(event: ai.ModelResponseStreamEvent) -> Delta | None:
    """What a stream's event adds to the message, if it adds anything that is shown."""
    if isinstance(event, ai.PartStartEvent):
        part = event.part
        if isinstance(part, ai.TextPart):
            return _delta("text", part.content, event.index)
        if isinstance(part, ai.ThinkingPart):
            return _delta("thinking", part.content, event.index)
        if isinstance(part, ai.ToolCallPart):
            # With the name of the tool, also when there are no arguments yet.
            piece = Delta("tool_arguments", _arguments_text(part.args), event.index)
            return replace(piece, tool_call_id=part.tool_call_id, tool_name=part.tool_name)
    elif isinstance(event, ai.PartDeltaEvent):
        delta = event.delta
        if isinstance(delta, ai.TextPartDelta):
            return _delta("text", delta.content_delta, event.index)
        if isinstance(delta, ai.ThinkingPartDelta):
            return _delta("thinking", delta.content_delta or "", event.index)
        if isinstance(delta, ai.ToolCallPartDelta):
            return _delta("tool_arguments", _arguments_text(delta.args_delta), event.index)
    return None


def _delta(kind: Any, text: str, index: int) -> Delta | None:
    return Delta(kind, text, index) if text else None


def _arguments_text(arguments: str | Mapping[str, Any] | None) -> str:
    if isinstance(arguments, str):
        return arguments
    return ai.ToolCallPart("", dict(arguments)).args_as_json_str() if arguments else ""


def _check_whole(response: ai.ModelResponse, api: str, label: str) -> None:
    if response.finish_reason == "content_filter":
        raise ModelError(f"{label}: the provider's content filter stopped the answer")
    if response.state == "suspended":
        raise ModelError(
            f"{label} paused its answer and waits to be continued, which is not supported"
        )
    if response.state != "complete" or not _has_end(response, api):
        raise ModelError(f"{label}: the answer broke off before its end", retryable=True)
    if response.finish_reason == "error":
        raise ModelError(f"{label}: the provider ended the answer with an error", retryable=True)


def _has_end(response: ai.ModelResponse, api: str) -> bool:
    # A stream that just ends gets a reason made up for it; what the provider said itself is here.
    return api not in STATES_ITS_END or "finish_reason" in (response.provider_details or {})


def _blocks(response: ai.ModelResponse) -> Iterator[ContentBlock]:
    returns = {
        part.tool_call_id: part
        for part in response.parts
        if isinstance(part, ai.NativeToolReturnPart)
    }
    for part in response.parts:
        if isinstance(part, ai.TextPart):
            if part.content or part.provider_details:
                yield TextBlock.model_validate({"text": part.content, **_extras(part)})
        elif isinstance(part, ai.ThinkingPart):
            yield ThinkingBlock.model_validate(
                {
                    "thinking": part.content,
                    "signature": part.signature or "",
                    **_kept({"id": part.id, "details": part.provider_details}),
                }
            )
        elif isinstance(part, ai.ToolCallPart):
            yield ToolCallBlock.model_validate({**_call(part), **_extras(part)})
        elif isinstance(part, ai.NativeToolCallPart):
            yield ToolCallBlock.model_validate(
                {**_call(part), **_served(returns.get(part.tool_call_id))}
            )
        elif isinstance(part, ai.FilePart):
            yield _file(part.content)
        elif isinstance(part, ai.SpeechPart) and part.content:
            yield TextBlock(text=part.content)


def _call(part: ai.ToolCallPart | ai.NativeToolCallPart) -> dict[str, Any]:
    return {"id": part.tool_call_id, "name": part.tool_name, "arguments": _arguments(part.args)}


def _arguments(arguments: str | Mapping[str, Any] | None) -> dict[str, Any]:
    if not isinstance(arguments, str):
        return dict(arguments or {})
    try:
        parsed = loads_json(arguments) if arguments else {}
    except ValueError:
        parsed = None
    # Kept as the model wrote it, so that the tool can tell the model what is wrong with it.
    return parsed if isinstance(parsed, dict) else {INVALID_JSON: arguments}


def _served(returned: ai.NativeToolReturnPart | None) -> dict[str, Any]:
    """A call that the provider ran itself, with what came of it."""
    served: dict[str, Any] = {"server": True}
    if returned is not None:
        raw = to_jsonable_python(returned.content, fallback=str, bytes_mode="base64")
        served["output"] = (
            {"raw": raw} if returned.outcome == "success" else {"raw": raw, "is_error": True}
        )
    return served


def _file(content: ai.BinaryContent) -> ContentBlock:
    data = base64.b64encode(content.data).decode()
    if content.is_image:
        return ImageBlock(data=data, mime_type=content.media_type)
    return FileBlock(data=data, mime_type=content.media_type)


def _extras(part: ai.TextPart | ai.ToolCallPart) -> dict[str, Any]:
    details = dict(part.provider_details or {})
    signature = details.pop(THOUGHT_SIGNATURE, None)
    extras = _kept({"id": part.id, "details": details})
    return {"signature": signature, **extras} if isinstance(signature, str) else extras


def _kept(data: dict[str, Any]) -> dict[str, Any]:
    """The fields that hold something, as a block's or a message's `provider_data`."""
    held = {name: value for name, value in data.items() if value}
    return {"provider_data": to_jsonable_python(held, fallback=str)} if held else {}


def _stop_reason(reason: ai.FinishReason | None, calls: bool) -> StopReason:
    if reason == "length":
        return StopReason.LENGTH
    return StopReason.TOOL_USE if calls else StopReason.STOP


def _usage(usage: RequestUsage) -> Usage:
    # pydantic-ai counts cached tokens within the input; the log counts them beside it.
    cached = usage.cache_read_tokens + usage.cache_write_tokens
    return Usage(
        input=max(usage.input_tokens - cached, 0),
        output=usage.output_tokens,
        cache_read=usage.cache_read_tokens,
        cache_write=usage.cache_write_tokens,
        reasoning=usage.output_reasoning_tokens,
        input_audio=usage.input_audio_tokens,
        output_audio=usage.output_audio_tokens,
    )
