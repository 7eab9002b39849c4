"""A streamed run: those who watch it hear what the model says while it says it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from perdure import Agent, AgentError, Message, ModelError, Run, RunEvent, Sessions
from perdure.activities.live_events import pause_after
from perdure.messages import TextBlock, ThinkingBlock, ToolCallBlock
from perdure.models.protocol import Delta, OnDelta
from perdure.models.scripted import ScriptedModel, call
from perdure.protocol import EventRecord
from perdure.run import Draft
from tests.engine.agents import add, shape, watched
from tests.engine.conftest import Serving
from tests.engine.histories import counted

SLOWLY = 0.01
"""An interval at which a test's answers are told in several batches."""


class Speaker:
    """A model that says its words one by one, and waits to be told to go on after each."""

    name = "speaker"

    def __init__(self, *words: str) -> None:
        self.words = words
        self.heard = asyncio.Event()

    async def respond(self, request: Any, on_delta: OnDelta | None = None) -> Message:
        for word in self.words:
            if on_delta is not None:
                on_delta(Delta("text", word, 0))
                await self.heard.wait()
                self.heard.clear()
        return Message(role="assistant", content="".join(self.words))


async def heard(run: Run, then: Callable[[RunEvent], None] = lambda _: None) -> list[str]:
    """What a watcher makes of a run: each piece in its turn, and `=` with each message's text."""
    lines = []
    async for event in run:
        if event.type == "message_update":
            lines.append("reset" if event.delta is None else event.delta.text)
            then(event)
        elif event.type == "message_end" and event.message is not None:
            lines.append(f"={event.message.text}")
    return lines


async def signals(sessions: Sessions, session_id: str) -> int:
    """How many signals the session's workflow was sent."""
    events = await counted(sessions.client, f"session:{session_id}")
    return events["WORKFLOW_EXECUTION_SIGNALED"]


async def test_pieces_come_while_the_message_is_written(serving: Serving) -> None:
    """6.5: between its start and its end; put together they are the message."""
    model = Speaker("Once ", "upon ", "a time")
    async with serving(Agent("agent", model=model, stream_interval=SLOWLY)) as sessions:
        session = await sessions.open("once-upon", agent="agent")
        run = await session.run("a story", stream=True)
        events = []
        async for event in run:
            events.append(event)
            if event.is_passing:
                model.heard.set()  # only now does the model go on

    assert shape(events) == [
        "agent_start*",
        "turn_start",
        "message_start",
        "message_update",
        "message_update",
        "message_update",
        "message_end*",
        "turn_end",
        "agent_end",
    ]
    updates = [event for event in events if event.is_passing]
    assert [event.delta for event in updates] == [
        Delta("text", "Once ", 0),
        Delta("text", "upon ", 0),
        Delta("text", "a time", 0),
    ]
    assert {(event.turn, event.run_id, event.leaf_id) for event in updates} == {(1, run.id, "")}


async def test_pieces_of_one_block_are_told_together_and_blocks_apart(serving: Serving) -> None:
    """Thoughts, text and the arguments of a tool, with the call that they belong to; a short answer
    costs no message of its own.
    """
    answer = Message(
        role="assistant",
        content=(
            ThinkingBlock(thinking="A sum."),
            TextBlock(text="I add them up."),
            ToolCallBlock(id="c1", name="add", arguments={"a": 1, "b": 2}),
        ),
    )
    model = ScriptedModel(answer, "It is 3.", stream=True)
    agent = Agent("agent", model=model, tools=[add], stream_interval=60)
    async with serving(agent) as sessions:
        session = await sessions.open("blocks", agent="agent")
        events, _ = await watched(await session.run("1 + 2?", stream=True))
        assert await signals(sessions, "blocks") == 0

    updates = [event for event in events if event.is_passing]
    assert [event.delta for event in updates] == [
        Delta("thinking", "A sum.", 0),
        Delta("text", "I add them up.", 1),
        Delta("tool_arguments", '{"a": 1, "b": 2}', 2, "c1", "add"),
        Delta("text", "It is 3.", 0),
    ]
    assert [event.tool_name for event in updates] == ["", "", "add", ""]


async def test_nothing_is_told_when_nobody_asked(serving: Serving) -> None:
    """What Temporal is asked and told is what it was before there was such a thing."""
    model = ScriptedModel([call("add", a=1, b=2)], "It is 3.", stream=True, delay=0.1)
    agent = Agent("agent", model=model, tools=[add], stream_interval=SLOWLY)
    async with serving(agent) as sessions:
        session = await sessions.open("unasked", agent="agent")
        run = await session.run("1 + 2?")
        events, _ = await watched(run)
        assert not any(event.is_passing for event in events)
        assert await signals(sessions, "unasked") == 0
        handle = sessions.client.get_workflow_handle("session:unasked")
        written = [event.SerializeToString() for event in (await handle.fetch_history()).events]
        for name in (b"place", b"batches", b"events", b"json_schema", b"faults"):
            assert not any(b'"%s"' % name in event for event in written)


async def test_a_stream_that_breaks_leaves_no_half_message(serving: Serving) -> None:
    """The call is made again, the watcher is told to begin anew, and one message is stored."""
    was_heard = asyncio.Event()
    attempts: list[int] = []

    class Breaking:
        name = "breaking"

        async def respond(self, request: Any, on_delta: OnDelta | None = None) -> Message:
            assert on_delta is not None
            attempts.append(1)
            if len(attempts) == 1:
                on_delta(Delta("text", "Once up", 0))
                await was_heard.wait()
                raise ModelError("the answer broke off", retryable=True, retry_after=0.1)
            on_delta(Delta("text", "Twice", 0))
            return Message(role="assistant", content="Twice")

    async with serving(Agent("agent", model=Breaking(), stream_interval=SLOWLY)) as sessions:
        session = await sessions.open("breaking", agent="agent")
        run = await session.run("a story", stream=True)
        told = await heard(run, lambda _: was_heard.set())
        assert told == ["Once up", "reset", "Twice", "=Twice"]
        assert [message.text for message in await session.messages()] == ["a story", "Twice"]


async def test_a_stream_that_breaks_for_good_stores_nothing(serving: Serving) -> None:
    class Broken:
        name = "broken"

        async def respond(self, request: Any, on_delta: OnDelta | None = None) -> Message:
            assert on_delta is not None
            on_delta(Delta("text", "Once up", 0))
            raise ModelError("the content filter stopped the answer")

    async with serving(Agent("agent", model=Broken())) as sessions:
        session = await sessions.open("broken-stream", agent="agent")
        events, error = await watched(await session.run("a story", stream=True))
        assert isinstance(error, ModelError)
        assert [entry.id for event in events for entry in event.entries] == [
            entry.id for entry in await session.entries()
        ]
        assert [message.text for message in await session.messages()] == ["a story"]


async def test_the_time_that_a_provider_asks_for_is_waited(serving: Serving) -> None:
    """Its Retry-After takes the place of the backoff."""
    waits = [0.25, 0.125]

    def busy(messages: list[Message]) -> Any:
        return ModelError("busy", retryable=True, retry_after=waits.pop()) if waits else "at last"

    async with serving(Agent("agent", model=ScriptedModel(busy))) as sessions:
        session = await sessions.open("busy", agent="agent")
        assert (await (await session.run("go")))[-1].text == "at last"
        handle = sessions.client.get_workflow_handle("session:busy")
        started = [
            event.activity_task_started_event_attributes
            for event in (await handle.fetch_history()).events
            if event.HasField("activity_task_started_event_attributes")
        ]
    [asked] = started
    wished = asked.last_failure.application_failure_info.next_retry_delay
    assert (asked.attempt, wished.ToTimedelta()) == (3, timedelta(seconds=0.25))


async def test_who_comes_late_or_twice_hears_the_rest_in_order(serving: Serving) -> None:
    """6.7: no piece of a message comes after its end, however often the workflow has continued as
    new; what counts is complete.
    """
    steps = [call("add", a=n, b=n) for n in range(4)]
    items: list[Any] = [[f"Step {n}, and so on.", step] for n, step in enumerate(steps)]
    model = ScriptedModel(*items, "All of it done.", stream=True, delay=0.1)
    agent = Agent("agent", model=model, tools=[add], stream_interval=SLOWLY)
    async with serving(agent, max_history_events=20) as sessions:
        session = await sessions.open("late", agent="agent")
        run = await session.run("go", stream=True)
        watching = asyncio.create_task(watched(run))
        late = [
            asyncio.create_task(watched(session.attach(run.id)))
            async for event in session.attach(run.id)
            if event.type == "turn_end"
        ]
        whole, _ = await watching
        for task in late:
            events, _ = await task
            check_order(events)
            assert [e for e in shape(events) if e != "message_update"] == [
                e for e in shape(whole) if e != "message_update"
            ]
        check_order(whole)


def check_order(events: list[RunEvent]) -> None:
    """Pieces only while their message is under way, and only of what it says."""
    is_written = False
    said = ""
    for event in events:
        if event.is_passing:
            assert is_written
            assert event.delta is not None
            said += event.delta.text if event.delta.kind == "text" else ""
        elif event.type in ("message_start", "message_end"):
            is_written = event.type == "message_start" and not event.tool_call_id
            if event.message is not None and not event.tool_call_id:
                assert said in event.message.text
            said = ""


async def test_a_long_answer_outgrows_neither_history_nor_the_stream(serving: Serving) -> None:
    """Between two turns the workflow continues as new, and takes none of the pieces along."""
    page = "word " * 60_000
    script = ScriptedModel([page, call("add", a=1, b=2)], page)

    class Verbose:
        name = "verbose"

        async def respond(self, request: Any, on_delta: OnDelta | None = None) -> Message:
            assert on_delta is not None
            for start in range(0, len(page), 3_000):
                on_delta(Delta("text", page[start : start + 3_000], 0))
                await asyncio.sleep(SLOWLY)
            return await script.respond(request)

    agent = Agent("agent", model=Verbose(), tools=[add], stream_interval=0.02)
    async with serving(agent) as sessions:
        session = await sessions.open("pages", agent="agent")
        run = await session.run("write", stream=True)
        events, error = await watched(run)
        assert error is None
        check_order(events)
        handle = sessions.client.get_workflow_handle("session:pages")
        described = await handle.describe()
        assert described.raw_description.workflow_execution_info.first_run_id != described.run_id
        assert await signals(sessions, "pages") > 10
        started = (await handle.fetch_history()).events[0]
        carried = started.workflow_execution_started_event_attributes.input.payloads[0].data
        assert len(carried) < 30_000


@pytest.mark.parametrize("interval", [0.001, 0.05, 0.2, 5.0])
def test_the_longest_call_stays_within_what_the_engine_takes(interval: float) -> None:
    """An hour of talk: fewer batches than the polls that one run of a workflow allows (2,000)."""
    elapsed, batches = 0.0, 0
    while elapsed < 3_600:
        elapsed += pause_after(batches, interval)
        batches += 1
    assert batches < 1_200


@pytest.mark.parametrize("interval", [0, -1, "often", float("inf"), True])
def test_an_interval_is_seconds(interval: Any) -> None:
    with pytest.raises(AgentError, match="stream_interval"):
        Agent("agent", model=None, stream_interval=interval)


def piece(index: int, call_number: int, attempt: int) -> EventRecord:
    return EventRecord(
        type="message_update",
        run_id="r",
        index=index,
        is_passing=True,
        call=call_number,
        attempt=attempt,
    )


def test_of_several_attempts_only_the_latest_is_heard() -> None:
    """A worker that was taken for dead may speak on."""
    draft = Draft()
    heard = [
        (draft.goes_on_with(record), draft.is_void)
        for record in (
            piece(3, 0, 1),
            piece(3, 0, 1),
            piece(3, 0, 2),  # another attempt
            piece(3, 0, 1),  # late
            piece(3, 1, 1),  # after a compaction
            piece(3, 0, 2),  # late
            EventRecord(type="message_end", run_id="r", index=3),
            piece(6, 0, 1),  # another message
        )
    ]
    assert heard == [
        (True, False),
        (True, False),
        (True, True),
        (False, False),
        (True, True),
        (False, False),
        (True, False),
        (True, False),
    ]
