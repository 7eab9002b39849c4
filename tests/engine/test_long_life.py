"""A session outgrows its history and nobody notices."""

from __future__ import annotations

import asyncio

import pytest

from perdure import text
from perdure.dev_server import DevServer
from perdure.models.scripted import call
from perdure.session_id import workflow_id
from tests.engine.agents import add, echo, scripted, shape, texts
from tests.engine.conftest import Serving
from tests.engine.histories import histories


async def test_a_session_that_continues_as_new_at_every_step_loses_nothing(
    serving: Serving,
) -> None:
    """5.2: leaf, inbox, outcomes and totals are carried; everyone who waits is answered."""
    async with serving(echo(), max_history_events=1) as sessions:
        session = await sessions.open("ever-new", agent="agent")
        runs = [await session.run(f"{number}") for number in range(6)]
        await session.append("aside")
        assert [(await run)[-1].text for run in runs] == [f"You said '{n}'" for n in range(6)]

        said = [word for n in range(6) for word in (f"{n}", f"You said '{n}'")]
        assert texts(await session.transcript()) == [*said, "aside"]
        status = await session.status()
        assert (status.runs, status.turns, status.state) == (6, 6, "idle")
        again = await session.run("0", run_id=runs[0].id)
        assert await again == await runs[0]


async def test_a_run_continues_as_new_between_its_turns(serving: Serving) -> None:
    """A long run is carried on by the next run of the workflow, and its watcher misses nothing."""
    steps = [[f"step {n}", call("add", a=n, b=n)] for n in range(6)]
    agent = scripted(*steps, "done", tools=[add])
    async with serving(agent, max_history_events=1) as sessions:
        session = await sessions.open("long-run", agent="agent")
        run = await session.run("go", text("whisper").model_copy(update={"ephemeral": True}))
        events = [event async for event in run]

        turn = ["turn_start", "message_start", "message_end*"]
        tools = ["tool_execution_start", "tool_execution_end", "message_start", "message_end*"]
        assert shape(events) == [
            "agent_start*",
            *[*turn, *tools, "turn_end"] * 6,
            *turn,
            "turn_end",
            "agent_end",
        ]
        assert [entry for event in events for entry in event.entries] == await session.entries()
        requests = agent.model.requests  # type: ignore[union-attr]
        assert all("whisper" in [message.text for message in request] for request in requests)


@pytest.mark.parametrize(
    "limits, renewals",
    [
        ({"max_history_events": 1_000, "max_history_events_in_run": 1}, 5),
        ({"max_history_events": 1, "max_history_events_in_run": 1_000}, 2),
    ],
)
async def test_when_history_is_left_behind_is_set_for_runs_and_between_them(
    serving: Serving, server: DevServer, limits: dict[str, int], renewals: int
) -> None:
    steps = [[f"step {n}", call("add", a=n, b=n)] for n in range(4)]
    session_id = f"limits-{renewals}"
    async with serving(scripted(*steps, "done", tools=[add]), **limits) as sessions:
        session = await sessions.open(session_id, agent="agent")
        await session.append("aside")
        assert (await (await session.run("go")))[-1].text == "done"
        await session.status()
    lengths = [run async for run in histories(server.client, workflow_id(session_id))]
    assert len(lengths) == 1 + renewals


async def test_clients_that_never_pause_are_served_while_the_workflow_is_renewed(
    serving: Serving,
) -> None:
    """Commands that hit a run of the workflow that is just ending are done by the next one,
    once.
    """
    async with serving(echo(), max_history_events=12) as sessions:
        session = await sessions.open("no-pause", agent="agent")

        async def talk(speaker: int) -> None:
            for number in range(8):
                said = f"{speaker}.{number}"
                assert (await (await session.run(said)))[-1].text == f"You said {said!r}"

        await asyncio.gather(*(talk(speaker) for speaker in range(4)))
        asked = texts(await session.transcript())[::2]
        assert sorted(asked) == sorted(f"{s}.{n}" for s in range(4) for n in range(8))
        for speaker in range(4):
            assert [word for word in asked if word.startswith(f"{speaker}.")] == [
                f"{speaker}.{number}" for number in range(8)
            ]
