"""Busy sessions: a run waits, is refused, or joins the one in progress."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from perdure import Agent, Message, SessionBusyError, ephemeral, tool
from perdure.models.scripted import ScriptedModel, call
from tests.engine.agents import shape, texts
from tests.engine.conftest import Serving


class Held:
    """A tool that runs until it is let go."""

    def __init__(self) -> None:
        self.is_running = asyncio.Event()
        self.may_end = asyncio.Event()

        @tool
        async def work() -> str:
            self.is_running.set()
            await self.may_end.wait()
            return "worked"

        self.tool = work


async def test_a_run_that_steers_reaches_the_model_at_its_next_call(serving: Serving) -> None:
    """Its entries are stored after the results that were under way, and each has its receipt."""
    held = Held()
    model = ScriptedModel([call("work")], "Blue it is.")
    async with serving(Agent("agent", model=model, tools=[held.tool])) as sessions:
        session = await sessions.open("steered", agent="agent")
        run = await session.run("paint it")
        await held.is_running.wait()
        steering = await session.run("in blue", ephemeral("quickly"), when_busy="steer")
        held.may_end.set()

        assert [m.text for m in await run] == ["", "worked", "in blue", "Blue it is."]
        assert [m.text for m in await steering] == ["Blue it is."]
        assert [m.text for m in model.requests[1]][2:] == ["worked", "in blue", "quickly"]
        assert shape([event async for event in run]) == [
            "agent_start*",
            "turn_start",
            "message_start",
            "message_end*",
            "tool_execution_start",
            "tool_execution_end",
            "message_start",
            "message_end*",
            "turn_end",
            "message_start",
            "message_end*",
            "turn_start",
            "message_start",
            "message_end*",
            "turn_end",
            "agent_end",
        ]


async def test_steering_that_comes_during_the_last_call_is_answered_too(serving: Serving) -> None:
    """The run goes on until whoever joined it has been heard."""
    is_asked, may_answer = asyncio.Event(), asyncio.Event()

    async def first(messages: Sequence[Message]) -> str:
        is_asked.set()
        await may_answer.wait()
        return "first"

    model = ScriptedModel(first, "second")
    async with serving(Agent("agent", model=model)) as sessions:
        session = await sessions.open("late-steering", agent="agent")
        run = await session.run("one")
        await is_asked.wait()
        steering = await session.run("two", when_busy="steer")
        may_answer.set()
        assert [m.text for m in await run] == ["first", "two", "second"]
        assert [m.text for m in await steering] == ["second"]
        assert texts(await session.entries()) == ["one", "first", "two", "second"]


async def test_steering_an_idle_session_is_a_run(serving: Serving) -> None:
    async with serving(Agent("agent", model=ScriptedModel("hello"))) as sessions:
        session = await sessions.open("idle-steering", agent="agent")
        assert [m.text for m in await (await session.run("hi", when_busy="steer"))] == ["hello"]


async def test_a_run_that_does_not_want_to_wait_is_refused(serving: Serving) -> None:
    """Nothing of it is stored."""
    held = Held()
    model = ScriptedModel([call("work")], "done", "again")
    async with serving(Agent("agent", model=model, tools=[held.tool])) as sessions:
        session = await sessions.open("busy", agent="agent")
        run = await session.run("go")
        await held.is_running.wait()
        with pytest.raises(SessionBusyError, match="busy"):
            await session.run("now!", when_busy="reject")
        held.may_end.set()
        await run
        assert [m.text for m in await (await session.run("now?", when_busy="reject"))] == ["again"]
        assert "now!" not in texts(await session.entries())


async def test_steering_and_continue_as_new_do_not_lose_each_other(serving: Serving) -> None:
    """Ten steers into a run that is renewed at every step: all stored, all answered, in order."""
    steps = [[call("tick")] for _ in range(25)]
    started = asyncio.Event()

    @tool
    async def tick() -> str:
        started.set()
        await asyncio.sleep(0.02)
        return "tick"

    model = ScriptedModel(*steps, *["done"] * 12)
    async with serving(Agent("agent", model=model, tools=[tick]), max_history_events=1) as sessions:
        session = await sessions.open("renewed-steering", agent="agent")
        run = await session.run("go")
        await started.wait()
        steers = [await session.run(f"s{n}", when_busy="steer") for n in range(10)]
        assert (await run)[-1].text == "done"
        for steer in steers:
            assert (await steer)[-1].text == "done"
        said = [text for text in texts(await session.entries()) if text.startswith("s")]
        assert said == [f"s{n}" for n in range(10)]
