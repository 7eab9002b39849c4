"""What providers find in their caches: a conversation's beginning is sent again as it was, byte for
byte.
"""

from __future__ import annotations

import json
import re
from itertools import pairwise
from typing import Any

import pytest
from pydantic_ai.models.anthropic import AnthropicModel, AnthropicModelSettings
from pydantic_ai.models.fallback import FallbackModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIChatModelSettings
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.settings import ModelSettings

from perdure.codec import decode_entry, encode_entry
from perdure.entries import MessageEntry
from perdure.messages import ImageBlock, TextBlock
from perdure.models.protocol import ModelRequest, ToolSpec
from perdure.models.pydantic_ai import PydanticAIModel
from perdure.models.pydantic_ai_settings import call_settings
from tests.agent import wire
from tests.agent.conversations import result, user
from tests.agent.provider_server import Reply, provider_server
from tests.agent.wire import ANTHROPIC, CHAT, KEY, PROTOCOLS, RESPONSES, Call, Protocol, Text

ORDER = {"type": "object", "properties": {"b": {"type": "string"}, "a": {"type": "integer"}}}
TOOLS = [
    ToolSpec("find_order", "Look an order up.", ORDER),
    ToolSpec("cancel", "Cancel one.", {"type": "object", "properties": {}}),
]
PICTURE = ImageBlock(data="aGk=", mime_type="image/png")
THINKING = {"type": "thinking", "thinking": "It may be lost.", "signature": "c2ln"}
REASONING = {
    "type": "reasoning",
    "id": "rs_1",
    "summary": [{"type": "summary_text", "text": "It may be lost."}],
    "encrypted_content": "ZW5j",
    "status": "completed",
}


def script(protocol: Protocol) -> list[Reply]:
    """A thought where the protocol has any, calls, good and bad ones, and text."""
    calls = [
        Call("call_a", "find_order", '{"b": "7", "a": 1.0, "z": [1e3, 12345678901234567890]}'),
        Call("", "find_order", '{"b": '),
    ]
    first = protocol.whole(Text("Let me see."), *calls)
    if protocol is ANTHROPIC:
        uses = [
            {"type": "tool_use", "id": call.id, "name": call.name, "input": call.arguments}
            for call in calls
        ]
        first = wire.messages_stream(THINKING, *uses, stop="tool_use")
    elif protocol is RESPONSES:
        first = Reply(wire.response(REASONING, *wire.output(Text("Let me see."), *calls)))
    return [first, protocol.whole(Text("Ünicode \U0001f97e.")), protocol.whole(Text("Bye."))]


async def conversation(protocol: Protocol) -> list[bytes]:
    """The bodies of the requests of three calls in a conversation."""
    with provider_server(*script(protocol)) as server:
        model = protocol.model(server.url)
        messages = [user("Where is order 7?", PICTURE)]

        async def ask() -> None:
            request = ModelRequest(messages, "Help.\nBe kind.", TOOLS, cache_key="customer-42")
            messages.append(await model.respond(request))

        await ask()
        messages += [
            result(call.id, TextBlock(text=f"{call.name}: lost"), PICTURE)
            for call in messages[-1].tool_calls
        ]
        await ask()
        messages.append(user("And \ud800 order 8?"))
        await ask()
        await model.aclose()
    assert len(server.bodies) == 3
    return server.bodies


def part_of(body: bytes, name: str) -> bytes:
    """The bytes of a member of a request's body."""
    text = body.decode()
    [member] = re.findall(rf'"{name}": ?', text)
    start = text.index(member) + len(member)
    _, end = json.JSONDecoder().raw_decode(text, start)
    return text[start:end].encode()


def without_breakpoints(body: bytes) -> bytes:
    """The body without `cache_control`, which marks a place in the conversation and is no part of
    what is cached: a mark that moves on leaves the bytes before it as they were.
    """

    def strip(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: strip(item) for name, item in value.items() if name != "cache_control"}
        return [strip(item) for item in value] if isinstance(value, list) else value

    return json.dumps(strip(json.loads(body)), ensure_ascii=False, separators=(",", ":")).encode()


@pytest.mark.parametrize("protocol", PROTOCOLS, ids=str)
async def test_each_request_begins_with_the_one_before_it_byte_for_byte(protocol: Protocol) -> None:
    bodies = await conversation(protocol)
    if protocol is ANTHROPIC:
        bodies = [without_breakpoints(body) for body in bodies]
    members = {"messages", "input"} & json.loads(bodies[0]).keys()
    [conversed] = members

    for earlier, later in pairwise(bodies):
        before, after = part_of(earlier, conversed), part_of(later, conversed)
        assert after.startswith(before[:-1] + b",")  # all but the bracket that closes the list
        assert part_of(later, "tools") == part_of(earlier, "tools")
        if protocol is ANTHROPIC:
            assert part_of(later, "system") == part_of(earlier, "system")


async def test_claude_is_told_to_cache_tools_instructions_and_conversation() -> None:
    """With no more than the four marks that it takes."""
    for body in map(json.loads, await conversation(ANTHROPIC)):
        assert body["cache_control"]["type"] == "ephemeral"  # moves on with the conversation
        assert body["tools"][-1]["cache_control"]["type"] == "ephemeral"
        assert body["system"][-1]["cache_control"]["type"] == "ephemeral"
        assert json.dumps(body).count("cache_control") <= 4


async def test_a_key_is_told_to_openai_and_not_to_others_that_speak_its_protocol() -> None:
    for protocol in (CHAT, RESPONSES):
        for body in await conversation(protocol):
            assert "prompt_cache_key" not in json.loads(body)

    model = OpenAIChatModel("gpt-6.1-sol", provider=OpenAIProvider(api_key=KEY))
    first, second = (call_settings(model, key) for key in ("customer-42", "customer-43"))
    assert first == call_settings(model, "customer-42")
    key = first.get("openai_prompt_cache_key")
    assert isinstance(key, str)
    assert len(key) <= 64
    assert "customer" not in key
    assert key != second.get("openai_prompt_cache_key")
    assert "openai_prompt_cache_key" not in call_settings(model)


async def test_a_key_of_the_models_own_is_sent() -> None:
    with provider_server(CHAT.whole(Text("Yes."))) as server:
        provider = OpenAIProvider(base_url=f"{server.url}/v1", api_key=KEY)
        settings = OpenAIChatModelSettings(openai_prompt_cache_key="mine")
        model = PydanticAIModel(
            OpenAIChatModel("gpt-6.1-sol", provider=provider, settings=settings)
        )
        await model.respond(ModelRequest([user("Hi.")], cache_key="customer-42"))
        await model.aclose()

    assert server.requests[0]["prompt_cache_key"] == "mine"


@pytest.mark.parametrize(
    "settings, marks",
    [
        (AnthropicModelSettings(cache=False), 0),
        (AnthropicModelSettings(anthropic_cache_instructions=True), 1),
        (AnthropicModelSettings(cache="1h"), 3),
        (AnthropicModelSettings(max_retries=0), 3),
    ],
    ids=["off", "some", "longer", "nothing said"],
)
async def test_a_models_own_word_on_caching_stands(
    settings: AnthropicModelSettings, marks: int
) -> None:
    with provider_server(ANTHROPIC.whole(Text("Yes."))) as server:
        provider = AnthropicProvider(api_key=KEY, base_url=server.url)
        inner = AnthropicModel("claude-sonnet-5-5", provider=provider, settings=settings)
        model = PydanticAIModel(inner)
        await model.respond(ModelRequest([user("Hi.")], "Help.", TOOLS))
        await model.aclose()

    assert server.bodies[0].count(b"cache_control") == marks


def test_the_settings_of_models_that_are_chosen_from_stand() -> None:
    provider = AnthropicProvider(api_key=KEY)
    silent = AnthropicModel("claude-sonnet-5-5", provider=provider)
    off = AnthropicModel(
        "claude-haiku-5-5", provider=provider, settings=ModelSettings(cache=False, max_retries=3)
    )

    assert call_settings(silent) == {"max_retries": 0, "cache": True}
    assert call_settings(FallbackModel(silent, off)) == {}


@pytest.mark.parametrize("protocol", PROTOCOLS, ids=str)
async def test_a_message_that_was_read_from_a_log_is_sent_as_when_it_was_new(
    protocol: Protocol,
) -> None:
    first, second, third = script(protocol)
    with provider_server(first, second, third) as server:
        model = protocol.model(server.url)
        said = await model.respond(ModelRequest([user("Hi.")]))
        stored = decode_entry(encode_entry(MessageEntry(id="e1", message=said)))
        assert isinstance(stored, MessageEntry)
        for message in (said, stored.message):
            answers = [result(call.id) for call in message.tool_calls]
            await model.respond(ModelRequest([user("Hi."), message, *answers]))
        await model.aclose()

    assert server.bodies[1] == server.bodies[2]
