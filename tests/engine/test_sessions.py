"""Opening, resuming, closing: what a session is."""

from __future__ import annotations

import asyncio
import uuid
from typing import Any

import pytest
from temporalio.client import WorkflowFailureError
from temporalio.exceptions import CancelledError

from perdure import (
    AgentError,
    CommandError,
    CustomEntry,
    Entry,
    InvalidSessionIdError,
    ServerError,
    SessionClosedError,
    Sessions,
    StoreError,
    TenantError,
    local,
    text,
)
from perdure.dev_server import DevServer
from perdure.stores import FileStore, MemoryStore
from perdure.worker import build_worker
from tests.engine.agents import echo, scripted, texts
from tests.engine.conftest import Serving


class Milestone(CustomEntry, kind="test-milestone"):
    title: str


async def test_open_creates_what_is_unknown_and_resumes_what_is_known(
    serving: Serving, store: FileStore
) -> None:
    """1.1, 1.3: one verb, the same ready agent both ways; the record is written once."""
    async with serving(echo()) as sessions:
        first = await sessions.open("user-42", agent="agent")
        await (await first.run("hello"))
        record = await store.load_session("user-42")
        second = await sessions.open("user-42")
        await (await second.run("again"))

        assert (first.created, second.created) == (True, False)
        assert texts(await second.transcript()) == [
            "hello",
            "You said 'hello'",
            "again",
            "You said 'again'",
        ]
        assert await store.load_session("user-42") == record


async def test_many_openers_at_once_get_one_session(serving: Serving) -> None:
    """1.3: whoever loses the race to create resumes."""
    async with serving(echo()) as sessions:
        opened = await asyncio.gather(*(sessions.open("popular", agent="agent") for _ in range(8)))
        assert [session.created for session in opened].count(True) == 1
        assert len({session.id for session in opened}) == 1


async def test_without_an_id_open_makes_one_up_and_reports_it(serving: Serving) -> None:
    """1.2: a throwaway session has a random ID."""
    async with serving(echo()) as sessions:
        one, other = await sessions.open(), await sessions.open()
        assert one.id
        assert one.id != other.id


@pytest.mark.parametrize(
    "session_id", ["org/team@example.com", "a:b c", "ключ", "%2e%2e", "..", "x" * 200]
)
async def test_the_application_chooses_the_id(serving: Serving, session_id: str) -> None:
    """1.2: any non-empty string without control characters names a session."""
    async with serving(echo()) as sessions:
        session = await sessions.open(session_id, agent="agent")
        await (await session.run("hi"))
        assert texts(await session.transcript()) == ["hi", "You said 'hi'"]


@pytest.mark.parametrize("session_id", ["", "a\nb", "\x00", "x" * 1200])
async def test_an_id_that_cannot_be_is_refused_before_anything_is_sent(
    server: object, store: FileStore, serving: Serving, session_id: str
) -> None:
    """1.2: a clear error, and nothing changes."""
    async with serving(echo()) as sessions:
        with pytest.raises(InvalidSessionIdError):
            await sessions.open(session_id)


async def test_append_records_without_a_run(serving: Serving) -> None:
    """5.5, 3.2: any entries, in the order given; a custom one is never sent to a model."""
    agent = scripted("noted")
    async with serving(agent) as sessions:
        session = await sessions.open("log", agent="agent")
        stored = await session.append("first", Milestone(title="half-way"))
        await (await session.run("second"))

        path = await session.entries()
        assert path[:2] == stored
        assert path[1].parent_id == path[0].id
        assert isinstance(path[1], Milestone)
        assert [message.text for message in agent.model.requests[0]] == ["first", "second"]  # type: ignore[union-attr]


async def test_a_closed_session_resumes_at_the_last_appended_entry(serving: Serving) -> None:
    """1.3, 5.2: close ends the workflow and not the session."""
    async with serving(echo()) as sessions:
        session = await sessions.open("closing", agent="agent")
        await (await session.run("hello"))
        leaf = await session.leaf_id()
        await session.close()
        with pytest.raises(SessionClosedError):
            await session.status()

        again = await sessions.open("closing", agent="agent")
        assert await again.leaf_id() == leaf
        assert not again.created


async def test_a_run_resumes_a_session_whose_workflow_has_ended(serving: Serving) -> None:
    """Whoever still holds the session need not open it again."""
    async with serving(echo()) as sessions:
        session = await sessions.open("resuming", agent="agent")
        await (await session.run("hello"))
        await session.close()
        await (await session.run("anyone?"))
        assert texts(await session.transcript()) == [
            "hello",
            "You said 'hello'",
            "anyone?",
            "You said 'anyone?'",
        ]


async def test_a_terminated_workflow_costs_nothing_that_was_acknowledged(serving: Serving) -> None:
    """1.3: the store has everything; a new workflow takes up from there."""
    async with serving(echo()) as sessions:
        session = await sessions.open("terminated", agent="agent")
        await (await session.run("hello"))
        await sessions.client.get_workflow_handle("session:terminated").terminate("out of the blue")

        again = await sessions.open("terminated", agent="agent")
        await (await again.run("still there?"))
        assert texts(await again.transcript()) == [
            "hello",
            "You said 'hello'",
            "still there?",
            "You said 'still there?'",
        ]


async def test_a_cancelled_workflow_is_a_closed_session(serving: Serving) -> None:
    """1.3: cancelling the workflow leaves a valid log behind."""
    async with serving(echo()) as sessions:
        session = await sessions.open("cancelled", agent="agent")
        await (await session.run("hello"))
        handle = sessions.client.get_workflow_handle("session:cancelled")
        await handle.cancel()
        with pytest.raises(WorkflowFailureError) as failed:
            await handle.result()
        assert isinstance(failed.value.cause, CancelledError)
        again = await sessions.open("cancelled")
        assert texts(await again.transcript()) == ["hello", "You said 'hello'"]


async def test_status_shows_the_session_at_a_glance(serving: Serving) -> None:
    async with serving(echo()) as sessions:
        session = await sessions.open("glance", agent="agent")
        await (await session.run("hello"))
        status = await session.status()
        assert (status.state, status.agent, status.runs, status.turns) == ("idle", "agent", 1, 1)
        assert status.leaf_id == (await session.entries())[-1].id
        assert (status.queue, status.doing, status.last_error) == ([], None, None)


async def test_a_missing_worker_is_a_clear_error(
    server: object, store: FileStore, serving: Serving
) -> None:
    async with serving(echo()) as sessions:
        lonely = Sessions(sessions.client, store, task_queue=f"nobody-{uuid.uuid4().hex}")
        with pytest.raises(ServerError, match="perdure worker"):
            await lonely.open("alone", timeout=1)


async def test_a_command_that_no_worker_takes_is_a_clear_error(
    serving: Serving, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("perdure.remote.ANSWER_TIMEOUT", 1.0)
    async with serving(echo()) as sessions:
        session = await sessions.open("left-alone", agent="agent")
    for asking in (session.run("hello"), session.status()):
        with pytest.raises(ServerError, match="no worker answered"):
            await asking


@pytest.mark.parametrize(
    "wrong, said",
    [
        ({"when_busy": "soon"}, "when_busy: Input should be 'queue', 'reject' or 'steer'"),
        ({"run_id": "r" * 201}, "command_id: String should have at most 200 characters"),
        ({"stream": "perhaps"}, "stream: Input should be a valid boolean"),
        ({"output_retries": 3}, "output_retries is about answers that are not the output; "),
    ],
)
async def test_wrong_arguments_of_a_run_are_refused_before_they_are_sent(
    serving: Serving, wrong: dict[str, Any], said: str
) -> None:
    async with serving(echo()) as sessions:
        session = await sessions.open(f"wrong-{min(wrong)}", agent="agent")
        with pytest.raises(CommandError, match=said):
            await session.run("hello", **wrong)
        with pytest.raises(CommandError, match=r"5 is no entry; give text"):
            await session.run(5)  # type: ignore[call-overload]
        with pytest.raises(CommandError, match="agent: Input should be a valid string"):
            await sessions.open("never", agent=echo())  # type: ignore[arg-type]
        with pytest.raises(InvalidSessionIdError, match="is no text"):
            await sessions.open(5)  # type: ignore[arg-type]
        with pytest.raises(InvalidSessionIdError, match="is no text, and so names no instance"):
            await sessions.open("never", instance=5)  # type: ignore[arg-type]
        with pytest.raises(CommandError, match="timeout must be a number of seconds, not 'x'"):
            await sessions.open("never", timeout="x")  # type: ignore[arg-type]
        with pytest.raises(CommandError, match=r"5 is no ID of a run; runs have it as run\.id"):
            session.attach(5)  # type: ignore[call-overload]
        assert await session.entries() == []


@pytest.mark.parametrize("agents", [echo(), [5], None, "a:b"])
async def test_agents_are_a_list_of_agents(server: DevServer, agents: Any) -> None:
    with pytest.raises(AgentError, match="agents must be a list of Agents"):
        build_worker(server.client, agents=agents, store=MemoryStore())


async def test_what_sessions_are_made_of_is_looked_at(server: DevServer) -> None:
    wrong: Any = 5
    with pytest.raises(ServerError, match="5 is no Temporal client; connect one, or use Sess"):
        Sessions(wrong, MemoryStore())
    with pytest.raises(StoreError, match="5 is no store"):
        Sessions(server.client, wrong)
    with pytest.raises(TenantError, match="'5' cannot name a tenant"):
        Sessions(server.client, MemoryStore(), tenant=wrong)
    with pytest.raises(StoreError, match="5 is no store"):
        async with local(agents=[], store=wrong):
            pass


async def test_an_unreachable_server_is_a_clear_error(
    store: FileStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TEMPORAL_ADDRESS", "127.0.0.1:1")
    with pytest.raises(ServerError, match=r"127\.0\.0\.1:1"):
        async with Sessions.connect(store=store):
            pass


async def test_a_session_without_an_agent_records_and_does_not_run(serving: Serving) -> None:
    """6.1: append and reading work; a run is a clear error that changes nothing."""
    async with serving(echo()) as sessions:
        session = await sessions.open("mute")
        await session.append(text("for the record"))
        run = await session.run("hello?")
        with pytest.raises(LookupError, match="no agent"):
            await run
        assert texts(await session.transcript()) == ["for the record"]


class Unreachable(MemoryStore):
    """A store whose database is down."""

    async def load_entries(self, session_id: str) -> list[Entry]:
        raise StoreError("the database is down")


async def test_whoever_opens_hears_that_the_store_is_down(serving: Serving) -> None:
    """And the worker can be stopped meanwhile, and another open finds no stuck workflow."""
    async with serving(echo(), over=Unreachable()) as sessions:
        opening = asyncio.create_task(sessions.open("unreachable"))
        with pytest.raises(StoreError, match="the database is down"):
            await opening


async def test_a_worker_stops_while_an_open_is_being_retried(serving: Serving) -> None:
    is_asked = asyncio.Event()

    class Down(Unreachable):
        async def load_entries(self, session_id: str) -> list[Entry]:
            is_asked.set()
            return await super().load_entries(session_id)

    async with asyncio.timeout(25):
        async with serving(echo(), over=Down()) as sessions:
            opening = asyncio.create_task(sessions.open("stopping"))
            await is_asked.wait()
        opening.cancel()
