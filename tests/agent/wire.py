"""What providers say over HTTP, in the three protocols, as their documentation shows it; and models
that are pointed at a server that says it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.settings import ModelSettings

from perdure.models.pydantic_ai import PydanticAIModel
from tests.agent.provider_server import Reply

KEY = "sk-proj-AbCdEfGhIjKlMnOpQrStUvWxYz0123456789"


@dataclass(frozen=True)
class Text:
    """A text in an answer."""

    text: str


@dataclass(frozen=True)
class Call:
    """A call in an answer; `arguments` as the model wrote them."""

    id: str | None
    name: str
    arguments: str = "{}"


Said = Text | Call


@dataclass(frozen=True)
class Protocol:
    """One protocol: a model that speaks it, and answers in it, whole or streamed."""

    name: str
    model: Callable[..., PydanticAIModel]
    whole: Callable[..., Reply]
    streamed: Callable[..., Reply]
    half: Callable[..., tuple[object, ...]]
    """The events of a stream, up to the middle of a text."""

    def __str__(self) -> str:
        return self.name


def anthropic_model(url: str, model: str = "claude-sonnet-5-5", **settings: Any) -> PydanticAIModel:
    provider = AnthropicProvider(api_key=KEY, base_url=url)
    return PydanticAIModel(
        AnthropicModel(model, provider=provider, settings=ModelSettings(**settings))  # type: ignore[typeddict-item]
    )


def chat_model(url: str, model: str = "gpt-6.1-sol", **settings: Any) -> PydanticAIModel:
    provider = OpenAIProvider(base_url=f"{url}/v1", api_key=KEY)
    return PydanticAIModel(
        OpenAIChatModel(model, provider=provider, settings=ModelSettings(**settings))  # type: ignore[typeddict-item]
    )


def responses_model(url: str, model: str = "gpt-6.1-sol", **settings: Any) -> PydanticAIModel:
    provider = OpenAIProvider(base_url=f"{url}/v1", api_key=KEY)
    return PydanticAIModel(
        OpenAIResponsesModel(model, provider=provider, settings=ModelSettings(**settings))  # type: ignore[typeddict-item]
    )


# Anthropic Messages. pydantic-ai streams this protocol also when nobody listens.


def messages_stream(*blocks: dict[str, Any], stop: str = "end_turn") -> Reply:
    """An answer of these content blocks."""
    events: list[object] = [_message_start()]
    for index, block in enumerate(blocks):
        events += _block_events(index, block)
    ending = {"stop_reason": stop, "stop_sequence": None}
    events.append({"type": "message_delta", "delta": ending, "usage": {"output_tokens": 20}})
    events.append({"type": "message_stop"})
    return Reply(events=tuple(events))


def _message_start() -> dict[str, Any]:
    usage = {"input_tokens": 10, "cache_read_input_tokens": 60, "cache_creation_input_tokens": 30}
    return {
        "type": "message_start",
        "message": {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": "claude-sonnet-5-5",
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": {**usage, "output_tokens": 1},
        },
    }


def _block_events(index: int, block: dict[str, Any]) -> list[object]:
    match block["type"]:
        case "text":
            start, deltas = {**block, "text": ""}, [{"type": "text_delta", "text": block["text"]}]
        case "thinking":
            start = {**block, "thinking": "", "signature": ""}
            deltas = [
                {"type": "thinking_delta", "thinking": block["thinking"]},
                {"type": "signature_delta", "signature": block["signature"]},
            ]
        case "tool_use" | "server_tool_use":
            arguments = block["input"]
            text = arguments if isinstance(arguments, str) else json.dumps(arguments)
            start = {**block, "input": {}}
            deltas = [{"type": "input_json_delta", "partial_json": text}]
        case _:
            start, deltas = block, []
    return [
        {"type": "content_block_start", "index": index, "content_block": start},
        *({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": index},
    ]


def _messages(*said: Said) -> Reply:
    blocks: list[dict[str, Any]] = []
    for item in said:
        if isinstance(item, Text):
            blocks.append({"type": "text", "text": item.text})
        else:
            use = {"type": "tool_use", "name": item.name, "input": item.arguments}
            blocks.append({**use, "id": item.id or ""})
    return messages_stream(*blocks, stop="tool_use" if _calls(said) else "end_turn")


def _half_messages(text: str) -> tuple[object, ...]:
    start = {"type": "content_block_start", "index": 0, "content_block": _text("")}
    delta = {"type": "text_delta", "text": text}
    return (
        _message_start(),
        start,
        {"type": "content_block_delta", "index": 0, "delta": delta},
    )


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


# OpenAI Chat Completions.


def completion(message: dict[str, Any], finish_reason: str, **fields: Any) -> dict[str, Any]:
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1795953600,
        "model": "gpt-6.1-sol-2026",
        "choices": [{"index": 0, "message": message, "finish_reason": finish_reason}],
        "usage": {
            "prompt_tokens": 100,
            "completion_tokens": 20,
            "total_tokens": 120,
            "prompt_tokens_details": {"cached_tokens": 64},
            "completion_tokens_details": {"reasoning_tokens": 8},
        },
        **fields,
    }


def chunk(delta: dict[str, Any], finish_reason: str | None = None) -> dict[str, Any]:
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 1795953600,
        "model": "gpt-6.1-sol-2026",
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish_reason}],
    }


def _chat(*said: Said) -> Reply:
    calls = [
        {
            **({} if call.id is None else {"id": call.id}),
            "type": "function",
            "function": {"name": call.name, "arguments": call.arguments},
        }
        for call in _calls(said)
    ]
    message = {
        "role": "assistant",
        "content": "".join(item.text for item in said if isinstance(item, Text)) or None,
        **({"tool_calls": calls} if calls else {}),
    }
    return Reply(completion(message, "tool_calls" if calls else "stop"))


def _chat_stream(*said: Said) -> Reply:
    events: list[object] = [chunk({"role": "assistant", "content": ""})]
    index = 0
    for item in said:
        if isinstance(item, Text):
            events.append(chunk({"content": item.text}))
        else:
            function = {"name": item.name, "arguments": item.arguments}
            call = {"index": index, "type": "function", "function": function}
            events.append(
                chunk({"tool_calls": [call if item.id is None else {**call, "id": item.id}]})
            )
            index += 1
    events += [chunk({}, "tool_calls" if _calls(said) else "stop"), "[DONE]"]
    return Reply(events=tuple(events))


def _half_chat(text: str) -> tuple[object, ...]:
    return (chunk({"role": "assistant", "content": text}),)


# OpenAI Responses.


def response(*output: dict[str, Any], status: str = "completed", **fields: Any) -> dict[str, Any]:
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 1795953600,
        "status": status,
        "model": "gpt-6.1-sol-2026",
        "output": list(output),
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "error": None,
        "incomplete_details": None,
        "usage": {
            "input_tokens": 100,
            "input_tokens_details": {"cached_tokens": 64},
            "output_tokens": 20,
            "output_tokens_details": {"reasoning_tokens": 8},
            "total_tokens": 120,
        },
        **fields,
    }


def output(*said: Said) -> list[dict[str, Any]]:
    output: list[dict[str, Any]] = []
    for number, item in enumerate(said, start=1):
        if isinstance(item, Text):
            text = {"type": "output_text", "text": item.text, "annotations": []}
            message = {"type": "message", "id": f"msg_{number}", "role": "assistant"}
            output.append({**message, "status": "completed", "content": [text]})
        else:
            call = {"type": "function_call", "id": f"fc_{number}", "status": "completed"}
            named = {"name": item.name, "arguments": item.arguments}
            output.append({**call, **named, "call_id": item.id or ""})
    return output


def _responses(*said: Said) -> Reply:
    return Reply(response(*output(*said)))


def response_events(*output: dict[str, Any], **fields: Any) -> tuple[object, ...]:
    """The events of a stream of these items, each whole at once."""
    events: list[dict[str, Any]] = [
        {"type": "response.created", "response": response(status="in_progress", usage=None)}
    ]
    for index, item in enumerate(output):
        place = {"output_index": index, "item_id": item.get("id", "")}
        empty: dict[str, Any] = {"content": []} if item["type"] == "message" else {}
        empty |= {"arguments": ""} if item["type"] == "function_call" else {}
        events.append(
            {"type": "response.output_item.added", "output_index": index, "item": {**item, **empty}}
        )
        if item["type"] == "message":
            [part] = item["content"]
            within = {**place, "content_index": 0}
            events += [
                {"type": "response.content_part.added", **within, "part": {**part, "text": ""}},
                {
                    "type": "response.output_text.delta",
                    **within,
                    "delta": part["text"],
                    "logprobs": [],
                },
                {
                    "type": "response.output_text.done",
                    **within,
                    "text": part["text"],
                    "logprobs": [],
                },
                {"type": "response.content_part.done", **within, "part": part},
            ]
        elif item["type"] == "function_call":
            delta = {"type": "response.function_call_arguments.delta", **place}
            events.append({**delta, "delta": item["arguments"]})
            done = {"type": "response.function_call_arguments.done", **place}
            events.append({**done, "arguments": item["arguments"], "name": item["name"]})
        events.append({"type": "response.output_item.done", "output_index": index, "item": item})
    events.append({"type": "response.completed", "response": response(*output, **fields)})
    return tuple({**event, "sequence_number": number} for number, event in enumerate(events))


def _responses_stream(*said: Said) -> Reply:
    return Reply(events=response_events(*output(*said)))


def _half_responses(text: str) -> tuple[object, ...]:
    return response_events(*output(Text(text)))[:4]


def _calls(said: Sequence[Said]) -> list[Call]:
    return [item for item in said if isinstance(item, Call)]


ANTHROPIC = Protocol("anthropic", anthropic_model, _messages, _messages, _half_messages)
CHAT = Protocol("chat", chat_model, _chat, _chat_stream, _half_chat)
RESPONSES = Protocol("responses", responses_model, _responses, _responses_stream, _half_responses)
PROTOCOLS = (ANTHROPIC, CHAT, RESPONSES)
