"""An agent as a tool of another: in a session of its own, once, and never the end of the run."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from temporalio.client import WorkflowExecutionStatus, WorkflowFailureError
from temporalio.worker import Worker

from perdure import (
    Agent,
    AgentError,
    Message,
    PerdurePlugin,
    RunCancelledError,
    Session,
    Sessions,
    sub_agent,
    tool,
)
from perdure.activities.agents import AgentRegistry
from perdure.models.scripted import ScriptedModel, call
from perdure.session_id import workflow_id
from perdure.stores import FileStore
from tests.engine.agents import add, texts
from tests.engine.conftest import Serving


def asking(*others: Any, name: str = "boss", says: Any = None) -> Agent:
    """An agent that asks the first of the others, and then says what it heard."""
    first = says or [call(others[0].name, task="How much is 1 + 2?")]
    return Agent(name, model=ScriptedModel(first, _repeat), tools=others)


def _repeat(messages: Any) -> str:
    return f"I heard: {messages[-1].text}"


def helper(*items: Any, name: str = "helper", tools: Any = ()) -> Any:
    return sub_agent(
        Agent(name, model=ScriptedModel(*items), tools=tools), description="Helps with sums."
    )


async def children(sessions: Sessions, session: Session) -> list[str]:
    """The IDs of the workflows that the session's workflow has started."""
    history = await sessions.client.get_workflow_handle(workflow_id(session.id)).fetch_history()
    started = [
        event.start_child_workflow_execution_initiated_event_attributes for event in history.events
    ]
    return [attributes.workflow_id for attributes in started if attributes.workflow_id]


async def test_a_sub_agent_answers_in_a_session_of_its_own(
    serving: Serving, store: FileStore
) -> None:
    other = helper([call("add", a=1, b=2)], "It is 3.", tools=[add])
    async with serving(asking(other)) as sessions:
        session = await sessions.open("sub-parent", agent="boss")
        messages = await (await session.run("go"))
        assert [message.text for message in messages] == ["", "It is 3.", "I heard: It is 3."]
        assert (messages[1].role, messages[1].tool_name) == ("tool_result", "helper")

        [child] = await children(sessions, session)
        child_id = child.removeprefix("session:")
        assert child_id.startswith("sub-parent.helper-")
        assert (await store.load_session(child_id)).parent_id == "sub-parent"
        assert texts(await store.load_entries(child_id)) == [
            "How much is 1 + 2?",
            "",
            "3",
            "It is 3.",
        ]
        described = await sessions.client.get_workflow_handle(child).describe()
        assert described.status == WorkflowExecutionStatus.COMPLETED


async def test_the_session_of_a_sub_agent_can_be_opened_and_asked_again(
    serving: Serving,
) -> None:
    async with serving(asking(helper("It is 3.", "Because."))) as sessions:
        session = await sessions.open("sub-reopened", agent="boss")
        await (await session.run("go"))
        [child] = await children(sessions, session)
        again = await sessions.open(child.removeprefix("session:"), agent="helper")
        assert [message.text for message in await (await again.run("Why?"))] == ["Because."]


async def test_several_sub_agents_of_one_message_work_side_by_side(serving: Serving) -> None:
    both_are_at_it = asyncio.Barrier(2)

    @tool
    async def meet() -> str:
        await both_are_at_it.wait()
        return "met"

    other = helper([call("meet")], "We met.", tools=[meet])
    says = [call("helper", task="one"), call("helper", task="two")]
    async with serving(asking(other, says=says)) as sessions:
        session = await sessions.open("sub-two", agent="boss")
        messages = await (await session.run("go"))
        assert [message.text for message in messages[1:3]] == ["We met.", "We met."]
        assert len(set(await children(sessions, session))) == 2


async def test_a_sub_agent_that_fails_is_an_error_that_the_model_reads(serving: Serving) -> None:
    async with serving(asking(helper(RuntimeError("secret")))) as sessions:
        session = await sessions.open("sub-failing", agent="boss")
        _, result, answer = await (await session.run("go"))
        assert result.is_error
        assert result.text == "ModelError: scripted raised RuntimeError; see the worker's log"
        assert answer.text.startswith("I heard: ModelError")


async def test_a_sub_agent_that_no_worker_serves_is_an_error_that_the_model_reads(
    serving: Serving,
) -> None:
    async with serving(asking(sub_agent("nobody", description="Is not there."))) as sessions:
        session = await sessions.open("sub-unserved", agent="boss")
        _, result, _ = await (await session.run("go"))
        assert result.is_error
        assert result.text.startswith("UnknownAgentError: no agent 'nobody' on this worker")


async def test_a_task_that_does_not_fit_is_an_error_and_starts_nothing(serving: Serving) -> None:
    says = [call("helper", task=7), call("helper"), call("helper", task="")]
    async with serving(asking(helper("never"), says=says)) as sessions:
        session = await sessions.open("sub-misfit", agent="boss")
        messages = await (await session.run("go"))
        results = [message for message in messages if message.role == "tool_result"]
        assert [result.is_error for result in results] == [True, True, True]
        assert all("the arguments do not fit helper" in result.text for result in results)
        assert await children(sessions, session) == []


async def test_cancelling_a_run_cancels_that_of_its_sub_agent(
    serving: Serving, store: FileStore
) -> None:
    """6.6: all the way down; both sessions stay usable, and their logs are whole."""
    is_working = asyncio.Event()
    was_cancelled = asyncio.Event()

    @tool
    async def endless() -> str:
        is_working.set()
        try:
            await asyncio.Event().wait()
        finally:
            was_cancelled.set()
        return "never"

    other = helper([call("endless")], "again", tools=[endless])
    middle = sub_agent(asking(other, name="middle"), description="Asks on.")
    async with serving(asking(middle)) as sessions:
        session = await sessions.open("sub-cancelled", agent="boss")
        run = await session.run("go")
        await is_working.wait()
        await session.cancel()
        with pytest.raises(RunCancelledError):
            await run
        await asyncio.wait_for(was_cancelled.wait(), 20)

        interrupted = (await session.messages())[-1]
        assert (interrupted.is_error, interrupted.text) == (True, "tool execution interrupted")
        [child] = await children(sessions, session)
        child_id = child.removeprefix("session:")
        last = (await store.load_entries(child_id))[-1]
        assert texts([last]) == ["tool execution interrupted"]
        described = await sessions.client.get_workflow_handle(child).describe()
        assert described.status == WorkflowExecutionStatus.COMPLETED
        assert [message.text for message in await (await session.run())] == [
            "I heard: tool execution interrupted"
        ]


async def test_a_sub_agent_that_takes_too_long_is_cancelled_and_the_model_reads_so(
    serving: Serving,
) -> None:
    was_cancelled = asyncio.Event()

    @tool
    async def endless() -> str:
        try:
            await asyncio.Event().wait()
        finally:
            was_cancelled.set()
        return "never"

    slow = Agent("slow", model=ScriptedModel([call("endless")]), tools=[endless])
    other = sub_agent(slow, description="Is slow.", timeout=0.5)
    async with serving(asking(other)) as sessions:
        session = await sessions.open("sub-too-long", agent="boss")
        _, result, _ = await (await session.run("go"))
        assert result.is_error
        assert result.text == "the agent did not finish within 0.5 seconds"
        await asyncio.wait_for(was_cancelled.wait(), 20)


async def test_a_session_that_is_ended_takes_its_sub_agents_along(serving: Serving) -> None:
    is_working = asyncio.Event()
    was_cancelled = asyncio.Event()

    @tool
    async def endless() -> str:
        is_working.set()
        try:
            await asyncio.Event().wait()
        finally:
            was_cancelled.set()
        return "never"

    other = helper([call("endless")], tools=[endless])
    async with serving(asking(other)) as sessions:
        session = await sessions.open("sub-ended", agent="boss")
        await session.run("go")
        await is_working.wait()
        [child] = await children(sessions, session)
        await sessions.client.get_workflow_handle(workflow_id("sub-ended")).terminate()
        await asyncio.wait_for(was_cancelled.wait(), 20)
        handle = sessions.client.get_workflow_handle(child)
        async with asyncio.timeout(20):
            with pytest.raises(WorkflowFailureError):
                await handle.result()


async def test_an_agent_that_asks_itself_comes_to_an_end(serving: Serving) -> None:
    """The deepest call is refused, as an error that its model reads; everyone above gets an
    answer.
    """
    me = sub_agent("narcissus", description="Asks itself.")
    model = ScriptedModel([call("narcissus", task="You do it.")], _depth)
    async with serving(Agent("narcissus", model=model, tools=[me])) as sessions:
        session = await sessions.open("sub-mirror", agent="narcissus")
        *_, answer = await (await session.run("go"))
        assert answer.text == "5 below me"


def _depth(messages: list[Message]) -> str:
    heard = messages[-1].text
    if heard.startswith("sub-agents may be nested 5 deep"):
        return "0 below me"
    return f"{1 + int(heard.split()[0])} below me"


async def test_nested_sub_agents_hold_no_place_on_the_worker(
    serving: Serving, server: Any, store: FileStore
) -> None:
    """Three deep on a worker that does one activity at a time."""
    inner = helper("It is 3.", name="inner")
    middle = sub_agent(asking(inner, name="middle"), description="Asks on.")
    outer = sub_agent(asking(middle, name="outer"), description="Asks on.")
    plugin = PerdurePlugin(agents=[asking(outer)], store=store)
    async with Worker(
        server.client, task_queue="narrow", plugins=[plugin], max_concurrent_activities=1
    ):
        sessions = Sessions(server.client, store, task_queue="narrow")
        session = await sessions.open("sub-nested", agent="boss")
        *_, answer = await (await session.run("go"))
        assert answer.text == "I heard: I heard: I heard: It is 3."


def test_sub_agents_are_served_with_the_agents_that_bring_them() -> None:
    inner = helper("x", name="inner")
    middle = sub_agent(asking(inner, name="middle"), description="Asks on.")
    registry = AgentRegistry([asking(middle, inner)])
    assert [registry.find(name).name for name in ("boss", "middle", "inner")] == [
        "boss",
        "middle",
        "inner",
    ]
    with pytest.raises(AgentError, match="a sub-agent and another agent are called 'boss'"):
        AgentRegistry([asking(helper("x", name="boss"))])


@pytest.mark.parametrize(
    "agent, options, message",
    [
        (7, {"description": "x"}, "a sub-agent is an Agent or the name of one, not 7"),
        ("a", {"description": " "}, "needs a description"),
        ("a b", {"description": "x"}, "tool name 'a b' is not one that every provider takes"),
        ("a", {"description": "x", "timeout": 0}, "above 0 seconds"),
    ],
)
def test_a_wrong_declaration_is_an_error_at_once(agent: Any, options: Any, message: str) -> None:
    with pytest.raises(AgentError, match=message):
        sub_agent(agent, **options)


def test_the_model_is_told_of_one_task() -> None:
    asked = sub_agent("helper", name="ask_helper", description="Helps with sums.")
    assert (asked.name, asked.description) == ("ask_helper", "Helps with sums.")
    assert list(asked.parameters["properties"]) == ["task"]
    assert asked.parameters["required"] == ["task"]


async def test_a_sub_agent_may_wait_for_a_person_who_changes_its_task(
    serving: Serving, store: FileStore
) -> None:
    adviser = Agent("adviser", model=ScriptedModel(_repeat))
    other = sub_agent(adviser, description="Advises.", needs_approval=True)
    async with serving(asking(other)) as sessions:
        session = await sessions.open("asked-first", agent="boss")
        run = await session.run("go")
        async for event in run:
            if event.approval is not None:
                assert await children(sessions, session) == []
                await session.approve(event.approval, arguments={"task": "Nothing."})
                break
        result = (await run)[1]
        assert result.text.endswith("I heard: Nothing.")
        [child] = await children(sessions, session)
        log = await store.load_entries(child.removeprefix("session:"))
        assert texts(log) == ["Nothing.", "I heard: Nothing."]


async def test_a_sub_agent_that_is_denied_is_not_asked(serving: Serving) -> None:
    other = sub_agent("nobody", description="Is never asked.", needs_approval=True)
    async with serving(asking(other)) as sessions:
        session = await sessions.open("denied", agent="boss")
        run = await session.run("go")
        async for event in run:
            if event.approval is not None:
                await session.approve(event.approval, approved=False, reason="not today")
                break
        result = (await run)[1]
        assert result.is_error
        assert "not today" in result.text
        assert await children(sessions, session) == []
