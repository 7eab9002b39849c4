"""Tools in a run: in parallel, at most once, and never the end of the run."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any

from perdure import ImageBlock, ToolContext, tool
from perdure.models.scripted import call
from tests.engine.agents import add, scripted, texts
from tests.engine.conftest import Serving


async def results_of(serving: Serving, session_id: str, tools: list[Any], *calls: Any) -> list[Any]:
    """What the model read of these calls."""
    async with serving(scripted([*calls], "done", tools=tools)) as sessions:
        session = await sessions.open(session_id, agent="agent")
        messages = await (await session.run("go"))
        return [message for message in messages if message.role == "tool_result"]


async def test_calls_of_one_message_run_side_by_side(serving: Serving) -> None:
    """Each result is stored as it arrives: the quick one first."""
    slow_may_end = asyncio.Event()

    @tool
    async def slow() -> str:
        await slow_may_end.wait()
        return "slow"

    @tool
    async def quick() -> str:
        return "quick"

    agent = scripted([call("slow"), call("quick")], "done", tools=[slow, quick])
    async with serving(agent) as sessions:
        session = await sessions.open("parallel", agent="agent")
        run = await session.run("go")
        async for event in run:
            if event.type == "tool_execution_end":
                slow_may_end.set()
        assert [message.text for message in await run] == ["", "quick", "slow", "done"]


async def test_a_tool_that_raises_is_a_result_that_the_model_reads(serving: Serving) -> None:
    @tool
    async def broken() -> str:
        raise RuntimeError("the disk is on fire")

    [result] = await results_of(serving, "raises", [broken], call("broken"))
    assert result.is_error
    assert result.text == "RuntimeError: the disk is on fire"


async def test_arguments_that_do_not_fit_are_a_result_that_the_model_reads(
    serving: Serving,
) -> None:
    [result] = await results_of(serving, "misfit", [add], call("add", a="many", b=1))
    assert result.is_error
    assert "a" in result.text
    assert "integer" in result.text


async def test_a_tool_that_does_not_exist_is_a_result_that_names_those_that_do(
    serving: Serving,
) -> None:
    [result] = await results_of(serving, "unknown-tool", [add], call("subtract", a=1, b=1))
    assert result.is_error
    assert result.text == "there is no tool 'subtract'; the tools are: add"


async def test_a_tool_that_takes_too_long_is_a_result_that_says_so(serving: Serving) -> None:
    @tool(timeout=0.2)
    async def endless() -> str:
        await asyncio.Event().wait()
        return "never"

    [result] = await results_of(serving, "too-long", [endless], call("endless"))
    assert result.is_error
    assert result.text == "the tool endless did not finish within 0.2 seconds"


async def test_a_result_too_large_to_be_passed_on_is_an_error_that_the_model_reads(
    serving: Serving,
) -> None:
    @tool
    async def flood() -> str:
        return "x" * 3_000_000

    [result] = await results_of(serving, "flood", [flood], call("flood"))
    assert result.is_error
    assert "1,000,000" in result.text


async def test_results_may_be_more_than_text(serving: Serving) -> None:
    @tool
    async def picture() -> list[Any]:
        return [ImageBlock(data="aGk=", mime_type="image/png")]

    [result] = await results_of(serving, "picture", [picture], call("picture"))
    assert result.content == (ImageBlock(data="aGk=", mime_type="image/png"),)


async def test_a_tool_knows_which_call_it_is(serving: Serving) -> None:
    """The call's ID is a stable key for the outside world."""
    seen: list[ToolContext] = []

    @tool
    async def look(ctx: ToolContext) -> str:
        seen.append(ctx)
        return "seen"

    [result] = await results_of(serving, "context", [look], call("look"))
    [context] = seen
    assert context.session_id == "context"
    assert context.tool_call_id == result.tool_call_id
    assert context.attempt == 1
    assert context.run_id


async def test_a_function_that_is_not_async_runs_off_the_event_loop(serving: Serving) -> None:
    threads: list[str] = []

    @tool
    def plain(word: str) -> str:
        threads.append(threading.current_thread().name)
        return word.upper()

    [result] = await results_of(serving, "plain", [plain], call("plain", word="loud"))
    assert result.text == "LOUD"
    assert threads != [threading.main_thread().name]


async def test_a_tool_that_blocks_the_event_loop_is_not_taken_for_dead(serving: Serving) -> None:
    """Heartbeats go on from a thread; six seconds are longer than a dead worker's silence."""
    runs: list[int] = []

    @tool
    async def rude() -> str:
        runs.append(1)
        time.sleep(6)  # noqa: ASYNC251 - that is what is rude about it
        return "finally"

    [result] = await results_of(serving, "rude", [rude], call("rude"))
    assert (result.text, result.is_error, len(runs)) == ("finally", False, 1)


async def test_orphaned_calls_of_a_resumed_log_are_repaired_in_view_and_not_in_the_log(
    serving: Serving,
) -> None:
    """4.4: what a crash of whoever wrote the log left open is answered for the model."""
    from perdure import Message, MessageEntry, ToolCallBlock, text

    asked = Message(role="assistant", content=[ToolCallBlock(id="c1", name="add")])
    agent = scripted("never said", "It was interrupted.", tools=[add])
    async with serving(agent) as sessions:
        session = await sessions.open("orphan", agent="agent")
        await session.append(text("1 + 2?"), MessageEntry(message=asked))
        [answer] = await (await session.run())

        assert answer.text == "It was interrupted."
        [request] = agent.model.requests  # type: ignore[union-attr]
        assert (request[-1].role, request[-1].text) == (
            "tool_result",
            "tool execution interrupted",
        )
        assert texts(await session.entries()) == ["1 + 2?", "", "It was interrupted."]
