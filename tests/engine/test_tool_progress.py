"""Tools that take long: they tell how they get on, and they can be stopped."""

from __future__ import annotations

import asyncio
import math
import threading
from collections.abc import Callable
from typing import Any

import pytest

from perdure import Run, RunCancelledError, RunEvent, ToolContext, tool
from perdure.models.scripted import call
from perdure.session_id import workflow_id
from tests.engine.agents import add, scripted
from tests.engine.conftest import Serving
from tests.engine.histories import counted


async def watched_until(run: Run, text: str, then: Callable[[], None]) -> list[RunEvent]:
    """The events of the run. When a tool reports that text, something is done."""
    events: list[RunEvent] = []
    async for event in run:
        events.append(event)
        if event.progress == text:
            then()
    return events


def reports(events: list[RunEvent]) -> list[tuple[str, float | None]]:
    return [(e.progress, e.fraction) for e in events if e.type == "tool_execution_update"]


async def test_watchers_hear_how_an_async_tool_gets_on(serving: Serving) -> None:
    """The reports belong to the call, and are between its start and its end."""
    may_end = asyncio.Event()

    @tool
    async def work(ctx: ToolContext) -> str:
        ctx.progress("unpacking", 0.25)
        ctx.progress("half of it", fraction=0.5)
        await may_end.wait()
        return "done"

    async with serving(scripted([call("work")], "ok", tools=[work])) as sessions:
        session = await sessions.open("progress-progress", agent="agent")
        run = await session.run("go", stream=True)
        events = await watched_until(run, "half of it", may_end.set)
    assert reports(events) == [("unpacking", 0.25), ("half of it", 0.5)]
    told = [event for event in events if event.type.startswith("tool_execution")]
    assert [event.type.removeprefix("tool_execution_") for event in told] == [
        *("start", "update", "update", "end"),
    ]
    assert {(e.tool_call_id, e.tool_name, e.turn) for e in told} == {("call_1_1", "work", 1)}
    assert [event.is_passing for event in told] == [False, True, True, False]


async def test_a_tool_in_a_thread_reports_too_and_a_sibling_does_not_hide_it(
    serving: Serving,
) -> None:
    """The sibling's end is counted before the report comes."""
    may_report, may_end = threading.Event(), threading.Event()

    @tool
    def work(ctx: ToolContext) -> str:
        assert may_report.wait(30)
        ctx.progress("in a thread")
        assert may_end.wait(30)
        return "done"

    agent = scripted([call("work"), call("add", a=1, b=2)], "ok", tools=[work, add])
    async with serving(agent) as sessions:
        session = await sessions.open("progress-thread-progress", agent="agent")
        events = []
        async for event in await session.run("go", stream=True):
            events.append(event)
            if event.type == "message_end" and event.tool_name == "add":
                may_report.set()
            if event.progress:
                may_end.set()
    assert reports(events) == [("in a thread", None)]


async def test_nothing_is_sent_when_nobody_asked_for_it(serving: Serving) -> None:
    @tool
    async def work(ctx: ToolContext) -> str:
        for number in range(100):
            ctx.progress(f"step {number}", number / 100)
            await asyncio.sleep(0.01)
        return "done"

    async with serving(scripted([call("work")], "ok", tools=[work])) as sessions:
        session = await sessions.open("progress-quiet", agent="agent")
        await (await session.run("go"))
        events = await counted(sessions.client, workflow_id("progress-quiet"))
    assert events["WORKFLOW_EXECUTION_SIGNALED"] == 0


async def test_a_flood_of_reports_is_a_trickle_to_the_workflow(serving: Serving) -> None:
    """The last of each batch count; what cannot be shown does no harm."""
    may_end = threading.Event()

    @tool
    def work(ctx: ToolContext) -> str:
        for number in range(100_000):
            ctx.progress(f"step {number}")
        ctx.progress("x" * 10_000, math.nan)
        ctx.progress("beyond", 17)
        ctx.progress("last")
        assert may_end.wait(30)
        return "done"

    async with serving(scripted([call("work")], "ok", tools=[work])) as sessions:
        session = await sessions.open("progress-flood-of-reports", agent="agent")
        run = await session.run("go", stream=True)
        events = await watched_until(run, "last", may_end.set)
        history = await counted(sessions.client, workflow_id("progress-flood-of-reports"))
    assert history["WORKFLOW_EXECUTION_SIGNALED"] <= 10
    told = reports(events)
    assert len(told) <= 200
    assert told[-3:] == [("x" * 2_000, None), ("beyond", 1.0), ("last", None)]


@pytest.mark.parametrize("by", ["cancel", "timeout"])
async def test_a_tool_in_a_thread_sees_that_nobody_waits_any_more(
    serving: Serving, by: str
) -> None:
    """It cannot be stopped from outside, so it looks now and then; afterwards nobody listens."""
    started, stopped = asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()

    @tool(timeout=0.5 if by == "timeout" else None)
    def endless(ctx: ToolContext) -> str:
        loop.call_soon_threadsafe(started.set)
        pause = threading.Event()
        while not ctx.is_cancelled:
            pause.wait(0.01)
        ctx.progress("too late")
        stopped.set()
        return "never read"

    async with serving(scripted([call("endless")], "ok", tools=[endless])) as sessions:
        session = await sessions.open(f"progress-thread-{by}", agent="agent")
        run = await session.run("go", stream=True)
        await started.wait()
        if by == "cancel":
            await session.cancel()
            with pytest.raises(RunCancelledError):
                await run
        assert await asyncio.to_thread(stopped.wait, 30)
        messages = await session.messages() if by == "cancel" else await run
        [result] = [message for message in messages if message.role == "tool_result"]
        expected = {
            "cancel": "tool execution interrupted",
            "timeout": "the tool endless did not finish within 0.5 seconds",
        }
        assert result.text == expected[by]


async def test_an_async_tool_is_cancelled_with_its_run(serving: Serving) -> None:
    started, was_cancelled = asyncio.Event(), asyncio.Event()

    @tool
    async def endless(ctx: ToolContext) -> str:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            was_cancelled.set()
        raise AssertionError

    async with serving(scripted([call("endless")], "ok", tools=[endless])) as sessions:
        session = await sessions.open("progress-async-cancel", agent="agent")
        run = await session.run("go")
        await started.wait()
        await session.cancel()
        await asyncio.wait_for(was_cancelled.wait(), 30)
        with pytest.raises(RunCancelledError):
            await run


def test_a_context_that_a_test_makes_reports_to_nobody() -> None:
    context = ToolContext("session", "run", "call")
    context.progress("hello", 0.5)
    assert not context.is_cancelled
    made: Any = ToolContext("session", "run", "call", attempt=1)
    assert context == made
