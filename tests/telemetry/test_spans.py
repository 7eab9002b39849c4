"""Which spans and metrics there are, and how they hang together."""

from __future__ import annotations

import asyncio
import json

import pytest
from opentelemetry.sdk.trace import ReadableSpan

from perdure import Agent, ModelError, RunCancelledError, Session, sub_agent, text, tool
from perdure.dev_server import DevServer
from perdure.models.scripted import ScriptedModel, call
from perdure.session_id import workflow_id
from perdure.stores import MemoryStore
from perdure.telemetry.store import MeasuredStore
from tests.engine.agents import add, scripted
from tests.engine.conftest import Serving
from tests.engine.histories import until
from tests.stores.postgres_server import PostgresServer
from tests.telemetry.conftest import Kept
from tests.telemetry.shop import SECRET, Priced, refund


def span_id(span: ReadableSpan) -> int:
    context = span.context
    assert context is not None
    return int(context.span_id)


def trace_id(span: ReadableSpan) -> int:
    context = span.context
    assert context is not None
    return int(context.trace_id)


def parent_id(span: ReadableSpan) -> int:
    assert span.parent is not None
    return span.parent.span_id


def linked(span: ReadableSpan) -> list[int]:
    return [link.context.span_id for link in span.links]


async def test_a_run_has_the_spans_of_its_model_calls_and_its_tools(
    serving: Serving, kept: Kept
) -> None:
    """Those of a client that is traced are children of its span; nothing is told twice, though the
    history is replayed afterwards.
    """
    async with serving(scripted(call("add", a=1, b=2), "It is 3.", tools=[add])) as sessions:
        session = await sessions.open("spans", agent="agent")
        run = await session.run("1 + 2?")
        await run

    sent, invoked = kept.one("send run"), kept.one("invoke_agent agent")
    assert sent.parent is None
    assert parent_id(invoked) == span_id(sent)
    begun = kept.one("start_run")
    first, second = kept.named("chat scripted")
    for child in (begun, first, kept.one("execute_tool add"), second):
        assert parent_id(child) == span_id(invoked)
    stored = kept.named("append_entries")
    assert [parent_id(span) for span in stored] == [span_id(begun), *3 * [span_id(invoked)]]
    assert {trace_id(span) for span in kept.exporter.get_finished_spans()} == {trace_id(sent)}
    assert dict(invoked.attributes or {}) == {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "agent",
        "gen_ai.conversation.id": "spans",
        "gen_ai.provider.name": "_OTHER",
        "gen_ai.request.model": "scripted",
        "gen_ai.usage.input_tokens": 9,
        "gen_ai.usage.output_tokens": 7,
        "perdure.run.id": run.id,
        "perdure.run.status": "done",
        "perdure.run.turns": 2,
        "temporal.workflow.id": "session:spans",
    }


async def test_a_run_whose_sender_is_not_traced_has_a_trace_of_its_own(
    server: DevServer, serving: Serving, kept: Kept
) -> None:
    """As one that the Temporal CLI signals."""
    async with serving(scripted(call("add", a=1, b=2), "It is 3.", tools=[add])) as sessions:
        await sessions.open("signalled", agent="agent")
        handle = server.client.get_workflow_handle(workflow_id("signalled"))
        await handle.signal("run", {"command_id": "by-hand", "entries": "1 + 2?"})
        await until(lambda: _ended(kept, 1))

    invoked = kept.one("invoke_agent agent")
    assert invoked.parent is None
    others = [*kept.named("chat scripted"), kept.one("execute_tool add"), kept.one("start_run")]
    assert {parent_id(other) for other in others} == {span_id(invoked)}
    assert {trace_id(other) for other in others} == {trace_id(invoked)}


async def test_a_run_of_a_sub_agent_is_part_of_the_trace(serving: Serving, kept: Kept) -> None:
    helper = Agent("helper", model=ScriptedModel("It is 3."))
    asked = sub_agent(helper, description="Helps with sums.")
    boss = scripted(call("helper", task="1 + 2?"), "I heard: 3.", tools=[asked])
    async with serving(boss) as sessions:
        session = await sessions.open("asks", agent="agent")
        await (await session.run("1 + 2?"))

    outer, inner = kept.one("invoke_agent agent"), kept.one("invoke_agent helper")
    asked_for = kept.one("execute_tool helper")
    assert parent_id(asked_for) == span_id(outer)
    assert parent_id(inner) == span_id(asked_for)
    assert trace_id(inner) == trace_id(outer)
    assert span_id(inner) in {parent_id(chat) for chat in kept.named("chat scripted")}


async def test_a_run_of_a_fork_is_linked_to_the_fork(serving: Serving, kept: Kept) -> None:
    async with serving(scripted("One.", "Two.")) as sessions:
        session = await sessions.open("forked", agent="agent")
        await (await session.run("Hello."))
        child = await session.fork("fork-of-forked")
        await (await child.run("And?"))

    fork = kept.one("send fork")
    assert parent_id(kept.one("copy_path")) == span_id(fork)
    first, second = kept.named("invoke_agent agent")
    assert (linked(first), linked(second)) == ([], [span_id(fork)])
    assert trace_id(second) != trace_id(fork)


async def test_a_run_that_is_joined_is_linked_to_who_joined_it(
    serving: Serving, kept: Kept
) -> None:
    model = scripted(call("add", a=1, b=2), "It is 3.", tools=[add], delay=0.5)
    async with serving(model) as sessions:
        session = await sessions.open("joined", agent="agent")
        first = await session.run("1 + 2?")
        await until(lambda: _runs(session))
        second = await session.run("Quickly.", when_busy="steer")
        await asyncio.gather(first.messages(), second.messages())

    one, other = kept.named("send run")
    invoked = kept.one("invoke_agent agent")
    assert parent_id(invoked) == span_id(one)
    assert linked(invoked) == [span_id(other)]


async def test_waiting_for_a_person_is_a_span(serving: Serving, kept: Kept) -> None:
    agent = Agent(
        "agent", model=ScriptedModel(call("refund", card=SECRET), "Done."), tools=[refund]
    )
    async with serving(agent) as sessions:
        session = await sessions.open("waits", agent="agent")
        run = await session.run("Refund me.")
        await until(lambda: _awaits(session))
        await session.approve("call_1_1")
        await run

    waited = kept.one("wait_for_approval refund")
    assert parent_id(waited) == span_id(kept.one("invoke_agent agent"))
    assert (waited.attributes or {})["perdure.approved"] is True
    assert SECRET not in str([span.to_json() for span in kept.exporter.get_finished_spans()])


async def test_a_failed_attempt_and_the_next_one_are_two_spans(
    serving: Serving, kept: Kept
) -> None:
    busy = ModelError(f"busy, says {SECRET}", retryable=True, retry_after=0.01)
    failures = [busy]

    def once(_: object) -> str:
        if failures:
            raise failures.pop()
        return "Now."

    async with serving(Agent("agent", model=Priced("openai-chat:gpt-script", once))) as sessions:
        session = await sessions.open("retried", agent="agent")
        await (await session.run("Hello."))

    first, second = kept.named("chat gpt-script")
    assert [(span.attributes or {}).get("error.type") for span in (first, second)] == [
        "ModelError",
        None,
    ]
    assert [(span.attributes or {})["perdure.attempt"] for span in (first, second)] == [1, 2]
    assert (second.attributes or {})["gen_ai.usage.input_tokens"] == 120
    assert SECRET not in first.to_json()
    model = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "gpt-script",
        "gen_ai.response.model": "claude-script-1",
    }
    assert kept.points("gen_ai.client.token.usage") == [
        (model | {"gen_ai.token.type": "input"}, 120),
        (model | {"gen_ai.token.type": "output"}, 7),
    ]


async def test_a_cancelled_run_says_so(serving: Serving, kept: Kept) -> None:
    async with serving(scripted("Never said.", delay=60)) as sessions:
        session = await sessions.open("cancelled-span", agent="agent")
        run = await session.run("Hello.")
        await until(lambda: _runs(session))
        await session.cancel()
        with pytest.raises(RunCancelledError):
            await run

    invoked = kept.one("invoke_agent agent").attributes or {}
    assert invoked["perdure.run.status"] == "cancelled"
    assert invoked["error.type"] == "RunCancelledError"


async def test_tools_stores_turns_and_the_queue_are_measured(serving: Serving, kept: Kept) -> None:
    @tool
    async def fail() -> str:
        """Fail."""
        raise RuntimeError(SECRET)

    async with serving(scripted(call("fail"), "So be it.", tools=[fail]), over=MemoryStore()) as (
        sessions
    ):
        session = await sessions.open("measured", agent="agent")
        await (await session.run("Hello."))

    assert kept.points("perdure.tool.errors") == [
        ({"gen_ai.tool.name": "fail", "error.type": "tool_error"}, 1)
    ]
    [[about, seconds]] = kept.points("gen_ai.invoke_agent.duration")
    assert about == {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "agent",
        "perdure.run.status": "done",
    }
    assert isinstance(seconds, float)
    assert kept.points("perdure.inbox.depth") == [({"perdure.command": "run"}, 1)]
    assert {
        about["perdure.store.operation"] for about, _ in kept.points("perdure.store.duration")
    } == {
        "create_session",
        "load_entries",
        "append_entries",
    }
    for name in ("perdure.turn.duration", "perdure.inbox.wait", "gen_ai.execute_tool.duration"):
        assert len(kept.points(name)) == 1


async def test_a_store_that_is_measured_loads_paths_if_it_did(
    kept: Kept, postgres: PostgresServer
) -> None:
    assert not hasattr(MeasuredStore(MemoryStore(), kept.telemetry), "load_path")
    async with postgres.new_store() as below:
        store = MeasuredStore(below, kept.telemetry)
        await store.create_session("s")
        await store.append_entries("s", [text("Hello.").with_header(id="e1")])
        assert [entry.id for entry in await store.load_path("s", limit=1)] == ["e1"]
    operations = {about["perdure.store.operation"] for about, _ in kept.points(DURATION)}
    assert operations == {"create_session", "append_entries", "load_path"}


DURATION = "perdure.store.duration"


async def test_content_is_told_only_to_those_who_ask_for_it(
    serving: Serving, kept: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "true")
    async with serving(scripted(call("add", a=1, b=2), "It is 3.", tools=[add])) as sessions:
        session = await sessions.open("told-content", agent="agent")
        await (await session.run("1 + 2?"))

    tool_span = kept.one("execute_tool add").attributes or {}
    assert json.loads(str(tool_span["gen_ai.tool.call.arguments"])) == {"a": 1, "b": 2}
    assert json.loads(str(tool_span["gen_ai.tool.call.result"])) == [{"type": "text", "text": "3"}]
    last = kept.named("chat scripted")[-1].attributes or {}
    assert json.loads(str(last["gen_ai.output.messages"])) == [
        {
            "role": "assistant",
            "parts": [{"type": "text", "content": "It is 3."}],
            "finish_reason": "stop",
        }
    ]


async def _awaits(session: Session) -> bool:
    return (await session.status()).awaiting == 1


async def _runs(session: Session) -> bool:
    doing = (await session.status()).doing
    return doing is not None and doing.turn == 1


async def _ended(kept: Kept, count: int) -> bool:
    return len(kept.named("invoke_agent agent")) == count
