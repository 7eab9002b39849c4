"""Whole conversations with providers: what comes in, and how it goes out again to each of them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.openai import OpenAIResponsesModel
from pydantic_ai.native_tools import WebSearchTool
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.openai import OpenAIProvider

from perdure.codec import decode_entry, encode_entry
from perdure.entries import MessageEntry
from perdure.messages import (
    ContentBlock,
    FileBlock,
    ImageBlock,
    Message,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
)
from perdure.models.protocol import Delta, ModelRequest, ToolSpec
from perdure.models.pydantic_ai import PydanticAIModel
from tests.agent import wire
from tests.agent.conversations import result, user
from tests.agent.provider_server import ProviderServer, Reply, provider_server
from tests.agent.wire import ANTHROPIC, CHAT, KEY, PROTOCOLS, RESPONSES, Call, Protocol, Text

SPEC = ToolSpec("find_order", "Look an order up.", {"type": "object", "properties": {}})
QUESTION = user("Where is order 7?")

each_protocol = pytest.mark.parametrize("protocol", PROTOCOLS, ids=str)


async def answer(protocol: Protocol, reply: Reply, *before: Message, **options: Any) -> Message:
    """The answer to a conversation, as it is read back from a log."""
    with provider_server(reply) as server:
        return await ask(protocol.model(server.url), *before, **options)


async def ask(
    model: PydanticAIModel, *messages: Message, heard: list[Delta] | None = None
) -> Message:
    request = ModelRequest(messages or [QUESTION], tools=[SPEC])
    said = await model.respond(request, None if heard is None else heard.append)
    await model.aclose()
    stored = decode_entry(encode_entry(MessageEntry(id="e1", message=said)))
    assert isinstance(stored, MessageEntry)
    return stored.message


async def sent(protocol: Protocol, *messages: Message) -> Any:
    """What the provider is sent of a conversation: its messages, in its own form."""
    with provider_server(protocol.whole(Text("Yes."))) as server:
        await ask(protocol.model(server.url), *messages)
    body = server.requests[0]
    return body["input"] if protocol is RESPONSES else body["messages"]


def pairs(protocol: Protocol, messages: Any) -> tuple[list[str], list[str]]:
    """The IDs of the calls and of the results, as they are sent."""
    blocks = [
        block
        for message in messages
        for block in (message, *_list(message.get("content")), *message.get("tool_calls", ()))
    ]
    if protocol is ANTHROPIC:
        calls = [block["id"] for block in blocks if block.get("type") == "tool_use"]
        results = [block["tool_use_id"] for block in blocks if block.get("type") == "tool_result"]
    elif protocol is CHAT:
        calls = [block["id"] for block in blocks if block.get("type") == "function"]
        results = [block["tool_call_id"] for block in blocks if block.get("role") == "tool"]
    else:
        calls = [block["call_id"] for block in blocks if block.get("type") == "function_call"]
        results = [
            block["call_id"] for block in blocks if block.get("type") == "function_call_output"
        ]
    return calls, results


def _list(content: Any) -> list[Any]:
    return content if isinstance(content, list) else []


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@each_protocol
async def test_calls_without_an_id_or_with_one_that_is_taken_get_one_of_their_own(
    protocol: Protocol, streamed: bool
) -> None:
    """The same ones when the same answer comes again, and others at another place."""
    say = protocol.streamed if streamed else protocol.whole
    calls = [Call("c1", "find_order", '{"n": 1}'), Call("c1", "find_order", '{"n": 2}')]
    calls += [Call("", "find_order", '{"n": 3}'), Call("", "find_order", '{"n": 3}')]
    options: dict[str, Any] = {"heard": []} if streamed else {}
    first = await answer(protocol, say(*calls), **options)
    again = await answer(protocol, say(*calls), **options)
    after = [QUESTION, first, *(result(call.id) for call in first.tool_calls)]
    later = await answer(protocol, say(*calls), *after, **options)

    ids = [call.id for call in first.tool_calls]
    assert [call.arguments["n"] for call in first.tool_calls] == [1, 2, 3, 3]
    assert ids[0] == "c1"
    assert ids == [call.id for call in again.tool_calls]
    assert len({*ids, *(call.id for call in later.tool_calls)}) == 8


async def test_a_chat_server_that_leaves_the_id_out() -> None:
    first = await answer(CHAT, CHAT.streamed(Call(None, "find_order")), heard=[])
    again = await answer(CHAT, CHAT.streamed(Call(None, "find_order")), heard=[])

    assert first.tool_calls[0].id.startswith("call_")
    assert first.tool_calls[0].id == again.tool_calls[0].id


@each_protocol
async def test_calls_and_results_of_any_log_are_sent_under_ids_that_are_unique(
    protocol: Protocol,
) -> None:
    """A log that others wrote, with the IDs that others gave."""
    foreign = "functions.find_order:0|" + "x" * 80
    one = Message(
        role="assistant",
        provider="elsewhere",
        content=[
            ToolCallBlock(id="", name="find_order", arguments={"n": 1}),
            ToolCallBlock(id="", name="find_order", arguments={"n": 2}),
            ToolCallBlock(id=foreign, name="find_order", arguments={"n": 3}),
            ToolCallBlock(id="ok_1", name="find_order", arguments={"n": 4}),
        ],
    )
    turn = [one, *(result(call_id, TextBlock(text="x")) for call_id in ("", "", foreign, "ok_1"))]
    messages = await sent(protocol, QUESTION, *turn, *turn, user("Go on."))

    calls, results = pairs(protocol, messages)
    assert len(set(calls)) == 8
    assert calls == results
    assert calls[3] == "ok_1"
    assert all(len(call_id) <= 40 and call_id.replace("_", "").isalnum() for call_id in calls)
    longer = await sent(protocol, QUESTION, *turn, *turn, user("Go on."), *turn)
    assert pairs(protocol, longer)[0][:8] == calls


@each_protocol
async def test_arguments_that_are_no_json_are_kept_and_sent_back(protocol: Protocol) -> None:
    said = await answer(protocol, protocol.streamed(Call("c1", "find_order", '{"n": ')), heard=[])

    assert said.tool_calls[0].arguments == {"INVALID_JSON": '{"n": '}
    messages = await sent(protocol, QUESTION, said, result("c1", is_error=True))
    assert '"INVALID_JSON' in json.dumps(messages).replace("\\", "")


@each_protocol
async def test_an_empty_answer_has_no_content_and_is_never_sent(protocol: Protocol) -> None:
    said = await answer(protocol, protocol.whole())

    assert said.content == ()
    messages = await sent(protocol, QUESTION, said, user("Well?"))
    assert "assistant" not in [message.get("role") for message in messages]


async def test_claude_is_sent_no_blank_text() -> None:
    blank = Message(
        role="assistant",
        content=[TextBlock(text="\n\n"), ToolCallBlock(id="c1", name="find_order")],
    )
    messages = await sent(ANTHROPIC, user(" \n"), QUESTION, blank, result("c1", is_error=True))

    assert [block["type"] for message in messages for block in message["content"]] == [
        "text",
        "tool_use",
        "tool_result",
    ]
    assert messages[-1]["content"][0]["content"] == [{"type": "text", "text": "error"}]


THINKING = {"type": "thinking", "thinking": "It may be lost.", "signature": "c2ln"}
REDACTED = {"type": "redacted_thinking", "data": "ZW5j"}
REASONING = {
    "type": "reasoning",
    "id": "rs_1",
    "summary": [{"type": "summary_text", "text": "It may be lost."}],
    "encrypted_content": "ZW5j",
    "status": "completed",
}
USE = {"type": "tool_use", "id": "call_a", "name": "find_order", "input": {"n": 7}}


async def test_thoughts_go_back_to_claude_as_they_came_redacted_ones_too() -> None:
    reply = wire.messages_stream(THINKING, REDACTED, USE, stop="tool_use")
    said = await answer(ANTHROPIC, reply)
    messages = await sent(ANTHROPIC, QUESTION, said, result("call_a", TextBlock(text="lost")))

    assert said.content[:2] == (
        ThinkingBlock(thinking="It may be lost.", signature="c2ln"),
        ThinkingBlock.model_validate(
            {"signature": "ZW5j", "provider_data": {"id": "redacted_thinking"}}
        ),
    )
    assert messages[1]["content"] == [THINKING, REDACTED, USE]


async def test_thoughts_go_back_to_openai_as_they_came() -> None:
    [call] = wire.output(Call("call_a", "find_order", '{"n":7}'))
    replies = Reply(wire.response(REASONING, call)), RESPONSES.whole(Text("Yes."))
    with provider_server(*replies) as server:
        model = RESPONSES.model(server.url)
        said = await ask(model)
        await ask(model, QUESTION, said, result("call_a", TextBlock(text="lost")))

    thought, called = server.requests[1]["input"][1:3]
    assert thought == {name: value for name, value in REASONING.items() if name != "status"}
    assert called == {name: value for name, value in call.items() if name != "status"}


async def test_another_endpoint_is_not_sent_ids_that_only_the_first_knows() -> None:
    [call] = wire.output(Call("call_a", "find_order", '{"n":7}'))
    said = await answer(RESPONSES, Reply(wire.response(REASONING, call)))
    messages = await sent(RESPONSES, QUESTION, said, result("call_a", TextBlock(text="lost")))

    assert messages[1]["encrypted_content"] == "ZW5j"
    assert (messages[2]["call_id"], messages[2].get("id")) == ("call_a", None)


@pytest.mark.parametrize(
    "reader", [protocol for protocol in PROTOCOLS if protocol is not ANTHROPIC], ids=str
)
async def test_claudes_conversation_goes_on_with_openai(reader: Protocol) -> None:
    reply = wire.messages_stream(THINKING, REDACTED, USE, stop="tool_use")
    said = await answer(ANTHROPIC, reply)
    messages = await sent(reader, QUESTION, said, result("call_a", TextBlock(text="lost")))

    assert "It may be lost." in json.dumps(messages)
    assert not any(mark in json.dumps(messages) for mark in ("c2ln", "ZW5j", "redacted"))
    assert pairs(reader, messages) == (["call_a"], ["call_a"])


async def test_openais_conversation_goes_on_with_claude() -> None:
    output = wire.output(Text("Looking."), Call("call_a", "find_order", '{"n":7}'))
    said = await answer(RESPONSES, Reply(wire.response(REASONING, *output)))
    messages = await sent(ANTHROPIC, QUESTION, said, result("call_a", TextBlock(text="lost")))

    told = json.dumps(messages)
    assert "It may be lost." in told
    assert not any(mark in told for mark in ("ZW5j", "rs_1", "msg_1", "fc_2", "resp_1"))
    assert pairs(ANTHROPIC, messages) == (["call_a"], ["call_a"])
    assert [message["role"] for message in messages][-2:] == ["assistant", "user"]


SEARCH = {
    "type": "server_tool_use",
    "id": "srvtoolu_1",
    "name": "web_search",
    "input": {"query": "order 7"},
}
FOUND = {
    "type": "web_search_tool_result",
    "tool_use_id": "srvtoolu_1",
    "content": [
        {
            "type": "web_search_result",
            "title": "Orders",
            "url": "https://example.com/7",
            "encrypted_content": "c2VjcmV0",
            "page_age": None,
        }
    ],
}


def searching(server: ProviderServer) -> PydanticAIModel:
    provider = AnthropicProvider(api_key=KEY, base_url=server.url)
    model = AnthropicModel("claude-sonnet-5-5", provider=provider)
    return PydanticAIModel(model, native_tools=[WebSearchTool()])


async def test_what_claude_ran_itself_goes_back_to_it_as_it_came() -> None:
    blocks: list[dict[str, Any]] = [{"type": "text", "text": "Let me see."}, SEARCH, FOUND]
    heard: list[Delta] = []
    done = {"type": "text", "text": "It ships on Friday."}
    replies = wire.messages_stream(*blocks, done), wire.messages_stream(done)
    with provider_server(*replies) as server:
        said = await ask(searching(server), heard=heard)
        await ask(searching(server), QUESTION, said, user("Sure?"))

    assert [tool["name"] for tool in server.requests[0]["tools"]] == ["find_order", "web_search"]
    _, search, _ = said.content
    assert isinstance(search, ToolCallBlock)
    assert (search.id, search.name, search.server, search.server_type) == (
        "srvtoolu_1",
        "web_search",
        True,
        "web_search",
    )
    assert search.output is not None
    assert search.output.raw == FOUND["content"]
    assert (said.tool_calls, said.stop_reason) == ((), "stop")
    assert heard == [
        Delta("text", "Let me see.", 0),
        Delta("tool_arguments", '{"query": "order 7"}', 1),
        Delta("text", "It ships on Friday.", 2),
    ]
    assert server.requests[1]["messages"][1]["content"] == [*blocks, done]


async def test_an_answer_that_claude_pauses_goes_on_and_is_one_message() -> None:
    done = {"type": "text", "text": "It ships on Friday."}
    heard: list[Delta] = []
    replies = (
        wire.messages_stream(SEARCH, FOUND, stop="pause_turn"),
        wire.messages_stream(done),
    )
    with provider_server(*replies) as server:
        said = await ask(searching(server), heard=heard)

    assert len(said.content) == 2
    assert (said.text, said.stop_reason) == ("It ships on Friday.", "stop")
    assert said.usage is not None
    assert (said.usage.output, said.usage.cache_read) == (40, 120)
    assert heard[-1] == Delta("text", "It ships on Friday.", 1)
    assert server.requests[1]["messages"][-1] == {"role": "assistant", "content": [SEARCH, FOUND]}


async def test_what_openai_ran_itself_goes_back_to_it_by_its_id() -> None:
    searched = {
        "type": "web_search_call",
        "id": "ws_1",
        "status": "completed",
        "action": {"type": "search", "query": "order 7"},
    }
    done = wire.output(Text("It ships on Friday."))
    replies = [Reply(wire.response(searched, *done))] * 2
    with provider_server(*replies) as server:
        provider = OpenAIProvider(base_url=f"{server.url}/v1", api_key=KEY)
        model = OpenAIResponsesModel("gpt-6.1-sol", provider=provider)
        said = await ask(PydanticAIModel(model, native_tools=[WebSearchTool()]))
        await ask(PydanticAIModel(model), QUESTION, said, user("Sure?"))

    again = server.requests[1]["input"][1]
    assert (again["type"], again["id"], again["status"]) == (
        "web_search_call",
        "ws_1",
        "completed",
    )


@pytest.mark.parametrize("reader", [CHAT, RESPONSES], ids=str)
async def test_what_another_provider_ran_is_left_out(reader: Protocol) -> None:
    done = {"type": "text", "text": "It ships on Friday."}
    with provider_server(wire.messages_stream(SEARCH, FOUND, done)) as server:
        said = await ask(searching(server))
    messages = await sent(reader, QUESTION, said, user("Sure?"))

    told = json.dumps(messages)
    assert "It ships on Friday." in told
    assert not any(mark in told for mark in ("srvtoolu_1", "c2VjcmV0", "web_search"))


@each_protocol
async def test_what_another_program_says_was_run_is_left_out(protocol: Protocol) -> None:
    said = Message(
        role="assistant",
        provider="anthropic",
        content=[
            ToolCallBlock(id="srv1", name="WebSearch", server=True, server_type="web_search"),
            TextBlock(text="Found it."),
        ],
    )
    told = json.dumps(await sent(protocol, QUESTION, said, user("Sure?")))

    assert "Found it." in told
    assert "srv1" not in told


IMAGE = ImageBlock(data="aGk=", mime_type="image/png")
PDF = FileBlock(data="aGk=", mime_type="application/pdf", filename="a.pdf")


@each_protocol
async def test_images_and_files_reach_the_model_from_users_and_from_tools(
    protocol: Protocol,
) -> None:
    call = Message(role="assistant", content=[ToolCallBlock(id="c1", name="find_order")])
    returned = result("c1", TextBlock(text="See:"), IMAGE, PDF)
    messages = await sent(protocol, user("See:", IMAGE, PDF), call, returned)

    told = json.dumps(messages)
    assert told.count("aGk=") == 4
    assert told.count("image/png") >= 2
    assert told.count("application/pdf") == 2
    assert pairs(protocol, messages) == (["c1"], ["c1"])


@each_protocol
async def test_what_a_model_cannot_read_is_told_it_and_no_error(protocol: Protocol) -> None:
    """A conversation that another model began."""
    blocks: list[ContentBlock] = [
        FileBlock(data="aGk=", mime_type="video/mp4"),
        FileBlock(data="aGk=", mime_type="application/x-thing"),
        FileBlock(data="aGk="),
        FileBlock(url="https://example.com/a.mp4", mime_type="video/mp4"),
        ImageBlock(data="aGk=", mime_type="image/tiff"),
        FileBlock(data="aGk=", mime_type="audio/flac"),
    ]
    for block in blocks:
        told = json.dumps(await sent(protocol, user("See:", block), user("Well?")))
        assert "that this model cannot read" in told
        assert "aGk=" not in told


@pytest.mark.parametrize(
    "mime_type", ["text/plain", "text/csv", "text/x-python", "application/json", "text/markdown"]
)
@each_protocol
async def test_files_of_text_can_be_read_by_all(protocol: Protocol, mime_type: str) -> None:
    block = FileBlock(data="aGVsbG/r", mime_type=mime_type)  # not UTF-8 at its end
    told = json.dumps(await sent(protocol, user("See:", block)), ensure_ascii=False)

    assert "hello\ufffd" in told or "aGVsbG/vv70=" in told


@pytest.mark.parametrize(
    "protocol, own, foreign",
    [
        (ANTHROPIC, "file_011C", "file-8f"),
        (CHAT, "file-8f", "file_011C"),
        (RESPONSES, "file-8f", "file_011C"),
    ],
    ids=str,
)
async def test_a_file_at_the_provider_is_sent_by_its_id_to_that_provider_only(
    protocol: Protocol, own: str, foreign: str
) -> None:
    files = [FileBlock(file_id=name, mime_type="application/pdf") for name in (own, foreign)]
    message = user("See:", *files)
    told = json.dumps(await sent(protocol, message))

    assert f'"file_id": "{own}"' in told
    assert f"[file {foreign}, kept by another provider]" in told


@each_protocol
async def test_an_answer_keeps_what_its_provider_calls_it(protocol: Protocol) -> None:
    said = await answer(protocol, protocol.whole(Text("Yes.")))

    data = (said.model_extra or {})["provider_data"]
    assert data["response_id"] in ("msg_1", "chatcmpl-1", "resp_1")
    assert said.model in ("claude-sonnet-5-5", "gpt-6.1-sol-2026")
    assert said.usage is not None
    assert said.usage.cache_read in (60, 64)
    assert said.stop_reason == "stop"
