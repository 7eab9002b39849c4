"""The providers' own clients against a real server: one attempt a call, and nothing lost on the
way.
"""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import pytest

from perdure.errors import ModelError
from perdure.messages import Message, TextBlock, ThinkingBlock, ToolCallBlock
from perdure.models import LanguageModel, resolve_model
from perdure.models.protocol import Delta, ModelRequest, ToolSpec
from perdure.models.pydantic_ai import PydanticAIModel
from perdure.usage import Usage
from tests.agent.provider_server import Reply, provider_server

SCHEMA = {
    "type": "object",
    "properties": {"order_id": {"type": "string"}},
    "required": ["order_id"],
    "additionalProperties": False,
}
SPEC = ToolSpec("find_order", "Look an order up.", SCHEMA)
QUESTION = Message(role="user", content="Where is order 7?")
ORDER = ToolCallBlock(id="call_a", name="find_order", arguments={"order_id": "7"})


def completion(message: dict[str, Any], finish_reason: str) -> dict[str, Any]:
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
    }


CALL = {
    "role": "assistant",
    "content": None,
    "tool_calls": [
        {
            "id": "call_a",
            "type": "function",
            "function": {"name": "find_order", "arguments": '{"order_id": "7"}'},
        }
    ],
}
ANSWER = {"role": "assistant", "content": "On its way."}


def chunk(delta: dict[str, Any], finish_reason: str | None = None) -> dict[str, Any]:
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 1795953600,
        "model": "gpt-6.1-sol-2026",
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish_reason}],
    }


def openai(monkeypatch: pytest.MonkeyPatch, url: str) -> LanguageModel:
    monkeypatch.setenv("OPENAI_API_KEY", "not-a-key")
    monkeypatch.setenv("OPENAI_BASE_URL", f"{url}/v1")
    model = resolve_model("openai-chat:gpt-6.1-sol")
    assert model is not None
    return model


def anthropic(monkeypatch: pytest.MonkeyPatch, url: str) -> LanguageModel:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "not-a-key")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", url)
    model = resolve_model("anthropic:claude-sonnet-5-5")
    assert model is not None
    return model


async def test_a_tool_turn_over_the_chat_api(monkeypatch: pytest.MonkeyPatch) -> None:
    replies = Reply(completion(CALL, "tool_calls")), Reply(completion(ANSWER, "stop"))
    with provider_server(*replies) as server:
        model = openai(monkeypatch, server.url)
        call = await model.respond(ModelRequest([QUESTION], "Help.", [SPEC]))
        result = Message(
            role="tool_result", content="ships \ud800 Friday", tool_call_id="call_a", is_error=True
        )
        answer = await model.respond(ModelRequest([QUESTION, call, result], "Help.", [SPEC]))

    assert (call.content, call.stop_reason) == ((ORDER,), "tool_use")
    assert call.usage == Usage(input=36, cache_read=64, output=20, reasoning=8)
    assert (call.api, call.provider, call.model) == (
        "openai-completions",
        "openai",
        "gpt-6.1-sol-2026",
    )
    assert (answer.text, answer.stop_reason) == ("On its way.", "stop")
    first, second = server.requests
    system, question = second["messages"][:2]
    assert (system["content"][0]["text"], question) == (
        "Help.",
        {"role": "user", "content": "Where is order 7?"},
    )
    assert second["messages"][2]["tool_calls"][0]["function"] == {
        "name": "find_order",
        "arguments": '{"order_id":"7"}',
    }
    assert second["messages"][3] == {
        "role": "tool",
        "tool_call_id": "call_a",
        "content": '{"error":"ships \ufffd Friday"}',
    }
    assert first["messages"] == second["messages"][:2]
    assert first["tools"] == second["tools"]
    assert first["tools"][0]["function"]["parameters"] == SCHEMA


async def test_a_streamed_turn_over_the_chat_api(monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = [
        {"index": 0, "function": {"arguments": part}} for part in ('{"order_', 'id": "7"}')
    ]
    opening = {"index": 0, "id": "call_a", "type": "function", "function": {"name": "find_order"}}
    events = (
        chunk({"role": "assistant", "content": "Look"}),
        chunk({"content": "ing."}),
        chunk({"tool_calls": [opening]}),
        *(chunk({"tool_calls": [part]}) for part in arguments),
        chunk({}, "tool_calls"),
        "[DONE]",
    )
    heard: list[Delta] = []
    with provider_server(Reply(events=events)) as server:
        model = openai(monkeypatch, server.url)
        message = await model.respond(ModelRequest([QUESTION], tools=[SPEC]), heard.append)

    assert message.content == (TextBlock(text="Looking."), ORDER)
    assert message.stop_reason == "tool_use"
    assert heard == [
        Delta("text", "Look", 0),
        Delta("text", "ing.", 0),
        Delta("tool_arguments", "", 1, "call_a", "find_order"),
        Delta("tool_arguments", '{"order_', 1),
        Delta("tool_arguments", 'id": "7"}', 1),
    ]


@pytest.mark.parametrize(
    "reply, reason, retryable, retry_after",
    [
        (
            Reply({"error": {"message": "slow down"}}, 429, {"retry-after": "7"}),
            "slow down",
            True,
            7,
        ),
        (Reply({"error": {"message": "slow down"}}, 429), "slow down", True, None),
        (Reply({"error": {"message": "oops"}}, 500), "oops", True, None),
        (Reply({"error": {"message": "overloaded"}}, 529), "overloaded", True, None),
        (Reply({"error": {"message": "bad request"}}, 400), "bad request", False, None),
        (Reply({"error": {"message": "wrong key"}}, 401), "wrong key", False, None),
        (Reply(b"<html>"), "", True, None),
        (Reply({"choices": []}), "", True, None),
    ],
)
@pytest.mark.parametrize("provider", [openai, anthropic])
async def test_a_failed_call_is_made_once_and_says_whether_to_try_again(
    monkeypatch: pytest.MonkeyPatch,
    provider: Any,
    reply: Reply,
    reason: str,
    retryable: bool,
    retry_after: float | None,
) -> None:
    with provider_server(reply) as server, pytest.raises(ModelError) as raised:
        await provider(monkeypatch, server.url).respond(ModelRequest([QUESTION]))

    assert reason in str(raised.value)
    assert (raised.value.retryable, raised.value.retry_after) == (retryable, retry_after)
    assert len(server.requests) == 1


@pytest.mark.parametrize("provider", [openai, anthropic])
async def test_a_provider_that_cannot_be_reached_is_worth_another_attempt(
    monkeypatch: pytest.MonkeyPatch, provider: Any
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        url = f"http://127.0.0.1:{closed.getsockname()[1]}"

    with pytest.raises(ModelError) as raised:
        await provider(monkeypatch, url).respond(ModelRequest([QUESTION]))

    assert raised.value.retryable


@pytest.mark.parametrize("cut", [True, False], ids=["connection cut", "no last event"])
async def test_half_a_stream_is_not_taken_for_a_message(
    monkeypatch: pytest.MonkeyPatch, cut: bool
) -> None:
    events = (chunk({"role": "assistant", "content": "Half a "}),)
    with provider_server(Reply(events=events, cut=cut)) as server:
        model = openai(monkeypatch, server.url)
        with pytest.raises(ModelError) as raised:
            await model.respond(ModelRequest([QUESTION]), lambda delta: None)

    assert raised.value.retryable
    assert len(server.requests) == 1


THINKING = {"type": "thinking", "thinking": "It may be lost.", "signature": "c2ln"}
USE = {"type": "tool_use", "id": "call_a", "name": "find_order", "input": {"order_id": "7"}}


def claude(*blocks: tuple[dict[str, Any], dict[str, Any]], stop_reason: str) -> Reply:
    """An answer of the Messages API: each block as it begins, and what its delta adds."""
    usage = {"input_tokens": 10, "cache_read_input_tokens": 60, "cache_creation_input_tokens": 30}
    message: dict[str, Any] = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-sonnet-5-5",
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {**usage, "output_tokens": 1},
    }
    events: list[object] = [{"type": "message_start", "message": message}]
    for index, (block, delta) in enumerate(blocks):
        start = {"type": "content_block_start", "index": index, "content_block": block}
        events += [start, {"type": "content_block_delta", "index": index, "delta": delta}]
        events.append({"type": "content_block_stop", "index": index})
    ending = {"stop_reason": stop_reason, "stop_sequence": None}
    events.append({"type": "message_delta", "delta": ending, "usage": {"output_tokens": 20}})
    events.append({"type": "message_stop"})
    return Reply(events=tuple(events))


async def test_thinking_goes_back_to_its_provider_signed(monkeypatch: pytest.MonkeyPatch) -> None:
    thinks = THINKING, {"type": "thinking_delta", "thinking": ""}
    uses = {**USE, "input": {}}, {"type": "input_json_delta", "partial_json": '{"order_id": "7"}'}
    says = {"type": "text", "text": ""}, {"type": "text_delta", "text": "Done."}
    replies = claude(thinks, uses, stop_reason="tool_use"), claude(says, stop_reason="end_turn")
    with provider_server(*replies) as server:
        model = anthropic(monkeypatch, server.url)
        call = await model.respond(ModelRequest([QUESTION], "Help.", [SPEC]))
        result = Message(role="tool_result", content="lost", tool_call_id="call_a", is_error=True)
        answer = await model.respond(ModelRequest([QUESTION, call, result], "Help.", [SPEC]))

    assert call.content == (ThinkingBlock(thinking="It may be lost.", signature="c2ln"), ORDER)
    assert call.usage == Usage(input=10, cache_read=60, cache_write=30, output=20)
    assert (call.api, call.provider) == ("anthropic-messages", "anthropic")
    assert answer.text == "Done."
    said, returned = server.requests[1]["messages"][1:]
    assert said["content"] == [THINKING, USE]
    assert returned["content"] == [
        {
            "type": "tool_result",
            "tool_use_id": "call_a",
            "content": [{"type": "text", "text": "lost"}],
            "is_error": True,
        }
    ]


async def test_calls_share_a_connection_until_the_model_is_closed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with provider_server(*[Reply(completion(ANSWER, "stop"))] * 4) as server:
        model = openai(monkeypatch, server.url)
        assert isinstance(model, PydanticAIModel)
        await model.respond(ModelRequest([QUESTION]))
        await model.respond(ModelRequest([QUESTION]))
        assert server.connections == 1
        await model.aclose()
        await model.respond(ModelRequest([QUESTION]))
        await model.respond(ModelRequest([QUESTION]))
        await model.aclose()

    assert server.connections == 2


def test_a_model_outlives_the_event_loop_that_it_was_first_called_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with provider_server(*[Reply(completion(ANSWER, "stop"))] * 2) as server:
        model = openai(monkeypatch, server.url)
        answers = [asyncio.run(model.respond(ModelRequest([QUESTION]))) for _ in range(2)]

    assert [answer.text for answer in answers] == ["On its way."] * 2
