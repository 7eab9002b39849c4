"""Tools in a run: in parallel, at most once, and never the end of the run."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any

import pytest

from perdure import ImageBlock, TextBlock, ToolContext, tool
from perdure.models.scripted import call
from tests.engine.agents import add, scripted, texts
from tests.engine.conftest import Serving
from tests.engine.histories import until


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

    [result] = await results_of(serving, "tools-too-long", [endless], call("endless"))
    assert result.is_error
    assert result.text == "the tool endless did not finish within 0.2 seconds"


async def test_a_result_too_large_to_be_passed_on_is_an_error_that_the_model_reads(
    serving: Serving,
) -> None:
    @tool(max_result=None)
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


async def test_a_call_that_is_not_parallel_runs_alone_and_in_its_place(serving: Serving) -> None:
    """Those before it are over when it starts, and it is when those after it do."""
    running: set[str] = set()
    seen: list[tuple[str, set[str]]] = []
    together = asyncio.Barrier(2)

    async def work(name: str) -> str:
        running.add(name)
        seen.append((name, set(running)))
        await asyncio.sleep(0.1)  # time for others to begin, if they would
        running.remove(name)
        return name

    @tool
    async def beside(name: str) -> str:
        await together.wait()
        return await work(name)

    @tool(parallel=False)
    async def alone(name: str) -> str:
        return await work(name)

    names = ["a", "b", "C", "D", "e", "f"]
    calls = [call("alone" if name.isupper() else "beside", name=name) for name in names]
    results = await results_of(serving, "tools-alone", [beside, alone], *calls)
    assert [result.text for result in results][2:4] == ["C", "D"]
    assert [name for name, _ in seen][2:4] == ["C", "D"]
    beside_it = dict(seen)
    assert (beside_it["C"], beside_it["D"]) == ({"C"}, {"D"})
    assert {name for name, _ in seen[:2]} == {"a", "b"}
    assert {name for name, _ in seen[4:]} == {"e", "f"}


async def test_a_call_that_is_not_parallel_waits_for_the_approval_of_those_before_it(
    serving: Serving,
) -> None:
    """What comes after it waits with it, and what needs nobody and comes before goes on."""
    ran: list[str] = []

    @tool(needs_approval=True, parallel=False)
    async def write(name: str) -> str:
        ran.append(name)
        return name

    @tool
    async def read(name: str) -> str:
        ran.append(name)
        return name

    calls = [call("read", name="1"), call("write", name="2"), call("read", name="3")]
    async with serving(scripted(calls, "done", tools=[write, read])) as sessions:
        session = await sessions.open("tools-approved-alone", agent="agent")
        run = await session.run("go")

        async def has_read() -> bool:
            return texts(await session.entries())[-1] == "1"

        await until(has_read)
        [asked] = await session.approvals()
        assert ran == ["1"]
        await session.approve(asked)
        await run
        assert ran == ["1", "2", "3"]


@pytest.mark.parametrize(
    "fault, told",
    [
        (KeyboardInterrupt(), "RuntimeError: the tool raised KeyboardInterrupt"),
        (SystemExit(2), "RuntimeError: the tool tried to end the process: exit status 2"),
        (asyncio.CancelledError(), "RuntimeError: the tool was cancelled from inside"),
        (BaseExceptionGroup("x", [KeyboardInterrupt()]), "the tool raised BaseExceptionGroup"),
    ],
)
@pytest.mark.parametrize("is_async", [True, False])
async def test_whatever_a_tool_raises_is_a_result_and_its_worker_lives_on(
    serving: Serving, fault: BaseException, told: str, is_async: bool
) -> None:
    def raise_it() -> str:
        raise fault

    async def raise_it_too() -> str:
        raise fault

    broken = tool(raise_it_too if is_async else raise_it, name="broken")
    session_id = f"tools-raises/{type(fault).__name__}/{is_async}"
    wrong, right = await results_of(
        serving, session_id, [broken, add], call("broken"), call("add", a=1, b=2)
    )
    assert {wrong.is_error, right.is_error} == {True, False}
    assert told in (wrong.text if wrong.is_error else right.text)


async def test_an_exception_without_a_readable_text_is_a_result_that_names_it(
    serving: Serving,
) -> None:
    class Mute(Exception):
        def __str__(self) -> str:
            raise ValueError("no words")

    @tool
    async def broken() -> str:
        raise Mute

    [result] = await results_of(serving, "tools-mute", [broken], call("broken"))
    assert result.is_error
    assert result.text == "Mute, whose text cannot be read"


async def test_numbers_that_json_does_not_have_are_told_by_name(serving: Serving) -> None:
    @tool
    async def measure() -> dict[str, float]:
        return {"x": float("nan"), "y": float("-inf")}

    [result] = await results_of(serving, "tools-nan", [measure], call("measure"))
    assert (result.text, result.is_error) == ('{"x":NaN,"y":-Infinity}', False)


async def test_text_and_errors_too_long_for_a_model_are_cut_and_images_are_not(
    serving: Serving,
) -> None:
    """The beginning and the end stay, and a note says how much is missing."""
    image = ImageBlock(data="aGk=" * 1_000, mime_type="image/png")

    @tool(max_result=30)
    async def long(fails: bool) -> list[Any]:
        if fails:
            raise ValueError("e" * 1_000)
        return ["a" * 100, image, "z" * 100]

    calls = call("long", fails=False), call("long", fails=True)
    results = await results_of(serving, "tools-cut", [long], *calls)
    [result] = [result for result in results if not result.is_error]
    [error] = [result for result in results if result.is_error]
    note = "\n[… 170 of 200 characters are left out here: a result of this tool is cut to 30 …]\n"
    assert result.content == (
        TextBlock(text="a" * 20 + note),
        image,
        TextBlock(text="z" * 10),
    )
    assert error.text.startswith("ValueError: eeeeeeee\n[… 982 of 1,012 characters")


async def test_results_are_cut_to_a_hundred_thousand_characters_by_default(
    serving: Serving,
) -> None:
    @tool
    async def flood() -> str:
        return "x" * 3_000_000

    [result] = await results_of(serving, "tools-default-cut", [flood], call("flood"))
    assert not result.is_error
    assert result.text.count("x") == 100_000
    assert "[… 2,900,000 of 3,000,000 characters are left out here" in result.text
