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
from pydantic_core import to_jsonable_python

from perdure.errors import ContentFilterError, ModelError
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
from perdure.models.pydantic_ai_costs import cost_of
from perdure.models.pydantic_ai_native import returned_block, served_block
from perdure.models.pydantic_ai_requests import THOUGHT_SIGNATURE
from perdure.timestamps import Timestamp
from perdure.tool_schema import INVALID_JSON
from perdure.usage import Usage

STATES_ITS_END: Final = frozenset(
    {"anthropic-messages", "google-generative-ai", "openai-completions", "openai-responses"}
)
"""Protocols in which every answer says why it ended, so that one without a reason was cut."""

NOT_KEPT: Final = frozenset({"finish_reason", "logprobs", "timestamp"})
"""What of an answer's details is said elsewhere, or never asked for again."""


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
        "details": {
            name: value
            for name, value in (response.provider_details or {}).items()
            if name not in NOT_KEPT
        },
    }
    return Message.model_validate(
        {
            "role": Role.ASSISTANT,
            "content": tuple(_blocks(response)),
            "api": api,
            "provider": response.provider_name or "",
            "model": response.model_name or "",
            "usage": _usage(response),
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
        raise ContentFilterError(f"{label}: the provider's content filter stopped the answer")
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
    parts = [part for part in response.parts if _is_kept(part)]
    called = {part.tool_call_id for part in parts if isinstance(part, ai.NativeToolCallPart)}
    returns = {
        part.tool_call_id: (place, part)
        for place, part in enumerate(parts)
        if isinstance(part, ai.NativeToolReturnPart)
    }
    for part in parts:
        if isinstance(part, ai.TextPart):
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
            place, returned = returns.get(part.tool_call_id, (0, None))
            yield served_block(part, _arguments(part.args), returned, place)
        elif isinstance(part, ai.NativeToolReturnPart):
            if part.tool_call_id not in called:
                yield returned_block(part)
        elif isinstance(part, ai.FilePart):
            yield _file(part)
        elif isinstance(part, ai.SpeechPart):
            yield TextBlock(text=part.content or "")


def _is_kept(part: ai.ModelResponsePart) -> bool:
    if isinstance(part, ai.TextPart):
        return bool(part.content or part.provider_details)
    # A compaction at the provider: the conversation before it is in the log, and is sent instead.
    return not isinstance(part, ai.CompactionPart) and not (
        isinstance(part, ai.SpeechPart) and not part.content
    )


def _call(part: ai.ToolCallPart) -> dict[str, Any]:
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


def _file(part: ai.FilePart) -> ContentBlock:
    kind = ImageBlock if part.content.is_image else FileBlock
    return kind.model_validate(
        {
            "data": base64.b64encode(part.content.data).decode(),
            "mime_type": part.content.media_type,
            **_kept({"id": part.id, "details": part.provider_details}),
        }
    )


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


def _usage(response: ai.ModelResponse) -> Usage:
    # pydantic-ai counts cached tokens within the input; the log counts them beside it.
    usage = response.usage
    cached = usage.cache_read_tokens + usage.cache_write_tokens
    return Usage(
        input=max(usage.input_tokens - cached, 0),
        output=usage.output_tokens,
        cache_read=usage.cache_read_tokens,
        cache_write=usage.cache_write_tokens,
        reasoning=usage.output_reasoning_tokens,
        input_audio=usage.input_audio_tokens,
        output_audio=usage.output_audio_tokens,
        cost=cost_of(response),
    )
