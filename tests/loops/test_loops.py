"""A loop of one's own, in Python: what it is given, what it may yield, and how it fails."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Callable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from temporalio.worker import Worker

from perdure import (
    Agent,
    AgentError,
    CommandLoop,
    Entry,
    LoopContext,
    LoopError,
    MaxTurnsError,
    Message,
    ModelSpecError,
    PerdurePlugin,
    RunCancelledError,
    SessionBusyError,
    SessionClosedError,
    Sessions,
    StoreError,
    ToolCallBlock,
    UnknownAgentError,
    Usage,
    ephemeral,
    text,
    tool,
)
from perdure.dev_server import DevServer
from perdure.loops import OnCrash
from perdure.models import Delta
from perdure.stores import FileStore, MemoryStore
from tests.engine.agents import echo, shape, texts, watched
from tests.engine.conftest import Serving
from tests.engine.histories import histories
from tests.loops.conftest import until
from tests.loops.loop_worker import Counting

Script = Callable[[LoopContext], AsyncIterator[Any]]


class Scripted:
    """A loop that does what a function does."""

    on_crash: OnCrash = "resume"

    def __init__(self, script: Script) -> None:
        self._script = script

    def run(self, context: LoopContext) -> AsyncIterator[Any]:
        return self._script(context)


def looping(script: Script, **options: Any) -> Agent:
    return Agent("agent", model=Scripted(script), **options)


def answer(said: str, **fields: Any) -> Message:
    return Message(role="assistant", content=said, **fields)


def call_of(name: str, id: str) -> Message:
    return Message(role="assistant", content=[ToolCallBlock(id=id, name=name)])


def result_of(id: str, said: str) -> Message:
    return Message(role="tool_result", content=said, tool_call_id=id, tool_name="look")


async def test_a_loop_is_given_the_conversation(serving: Serving) -> None:
    given: list[LoopContext] = []

    async def script(context: LoopContext) -> AsyncIterator[Message]:
        given.append(context)
        yield answer(f"{len(context.messages)} messages")

    async with serving(looping(script, instructions="Count.")) as sessions:
        session = await sessions.open(agent="agent")
        await (await session.run("one"))
        run = await session.run(ephemeral("whisper"), text("two"), stream=True)
        assert [message.text for message in await run] == ["4 messages"]

    first, second = given
    assert (first.session_id, second.run_id) == (session.id, run.id)
    assert [message.text for message in second.messages] == ["one", "1 messages", "whisper", "two"]
    assert texts(second.input) == ["two", "whisper"]
    assert texts(second.path) == ["one", "1 messages", "two"]
    assert (first.stream, second.stream, second.attempt) == (False, True, 1)
    assert (second.instructions, second.stored) == ("Count.", [])


async def test_each_message_is_stored_before_the_loop_goes_on(
    serving: Serving, store: FileStore
) -> None:
    """6.3: and before anybody hears of it."""
    stored: list[list[str]] = []

    async def script(context: LoopContext) -> AsyncIterator[Message]:
        for message in (call_of("look", "c1"), result_of("c1", "seen"), answer("done")):
            yield message
            stored.append(texts(await store.load_entries(context.session_id)))

    async with serving(looping(script)) as sessions:
        session = await sessions.open(agent="agent")
        events, _ = await watched(await session.run("go"))

    assert stored == [["go", ""], ["go", "", "seen"], ["go", "", "seen", "done"]]
    assert [entry for event in events for entry in event.entries] == list(await session.entries())


async def test_usage_is_summed_up(serving: Serving) -> None:
    async def script(context: LoopContext) -> AsyncIterator[Message]:
        yield answer("one", usage=Usage(input=3, output=1))
        yield answer("two", usage=Usage(input=4, output=2))

    async with serving(looping(script)) as sessions:
        session = await sessions.open(agent="agent")
        await (await session.run("go"))
        events, _ = await watched(await session.run("go"))
        assert events[-1].usage == Usage(input=7, output=3)
        status = await session.status()
        assert (status.usage, status.turns, status.runs) == (Usage(input=14, output=6), 4, 2)


async def test_pieces_are_told_only_when_the_run_streams(serving: Serving) -> None:
    async def script(context: LoopContext) -> AsyncIterator[Message | Delta]:
        for word in ("one ", "two"):
            yield Delta("text", word, 0)
        yield answer("one two")

    async with serving(looping(script)) as sessions:
        session = await sessions.open(agent="agent")
        quiet, _ = await watched(await session.run("go"))
        assert "message_update" not in shape(quiet)
        events, _ = await watched(await session.run("go", stream=True))
        assert "".join(event.delta.text for event in events if event.delta) == "one two"
        assert [kind for kind in shape(events) if kind != "message_update"] == shape(quiet)


@pytest.mark.parametrize(
    "yielded, complaint",
    [
        ("text", "Scripted yielded str; a loop yields Message and Delta"),
        (Message(role="user", content="hi"), "yielded a message of role 'user'"),
        (Message(role="assistant", content="hi", odd=float("nan")), "cannot be stored"),
    ],
)
async def test_what_is_no_message_of_a_loop_fails_the_run(
    serving: Serving, yielded: object, complaint: str
) -> None:
    async def script(context: LoopContext) -> AsyncIterator[Any]:
        yield answer("first")
        yield yielded

    async with serving(looping(script)) as sessions:
        session = await sessions.open(agent="agent")
        with pytest.raises(LoopError, match=complaint):
            await (await session.run("go"))
        assert texts(await session.entries()) == ["go", "first"]


async def test_an_exception_fails_the_run_and_its_text_stays_here(serving: Serving) -> None:
    """6.4: what was stored stays, and the session lives on."""

    async def script(context: LoopContext) -> AsyncIterator[Message]:
        yield answer("first")
        if len(context.messages) == 1:
            raise RuntimeError("key sk-secret is wrong")

    async with serving(looping(script)) as sessions:
        session = await sessions.open(agent="agent")
        events, error = await watched(await session.run("go"))
        assert isinstance(error, LoopError)
        assert str(error) == "Scripted raised RuntimeError; see the worker's log"
        assert shape(events)[-1] == "turn_end"
        assert texts(await session.entries()) == ["go", "first"]
        assert [message.text for message in await (await session.run())] == ["first"]
        async for history in histories(sessions.client, f"session:{session.id}"):
            assert not any(b"sk-secret" in event.SerializeToString() for event in history)


async def test_a_loop_that_says_nothing_is_done(serving: Serving) -> None:
    async def script(context: LoopContext) -> AsyncIterator[Message]:
        for _ in context.stored:
            yield answer("never")

    async with serving(looping(script)) as sessions:
        session = await sessions.open(agent="agent")
        events, error = await watched(await session.run("go"))
        assert (shape(events), error) == (["agent_start*", "agent_end"], None)


async def test_max_turns_counts_the_messages_of_the_assistant(serving: Serving) -> None:
    is_closed = asyncio.Event()

    async def script(context: LoopContext) -> AsyncIterator[Message]:
        try:
            while True:
                yield answer("again")
        finally:
            is_closed.set()

    async with serving(looping(script, max_turns=3)) as sessions:
        session = await sessions.open(agent="agent")
        with pytest.raises(MaxTurnsError, match="after 3 turns"):
            await (await session.run("go"))
        assert len(await session.entries()) == 4
        assert is_closed.is_set()


async def test_a_cancelled_loop_is_closed_and_what_it_stored_stays(serving: Serving) -> None:
    """6.6"""
    closed: list[str] = []

    async def script(context: LoopContext) -> AsyncIterator[Message]:
        yield answer("first")
        try:
            await asyncio.sleep(600)
        finally:
            await asyncio.sleep(0.05)
            closed.append(context.run_id)

    async with serving(looping(script)) as sessions:
        session = await sessions.open(agent="agent")
        run = await session.run("go")
        async for event in run:
            if event.type == "message_end":
                break
        await session.cancel()
        with pytest.raises(RunCancelledError):
            await run
        assert closed == [run.id]
        assert await session.leaf_id() == (await session.entries())[-1].id
        assert texts(await session.entries()) == ["go", "first"]


async def test_while_a_loop_runs_others_wait_or_are_refused(serving: Serving) -> None:
    go_on = asyncio.Event()

    async def script(context: LoopContext) -> AsyncIterator[Message]:
        await go_on.wait()
        yield answer(f"after {context.messages[-1].text}")

    async with serving(looping(script)) as sessions:
        session = await sessions.open(agent="agent")
        first = await session.run("one")
        second = await session.run("two", when_busy="steer")
        with pytest.raises(SessionBusyError):
            await session.run("three", when_busy="reject")
        go_on.set()
        assert [message.text for message in await first] == ["after one"]
        assert [message.text for message in await second] == ["after two"]


async def test_closing_a_session_waits_for_the_loop_and_cancelling_its_workflow_does_not(
    serving: Serving, store: FileStore
) -> None:
    async def script(context: LoopContext) -> AsyncIterator[Message]:
        yield answer("first")
        if context.messages[-1].text == "wait":
            await asyncio.sleep(600)

    async with serving(looping(script)) as sessions:
        session = await sessions.open(agent="agent")
        run = await session.run("quick")
        await session.close()
        assert len(await run) == 1

        session = await sessions.open(session.id, agent="agent")
        run = await session.run("wait")
        async for event in run:
            if event.type == "message_end":
                break
        await sessions.client.get_workflow_handle(f"session:{session.id}").cancel()
        with pytest.raises(SessionClosedError):
            await run
        assert texts(await store.load_entries(session.id))[-2:] == ["wait", "first"]


class ComingAndGoing(MemoryStore):
    """A store that is down for a while, now and then."""

    def __init__(self) -> None:
        super().__init__()
        self.failures = 0

    async def append_entries(self, session_id: str, entries: Sequence[Entry]) -> None:
        if self.failures and texts(entries)[0].startswith("message"):
            self.failures -= 1
            raise StoreError("the database is away")
        await super().append_entries(session_id, entries)


async def test_a_loop_waits_for_a_store_that_is_down(serving: Serving) -> None:
    """Nothing is told meanwhile, and nothing is lost."""
    store = ComingAndGoing()

    async def script(context: LoopContext) -> AsyncIterator[Message]:
        for number in (1, 2):
            store.failures = 3
            yield answer(f"message {number}")
            assert store.failures == 0

    async with serving(looping(script), over=store) as sessions:
        session = await sessions.open(agent="agent")
        assert [message.text for message in await (await session.run("go"))] == [
            "message 1",
            "message 2",
        ]


async def test_when_nobody_can_go_on_with_a_loop_what_it_stored_is_still_the_sessions(
    server: DevServer, tmp_path: Path
) -> None:
    """Here the next worker does not have the agent."""
    (tmp_path / "hold").touch()
    queue, store = f"loops-{uuid.uuid4().hex}", FileStore(tmp_path / "sessions")
    sessions = Sessions(server.client, store, task_queue=queue)
    counting = Agent("agent", model=Counting("restart", tmp_path))

    def worker(*agents: Agent) -> Worker:
        return Worker(
            server.client,
            task_queue=queue,
            plugins=[PerdurePlugin(agents=agents, store=store)],
            graceful_shutdown_timeout=timedelta(milliseconds=100),
        )

    async with worker(counting):
        session = await sessions.open(agent="agent")
        run = await session.run("count")
        await until(
            lambda: (tmp_path / "said").exists() and "2," in (tmp_path / "said").read_text()
        )
    async with worker(echo_as("other")):
        with pytest.raises(UnknownAgentError):
            await run
        assert (await session.status()).leaf_id == (await session.entries())[-1].id
        assert len(await session.entries()) == 3


def echo_as(name: str) -> Agent:
    return Agent(name, model=echo().model)


async def test_a_thousand_messages_are_a_small_history_that_is_left_behind_at_once(
    serving: Serving,
) -> None:
    async def script(context: LoopContext) -> AsyncIterator[Message]:
        for number in range(500):
            yield call_of("look", f"c{number}")
            yield result_of(f"c{number}", "x" * 1_000)

    agent = looping(script, max_turns=1_000)
    async with serving(agent, max_history_events=10) as sessions:
        session = await sessions.open(agent="agent")
        events, error = await watched(await session.run("go"))
        assert error is None
        receipts = [entry for event in events for entry in event.entries]
        assert receipts == list(await session.entries())
        assert len(receipts) == 1_001

        # A command after it is done by the next run of the workflow.
        await session.append("aside")
        *later, with_loop = [
            events async for events in histories(sessions.client, f"session:{session.id}")
        ]
        assert later
        assert len(with_loop) < 1_000
        assert sum(event.ByteSize() for event in with_loop) < 500_000


async def test_a_loop_has_to_say_what_a_crash_shall_do() -> None:
    class Silent:
        async def run(self, context: LoopContext) -> AsyncIterator[Message]:
            yield answer("hi")

    class Wrong(Silent):
        on_crash = "explode"

    class Answering:
        on_crash = "resume"

        async def run(self, context: LoopContext) -> Message:
            return answer("hi")

    for loop, complaint in (
        (Silent(), "has to say what a crash shall do"),
        (Wrong(), "'resume' or 'restart', not 'explode'"),
        (Answering(), "has to yield its messages"),
        (Silent, "not its class; pass an instance"),
    ):
        with pytest.raises(AgentError, match=complaint):
            Agent("agent", model=loop)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "wrong",
    [
        {"command": ["a", 5]},
        {"cwd": 5},
        {"timeout": "x"},
        {"timeout": float("nan")},
        {"grace": None},
        {"env": [1]},
        {"env": {"A": 5}},
        {"env": {"A=B": "c"}},
        {"env": {"A": "b\0c"}},
    ],
)
def test_a_command_is_refused_where_it_is_declared(wrong: dict[str, Any]) -> None:
    """And what may be a secret is not repeated."""
    with pytest.raises(AgentError) as refused:
        CommandLoop(**({"command": ["a"]} | wrong))
    assert "b\\0c" not in str(refused.value)


async def test_tools_and_compaction_are_the_loops_own_matter() -> None:
    @tool
    async def look() -> str:
        """Look."""
        return "seen"

    async def script(context: LoopContext) -> AsyncIterator[Message]:
        yield answer("hi")

    with pytest.raises(AgentError, match="calls tools of its own"):
        looping(script, tools=[look])
    with pytest.raises(AgentError, match="minds its own context"):
        looping(script, compact_at_tokens=1_000)
    with pytest.raises(AgentError):
        Agent("agent", model=None, compact_model=Scripted(script))  # type: ignore[arg-type]


async def test_a_summary_needs_a_model(serving: Serving) -> None:
    async def script(context: LoopContext) -> AsyncIterator[Message]:
        yield answer("hi")

    async with serving(looping(script)) as sessions:
        session = await sessions.open(agent="agent")
        await (await session.run("go"))
        with pytest.raises(ModelSpecError, match="give it a compact_model"):
            await session.compact()


@pytest.mark.parametrize("is_async", [False, True])
async def test_a_check_that_fails_fails_the_run_before_anything_is_stored(
    serving: Serving, is_async: bool
) -> None:
    """6.2"""

    class Checked(Scripted):
        def check(self) -> Any:
            if is_async:
                return self._look()
            raise OSError("no such file: sk-secret")

        async def _look(self) -> None:
            raise LoopError("the index is not built; build it first")

    async def script(context: LoopContext) -> AsyncIterator[Message]:
        yield answer("hi")

    complaint = "build it first" if is_async else "its check raised OSError; see the worker's log"
    async with serving(Agent("agent", model=Checked(script))) as sessions:
        session = await sessions.open(agent="agent")
        with pytest.raises(LoopError, match=complaint):
            await (await session.run("go"))
        assert list(await session.entries()) == []
