"""Cancel: a run stops, what it has is kept, and the session is ready for the next."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from perdure import Agent, CommandError, Message, RunCancelledError, Session, tool
from perdure.models.protocol import Delta
from perdure.models.scripted import call
from tests.engine.agents import add, echo, scripted, shape, texts, watched
from tests.engine.conftest import Serving


class Talker:
    """A model that says half of its answer, tells that it did, and never comes to the end."""

    name = "talker"

    def __init__(self, *words: str) -> None:
        self._words = words
        self.has_spoken = asyncio.Event()
        self.was_cancelled = asyncio.Event()

    async def respond(self, request: Any, on_delta: Any = None) -> Message:
        if request.messages[-1].text == "short":
            return Message(role="assistant", content="fine")
        if on_delta is not None:
            for word in self._words:
                on_delta(Delta("text", word, 0))
        self.has_spoken.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.was_cancelled.set()
            raise
        raise AssertionError


async def still_usable(session: Session) -> None:
    assert (await (await session.run("short")))[-1].text == "fine"


async def test_cancel_stops_the_model_call_and_keeps_what_it_said(serving: Serving) -> None:
    """6.6: partial text is a message with stop reason aborted; the session is ready at once."""
    model = Talker("Once ", "upon")
    async with serving(Agent("agent", model=model)) as sessions:
        session = await sessions.open("talker", agent="agent")
        run = await session.run("a story", stream=True)
        await model.has_spoken.wait()
        await session.cancel()

        events, error = await watched(run)
        assert isinstance(error, RunCancelledError)
        assert (await session.status()).last_error is None  # somebody wanted it
        await model.was_cancelled.wait()
        [question, partial] = await session.messages()
        assert (question.text, partial.text) == ("a story", "Once upon")
        assert partial.stop_reason == "aborted"
        assert shape(events) == [
            "agent_start*",
            "turn_start",
            "message_start",
            "message_update",
            "message_end*",
            "turn_end",
        ]
        await still_usable(session)


async def test_without_streaming_a_cancelled_answer_leaves_nothing(serving: Serving) -> None:
    """There is no half of an answer that came in one piece."""
    model = Talker("Once ", "upon")
    async with serving(Agent("agent", model=model)) as sessions:
        session = await sessions.open("all-or-nothing", agent="agent")
        run = await session.run("a story")
        await model.has_spoken.wait()
        await session.cancel()
        with pytest.raises(RunCancelledError):
            await run
        assert texts(await session.entries()) == ["a story"]


async def test_cancel_before_the_model_said_anything_keeps_the_input_only(
    serving: Serving,
) -> None:
    model = Talker()
    async with serving(Agent("agent", model=model)) as sessions:
        session = await sessions.open("speechless", agent="agent")
        run = await session.run("a story")
        await model.has_spoken.wait()
        await session.cancel(run.id)
        with pytest.raises(RunCancelledError):
            await run
        assert texts(await session.entries()) == ["a story"]
        await still_usable(session)


async def test_cancel_answers_open_tool_calls_as_interrupted(serving: Serving) -> None:
    """6.6: what is finished keeps its result; the log is valid for a provider."""
    is_running = asyncio.Event()

    @tool
    async def endless() -> str:
        is_running.set()
        await asyncio.Event().wait()
        return "never"

    agent = scripted([call("add", a=1, b=2), call("endless")], "ok", tools=[add, endless])
    async with serving(agent) as sessions:
        session = await sessions.open("interrupted-tools", agent="agent")
        run = await session.run("go")
        async for event in run:
            if event.type == "tool_execution_end" and event.tool_name == "add":
                break
        await is_running.wait()
        await session.cancel()
        with pytest.raises(RunCancelledError):
            await run
        results = [(m.text, m.is_error) for m in await session.messages() if m.tool_call_id]
        assert results == [("3", False), ("tool execution interrupted", True)]
        assert (await (await session.run("and?")))[-1].text == "ok"


async def test_cancel_takes_a_run_from_the_queue(serving: Serving) -> None:
    """Its outcome is stored; the one in progress goes on, and so does the one behind."""
    model = Talker()
    async with serving(Agent("agent", model=model)) as sessions:
        session = await sessions.open("queued", agent="agent")
        first = await session.run("a story")
        second = await session.run("short")
        third = await session.run("short")
        await model.has_spoken.wait()
        await session.cancel(second.id)
        with pytest.raises(RunCancelledError):
            await second
        status = await session.status()
        assert status.doing is not None
        assert status.doing.command_id == first.id
        assert [item.command_id for item in status.queue] == [third.id]
        await session.cancel()
        with pytest.raises(RunCancelledError):
            await first
        assert (await third)[-1].text == "fine"
        assert texts(await session.entries()) == ["a story", "short", "fine"]


async def test_where_there_is_nothing_to_cancel_that_is_said(serving: Serving) -> None:
    async with serving(echo()) as sessions:
        session = await sessions.open("nothing-runs", agent="agent")
        run = await session.run("hello")
        await run
        for run_id in (None, run.id, "unknown"):
            with pytest.raises(CommandError, match="nothing to cancel"):
                await session.cancel(run_id)


async def test_a_cancelled_run_can_be_gone_on_with(serving: Serving) -> None:
    """6.4, 6.6: a run without input continues from the leaf."""
    calls: list[int] = []

    @tool
    async def count() -> int:
        calls.append(1)
        return len(calls)

    agent = scripted(*([call("count")] for _ in range(200)), "done", tools=[count], max_turns=500)
    async with serving(agent, max_history_events=30) as sessions:
        session = await sessions.open("to-and-fro", agent="agent")
        run = await session.run("count to 200")
        async for event in run:
            if event.turn == 5:
                break
        await session.cancel()
        with pytest.raises(RunCancelledError):
            await run
        assert (await (await session.run()))[-1].text == "done"
        said = [m.text for m in await session.messages() if m.tool_call_id and not m.is_error]
        assert [int(text) for text in said] == sorted(int(text) for text in said)
