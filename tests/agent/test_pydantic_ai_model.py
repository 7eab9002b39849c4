"""Asking a pydantic-ai model."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from pydantic_ai import messages as ai
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, DeltaToolCalls, FunctionModel
from pydantic_ai.models.test import TestModel as AnyAnswerModel

from perdure.errors import ModelError
from perdure.messages import (
    TextBlock,
    ToolCallBlock,
)
from perdure.models.protocol import Delta, ModelRequest, ToolSpec
from perdure.models.pydantic_ai import PydanticAIModel
from tests.agent.conversations import plain, user

SPEC = ToolSpec("find_order", "Look an order up.", {"type": "object", "properties": {}})


async def test_a_model_is_asked_with_tools_and_instructions() -> None:
    seen: list[Any] = []

    def reply(messages: list[ai.ModelMessage], info: AgentInfo) -> ai.ModelResponse:
        seen.append(([plain(message) for message in messages], info))
        return ai.ModelResponse(parts=[ai.TextPart("On its way."), ai.ToolCallPart("now", {}, "1")])

    model = PydanticAIModel(FunctionModel(reply, model_name="mine"))
    message = await model.respond(ModelRequest([user("Where is it?")], "Help.", [SPEC]))

    assert model.name == "function:mine"
    assert message.content == (TextBlock(text="On its way."), ToolCallBlock(id="1", name="now"))
    assert (message.provider, message.model, message.stop_reason) == (
        "",
        "mine",
        "tool_use",
    )
    [(messages, info)] = seen
    assert messages == [("request", ("user", "Where is it?"))]
    assert info.instructions == "Help."
    [definition] = info.function_tools
    assert (definition.name, definition.description, definition.parameters_json_schema) == (
        "find_order",
        "Look an order up.",
        {"type": "object", "properties": {}},
    )


async def test_pieces_are_passed_on_while_they_arrive() -> None:
    async def stream(
        messages: list[ai.ModelMessage], info: AgentInfo
    ) -> AsyncIterator[str | DeltaToolCalls]:
        yield "On "
        yield "its way."
        yield {1: DeltaToolCall("now", '{"zone": ', tool_call_id="1")}
        yield {1: DeltaToolCall(json_args='"UTC"}')}

    heard: list[Delta] = []
    model = PydanticAIModel(FunctionModel(stream_function=stream))
    message = await model.respond(ModelRequest([user("Where is it?")]), heard.append)

    assert message.content == (
        TextBlock(text="On its way."),
        ToolCallBlock(id="1", name="now", arguments={"zone": "UTC"}),
    )
    assert heard == [
        Delta("text", "On ", 0),
        Delta("text", "its way.", 0),
        Delta("tool_arguments", '{"zone": ', 1, "1", "now"),
        Delta("tool_arguments", '"UTC"}', 1),
    ]


async def test_any_model_of_pydantic_ai_will_do() -> None:
    message = await PydanticAIModel(
        AnyAnswerModel(custom_output_text="Hello.", call_tools=[])
    ).respond(ModelRequest([user("Hi.")], tools=[SPEC]))

    assert (message.text, message.provider, message.model) == ("Hello.", "test", "test")


async def test_an_empty_conversation_is_not_sent() -> None:
    def reply(messages: list[ai.ModelMessage], info: AgentInfo) -> ai.ModelResponse:
        raise AssertionError("nothing was to be sent")

    with pytest.raises(ModelError, match="the conversation is empty") as raised:
        await PydanticAIModel(FunctionModel(reply)).respond(ModelRequest([user()]))

    assert not raised.value.retryable
