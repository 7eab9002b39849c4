"""Busy sessions: a run waits, is refused, or joins the one in progress."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from perdure import Agent, MaxTurnsError, Message, SessionBusyError, ephemeral, tool
from perdure.models.scripted import ScriptedModel, call
from perdure.session_id import workflow_id
from perdure.workflows.agent_run import MAX_JOINED
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


async def test_a_run_takes_so_many_along_and_no_more(serving: Serving) -> None:
    """The others run next, in their order; what a run carries is bounded."""
    is_asked, may_answer = asyncio.Event(), asyncio.Event()

    async def first(messages: Sequence[Message]) -> str:
        is_asked.set()
        await may_answer.wait()
        return "first"

    model = ScriptedModel(first, lambda messages: f"after {messages[-1].text}")
    async with serving(Agent("agent", model=model)) as sessions:
        session = await sessions.open("steering-crowd", agent="agent")
        run = await session.run("go")
        await is_asked.wait()
        steers = [
            await session.run(str(number), when_busy="steer") for number in range(MAX_JOINED + 2)
        ]
        may_answer.set()
        assert (await run)[-1].text == f"after {MAX_JOINED - 1}"
        ends = [(await steer)[-1].text for steer in steers]
        assert ends[:MAX_JOINED] == [f"after {MAX_JOINED - 1}"] * MAX_JOINED
        assert ends[MAX_JOINED:] == [f"after {MAX_JOINED}", f"after {MAX_JOINED + 1}"]


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


async def test_a_run_out_of_turns_ends_well_though_somebody_would_steer_it(
    serving: Serving,
) -> None:
    """It has nothing more to do, so it is over; whoever would have joined it runs next."""
    is_asked, may_answer = asyncio.Event(), asyncio.Event()

    async def last(messages: Sequence[Message]) -> str:
        is_asked.set()
        await may_answer.wait()
        return "finished"

    held = Held()
    model = ScriptedModel([call("work")], last, "steered", "queued")
    agent = Agent("agent", model=model, tools=[held.tool], max_turns=2)
    async with serving(agent) as sessions:
        session = await sessions.open("steering-last-turn", agent="agent")
        run = await session.run("go")
        held.may_end.set()
        await is_asked.wait()
        queued = await session.run("and then")
        steering = await session.run("faster", when_busy="steer")
        may_answer.set()
        assert [m.text for m in await run] == ["", "worked", "finished"]
        assert [m.text for m in await steering] == ["steered"]
        assert [m.text for m in await queued] == ["queued"]


async def test_a_run_that_fails_for_its_turns_does_not_take_along_who_would_steer_it(
    serving: Serving,
) -> None:
    held = Held()
    model = ScriptedModel([call("work")], "steered")
    agent = Agent("agent", model=model, tools=[held.tool], max_turns=1)
    async with serving(agent) as sessions:
        session = await sessions.open("steering-too-many-turns", agent="agent")
        run = await session.run("go")
        await held.is_running.wait()
        steering = await session.run("faster", when_busy="steer")
        held.may_end.set()
        with pytest.raises(MaxTurnsError):
            await run
        assert [m.text for m in await steering] == ["steered"]
        assert texts(await session.entries()) == ["go", "", "worked", "faster", "steered"]


async def test_a_run_that_is_still_starting_is_joined(serving: Serving) -> None:
    """Both come at once, while no worker is there."""
    model = ScriptedModel("Blue it is.", "never said")
    agent = Agent("agent", model=model)
    async with serving(agent, task_queue="steering-starting") as sessions:
        session = await sessions.open("steering-starting", agent="agent")
    handle = sessions.client.get_workflow_handle(workflow_id("steering-starting"))
    await handle.signal("run", {"command_id": "first", "entries": "paint it"})
    await handle.signal("run", {"command_id": "joins", "entries": "in blue", "when_busy": "steer"})
    async with serving(agent, task_queue="steering-starting"):
        assert [m.text for m in await session.attach("first")] == ["in blue", "Blue it is."]
        assert [m.text for m in await session.attach("joins")] == ["Blue it is."]


@pytest.mark.parametrize("is_cancelled", [False, True])
async def test_who_would_steer_a_run_that_does_not_start_runs_instead(
    serving: Serving, is_cancelled: bool
) -> None:
    """The first one has nothing to say, or is cancelled; nobody waits for ever. All of them come
    at once, while no worker is there.
    """
    agent = Agent("agent", model=ScriptedModel("Fine."))
    queue = f"steering-no-start-{is_cancelled}"
    async with serving(agent, task_queue=queue) as sessions:
        session = await sessions.open(queue, agent="agent")
    handle = sessions.client.get_workflow_handle(workflow_id(queue))
    await handle.signal("run", {"command_id": "first", "entries": []})
    await handle.signal("run", {"command_id": "joins", "entries": "hi", "when_busy": "steer"})
    if is_cancelled:
        await handle.signal("cancel", "first")
    async with serving(agent, task_queue=queue):
        assert [m.text for m in await session.attach("joins")] == ["Fine."]
        assert texts(await session.entries()) == ["hi", "Fine."]
