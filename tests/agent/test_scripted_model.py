"""The model for tests and demonstrations says what its script says."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from perdure.errors import AgentError, ModelError
from perdure.messages import Message, TextBlock, ThinkingBlock, ToolCallBlock
from perdure.models import LanguageModel
from perdure.models.protocol import Delta, ModelRequest
from perdure.models.scripted import ScriptedModel, call
from perdure.usage import Usage

QUESTION = Message(role="user", content="Where is it?")


def asked(*answers: Message) -> ModelRequest:
    """A conversation that has these assistant messages so far."""
    messages = [QUESTION]
    for answer in answers:
        messages += [answer, QUESTION]
    return ModelRequest(messages=messages)


def said(text: str) -> Message:
    return Message(role="assistant", content=text)


async def test_the_item_is_the_one_after_the_assistant_messages() -> None:
    model = ScriptedModel("one", [call("find_order", order_id="7")], "three")

    texts = [await model.respond(asked(*[said("x")] * count)) for count in (2, 0, 0)]

    assert [message.text for message in texts] == ["three", "one", "one"]


async def test_an_answer_is_a_whole_assistant_message() -> None:
    model = ScriptedModel(["Looking it up.", call("find_order", order_id="7"), call("now")])

    assert await model.respond(ModelRequest([QUESTION], instructions="Help.")) == Message(
        role="assistant",
        content=(
            TextBlock(text="Looking it up."),
            ToolCallBlock(id="call_1_1", name="find_order", arguments={"order_id": "7"}),
            ToolCallBlock(id="call_1_2", name="now"),
        ),
        api="scripted",
        provider="scripted",
        model="scripted",
        usage=Usage(input=5, output=12),
        stop_reason="tool_use",
    )
    assert isinstance(model, LanguageModel)


async def test_a_single_call_needs_no_list() -> None:
    answer = await ScriptedModel(call("now", "mine")).respond(asked())

    assert answer.content == (ToolCallBlock(id="mine", name="now"),)


async def test_call_ids_are_unique_where_a_compaction_has_moved_the_places() -> None:
    kept = Message(role="assistant", content=(ToolCallBlock(id="call_2_1", name="now"),))
    model = ScriptedModel("one", [call("now"), call("now", "call_2_3"), call("now")])

    answer = await model.respond(asked(kept))

    assert [block.id for block in answer.tool_calls] == ["call_2_2", "call_2_3", "call_2_4"]


@pytest.mark.parametrize("item", ["", []])
async def test_the_empty_item_is_a_model_that_returns_nothing(item: Any) -> None:
    answer = await ScriptedModel(item).respond(asked())

    assert (answer.content, answer.stop_reason) == ((), "stop")
    assert answer.usage == Usage(input=3)


async def test_a_message_is_given_as_it_is() -> None:
    message = Message(role="assistant", content="cut", stop_reason="length", provider="other")

    assert await ScriptedModel(message).respond(asked()) is message


@pytest.mark.parametrize("item", [TimeoutError("slow"), TimeoutError, ModelError("busy")])
async def test_an_exception_is_raised_every_time_its_place_comes(item: Any) -> None:
    model = ScriptedModel("one", item)

    for _ in range(2):
        with pytest.raises(item if isinstance(item, type) else type(item)):
            await model.respond(asked(said("one")))


async def test_a_function_is_given_the_messages_and_answers_in_any_way() -> None:
    async def later(messages: list[Message]) -> list[Any]:
        return [f"You said {messages[-1].text!r}", call("now")]

    def fails(messages: list[Message]) -> Exception:
        return ModelError("busy", retryable=True, retry_after=3)

    model = ScriptedModel(later, fails, lambda messages: "done")

    assert (await model.respond(asked())).content == (
        TextBlock(text="You said 'Where is it?'"),
        ToolCallBlock(id="call_1_1", name="now"),
    )
    with pytest.raises(ModelError) as raised:
        await model.respond(asked(said("one")))
    assert (raised.value.retryable, raised.value.retry_after) == (True, 3)


async def test_a_function_in_last_place_serves_every_later_call() -> None:
    model = ScriptedModel("Hello.", lambda messages: f"{len(messages)} messages")

    assert (await model.respond(asked(*[said("x")] * 5))).text == "11 messages"


async def test_past_its_end_the_script_says_so() -> None:
    model = ScriptedModel("one", "two")

    with pytest.raises(ModelError) as raised:
        await model.respond(asked(said("one"), said("two")))

    assert str(raised.value) == "the script has ended: it has 2 items, and this is call 3"
    assert not raised.value.retryable


async def test_a_script_can_begin_in_the_middle_of_a_conversation() -> None:
    model = ScriptedModel("third", "fourth", start=2)

    assert (await model.respond(asked(said("x"), said("y")))).text == "third"
    with pytest.raises(ModelError, match="starts after 2 assistant messages, but was sent 1"):
        await model.respond(asked(said("x")))


async def test_every_list_of_messages_that_it_was_sent_is_kept() -> None:
    model = ScriptedModel("one", TimeoutError)

    await model.respond(asked())
    with pytest.raises(TimeoutError):
        await model.respond(asked(said("one")))

    assert model.requests == [[QUESTION], [QUESTION, said("one"), QUESTION]]


async def test_words_are_passed_on_when_it_streams_and_someone_listens() -> None:
    message = Message(
        role="assistant",
        content=(
            ThinkingBlock(thinking="It may be lost."),
            TextBlock(text=" On  its\nway.\n"),
            ToolCallBlock(id="1", name="now", arguments={"zone": "Zürich"}),
        ),
    )
    streaming, still = ScriptedModel(message, stream=True), ScriptedModel(message)
    heard: list[Delta] = []
    unheard: list[Delta] = []

    assert await streaming.respond(asked(), heard.append) == message
    assert await streaming.respond(asked()) == message
    assert await still.respond(asked(), unheard.append) == message

    assert heard == [
        Delta("thinking", "It may be lost.", 0),
        Delta("text", " On", 1),
        Delta("text", "  its", 1),
        Delta("text", "\nway.", 1),
        Delta("text", "\n", 1),
        Delta("tool_arguments", '{"zone": "Zürich"}', 2, "1", "now"),
    ]
    assert unheard == []


async def test_a_delayed_answer_can_be_cancelled_between_its_words() -> None:
    model = ScriptedModel("one two three four", delay=3600, stream=True)
    slow = ScriptedModel("one", delay=3600)

    for running in (
        asyncio.create_task(model.respond(asked(), lambda delta: None)),
        asyncio.create_task(slow.respond(asked())),
    ):
        await asyncio.sleep(0)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running


async def test_the_delay_is_spread_over_the_words() -> None:
    loop = asyncio.get_running_loop()
    times: list[float] = []
    begun = loop.time()

    await ScriptedModel("a b c d", delay=0.4, stream=True).respond(
        asked(), lambda delta: times.append(loop.time() - begun)
    )

    assert times == sorted(times)
    assert all(time >= 0.1 * place for place, time in enumerate(times, start=1))


@pytest.mark.parametrize("item", [7, None, [7], Message(role="user", content="no"), int, {"a": 1}])
def test_what_cannot_be_an_answer_is_refused_at_once(item: Any) -> None:
    with pytest.raises(AgentError, match="item 2 of the script is "):
        ScriptedModel("one", item)


async def test_a_function_that_returns_no_answer_is_a_clear_error() -> None:
    def answer(messages: list[Message]) -> Any:
        return 7

    with pytest.raises(
        ModelError, match="the script's function returned 7, which is not an answer"
    ):
        await ScriptedModel(answer).respond(asked())
