"""History per turn is small, and the same however long the conversation is."""

from __future__ import annotations

import asyncio
import re
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace

import pytest
from temporalio.api.history.v1 import HistoryEvent

from benchmarks.conversation import QUESTION, clerk, researcher, take_turn, take_turns, talker
from benchmarks.histories import HistoryTotal, history_total, workflow_runs
from perdure import Agent, Message, Run, Session, SessionEvent, Sessions, tool
from perdure.dev_server import DevServer, dev_server
from perdure.messages import Role, TextBlock, ToolCallBlock
from perdure.models.protocol import Delta, ModelRequest, OnDelta
from tests.engine.conftest import Serving

IN_ONE_RUN = 100_000
"""History events after which the workflow continues as new, so that it never does."""

WINDOW = 20
"""Turns that are measured together."""


@pytest.fixture(scope="module")
async def server() -> AsyncIterator[DevServer]:
    """A server that does not know the search attributes of sessions; what they cost is measured
    where they are tested.
    """
    async with dev_server(search_attributes=False) as running:
        yield running


async def test_a_plain_turn_is_small_and_as_small_at_turn_60_as_at_turn_10(
    serving: Serving,
) -> None:
    async with serving(talker(), max_history_events=IN_ONE_RUN) as sessions:
        session = await sessions.open("small-plain", agent="talker")
        await take_turns(session, 7)
        early = await smallest_turn(sessions, session)
        await take_turns(session, 47)
        late = await smallest_turn(sessions, session)

    assert early.events <= 12
    assert early.size_bytes <= 3_100
    assert late.events == early.events
    # Counters in it have become longer by a digit.
    assert late.size_bytes == pytest.approx(early.size_bytes, abs=60)


async def test_a_turn_with_a_tool_is_small(serving: Serving) -> None:
    async with serving(clerk(), max_history_events=IN_ONE_RUN) as sessions:
        session = await sessions.open("small-tool", agent="clerk")
        await take_turn(session)
        turn = await smallest_turn(sessions, session)

    assert turn.events <= 25
    assert turn.size_bytes <= 6_800


@pytest.mark.parametrize(
    "agent, events, size_bytes", [(talker(), 12.5, 4_200), (clerk(), 26, 8_500)]
)
async def test_what_continuing_as_new_costs_is_within_the_budget_of_a_turn(
    serving: Serving, agent: Agent, events: float, size_bytes: int
) -> None:
    async with serving(agent) as sessions:
        session = await sessions.open(f"renewed-{agent.name}", agent=agent.name)
        await take_turns(session, 60)
        total = await history_total(sessions.client, session)

    assert total.runs > 5
    assert total.events / 60 <= events
    assert total.size_bytes / 60 <= size_bytes


async def test_turn_100_costs_what_turn_10_does_through_many_continue_as_new(
    serving: Serving,
) -> None:
    """Each window has some runs of the workflow in it, and what they carry over."""
    async with serving(talker()) as sessions:
        session = await sessions.open("long-plain", agent="talker")
        early = await window_of(sessions, session, before=10)
        late = await window_of(sessions, session, before=100 - 10 - WINDOW)

    assert early.runs >= 1
    assert late.runs == pytest.approx(early.runs, abs=1)
    # A run more or less in the window, and workflow tasks that a slow machine puts in between.
    assert late.events == pytest.approx(early.events, abs=10)
    # What is carried over grows until it is full: the outcomes of the latest commands.
    assert late.size_bytes / WINDOW <= early.size_bytes / WINDOW + 600
    assert late.size_bytes / WINDOW <= 4_500


async def test_each_step_of_a_long_run_costs_the_same(serving: Serving) -> None:
    """A step is a model call and the tool that it asks for, with a result of 1,000 characters."""
    agents = [replace(researcher(calls), name=f"{calls}-calls") for calls in (2, 8, 14)]
    async with serving(*agents, max_history_events=IN_ONE_RUN) as sessions:
        few, more, many = [
            await smallest_turn(sessions, await sessions.open(agent.name, agent=agent.name))
            for agent in agents
        ]

    early, late = more.since(few), many.since(more)
    assert early.events <= 6 * 13
    assert late.events == early.events
    assert early.size_bytes <= 6 * 3_800
    # Counters in it have become longer by a digit, and a slow machine notes longer times.
    assert late.size_bytes == pytest.approx(early.size_bytes, abs=6 * 80)


async def test_what_each_verb_costs(serving: Serving) -> None:
    verbs: dict[str, Callable[[Session], Awaitable[object]]] = {
        "append": lambda session: session.append("a note"),
        "branch": lambda session: session.branch(first.id),
        "compact": lambda session: session.compact(),
        "fork": lambda session: session.fork(uuid.uuid4().hex),
    }
    async with serving(talker(), max_history_events=IN_ONE_RUN) as sessions:
        session = await sessions.open("verbs", agent="talker")
        await take_turn(session)
        first = (await session.entries())[0]
        spent: dict[str, HistoryTotal] = {}
        for name, verb in verbs.items():
            costs = []
            for _ in range(3):
                await take_turn(session)  # so that there is something to compact
                before = await history_total(sessions.client, session)
                await verb(session)
                costs.append((await history_total(sessions.client, session)).since(before))
            spent[name] = min(costs, key=lambda cost: (cost.events, cost.size_bytes))

    budgets = {
        "append": HistoryTotal(6, 1_400, 0),
        "branch": HistoryTotal(7, 1_900, 0),
        "compact": HistoryTotal(13, 3_000, 0),
        "fork": HistoryTotal(19, 4_200, 0),
    }
    for name, budget in budgets.items():
        assert spent[name].events <= budget.events, name
        assert spent[name].size_bytes <= budget.size_bytes, name


async def test_a_streamed_answer_costs_by_the_batch_and_not_by_the_piece(
    serving: Serving,
) -> None:
    async with serving(
        *(Agent(f"speaker-{pieces}", model=Speaking(pieces)) for pieces in (10, 1_000)),
        max_history_events=IN_ONE_RUN,
    ) as sessions:
        few, many = [
            await smallest_turn(sessions, await sessions.open(name, agent=name), stream=True)
            for name in ("speaker-10", "speaker-1000")
        ]

    assert few.events <= 17
    assert many.events <= few.events + 4


class Speaking:
    """A model that says its answer in so many pieces, one right after the other."""

    name = "speaking"

    def __init__(self, pieces: int) -> None:
        self._pieces = pieces

    async def respond(self, request: ModelRequest, on_delta: OnDelta | None = None) -> Message:
        if on_delta is not None:
            for _ in range(self._pieces):
                on_delta(Delta("text", "a", 0))
        return assistant(TextBlock(text="a" * self._pieces))


async def test_what_watching_costs_is_bounded_over_a_long_life(serving: Serving) -> None:
    """Each run is watched by two, and the session by a third, through many continue-as-new."""
    async with serving(talker()) as sessions:
        session = await sessions.open("watched", agent="talker")
        told = asyncio.create_task(_first(session.lifecycle()))
        for _ in range(40):
            run = await session.run("a question")
            await asyncio.gather(*(_watch(watched) for watched in (run, session.attach(run.id))))
        total = await history_total(sessions.client, session)
        assert (await told).type == "session_init"

    assert total.runs > 2
    assert total.events / 40 <= 35
    assert total.size_bytes / 40 <= 11_000


async def _first(events: AsyncIterator[SessionEvent]) -> SessionEvent:
    return await anext(events)


async def _watch(run: Run) -> None:
    types = [event.type async for event in run]
    assert types == [
        "agent_start",
        "turn_start",
        "message_start",
        "message_end",
        "turn_end",
        "agent_end",
    ]


async def test_the_transcript_never_travels_through_history(serving: Serving) -> None:
    """Each message is in the events of its own turn and in no later one, over all runs."""
    agent = Agent("marked", model=Marking(), tools=[look_up])
    async with serving(agent, max_history_events=60) as sessions:
        session = await sessions.open("marked", agent="marked")
        for number in range(1, 13):
            await (await session.run(f"mark-{number:03}-asked"))
        seen = await marks_by_turn(sessions, session)

    assert seen == {
        number: {f"mark-{number:03}-{what}" for what in ("asked", "found", "answered")}
        for number in range(1, 13)
    }


class Marking:
    """A model that looks something up and then answers, with the number of the turn in all that is
    said.
    """

    name = "marking"

    async def respond(self, request: ModelRequest, on_delta: OnDelta | None = None) -> Message:
        turn = sum(message.role == Role.USER for message in request.messages)
        if request.messages[-1].role == Role.TOOL_RESULT:
            return assistant(TextBlock(text=f"mark-{turn:03}-answered"))
        call = ToolCallBlock(id=f"call-{turn}", name="look_up", arguments={"turn": turn})
        return assistant(call)


@tool
async def look_up(turn: int) -> str:
    """Look something up."""
    return f"mark-{turn:03}-found"


def assistant(block: TextBlock | ToolCallBlock) -> Message:
    return Message(role=Role.ASSISTANT, content=(block,))


async def window_of(sessions: Sessions, session: Session, *, before: int) -> HistoryTotal:
    """The history of `WINDOW` turns, taken after so many others."""
    await take_turns(session, before)
    start = await history_total(sessions.client, session)
    await take_turns(session, WINDOW)
    return (await history_total(sessions.client, session)).since(start)


async def smallest_turn(
    sessions: Sessions, session: Session, *, stream: bool = False
) -> HistoryTotal:
    """The history of a turn; of three, because a slow machine may put a workflow task in
    between.
    """
    turns = []
    for _ in range(3):
        before = await history_total(sessions.client, session)
        await (await session.run(QUESTION, stream=stream))
        turns.append((await history_total(sessions.client, session)).since(before))
    return min(turns, key=lambda turn: (turn.events, turn.size_bytes))


async def marks_by_turn(sessions: Sessions, session: Session) -> dict[int, set[str]]:
    """Which marks the history events of each turn hold."""
    events: list[HistoryEvent] = []
    async for handle in workflow_runs(sessions.client, session):
        events[:0] = [event async for event in handle.fetch_history_events()]
    seen: dict[int, set[str]] = {}
    turn = 0
    for event in events:
        accepted = event.workflow_execution_update_accepted_event_attributes
        turn += accepted.accepted_request.input.name == "run"
        marks = re.findall(rb"mark-\d{3}-[a-z]+", event.SerializeToString())
        seen.setdefault(turn, set()).update(mark.decode() for mark in marks)
    assert seen.pop(0, set()) == set()
    return seen
