"""One object is carried from one run of the workflow to the next, and nothing is forgotten."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from temporalio.client import Client, WorkflowHandle
from temporalio.contrib.workflow_streams import WorkflowStreamState

from perdure import Agent, names
from perdure.models.scripted import ScriptedModel, call
from perdure.protocol import (
    ActiveRun,
    AppendCommand,
    ApproveCommand,
    BranchCommand,
    Errand,
    ErrorInfo,
    EventMark,
    OpenCall,
    Outcome,
    OutputSpec,
    PlannedCall,
    RunCommand,
    Said,
    SessionState,
)
from perdure.stores import FileStore
from perdure.usage import Usage
from perdure.wire import Wire
from tests.engine.agents import add
from tests.engine.conftest import Serving

HELLO = {
    "type": "message",
    "id": "hello",
    "message": {"role": "user", "content": [{"type": "text", "text": "hello"}]},
}
WHISPER = HELLO | {"id": "whisper", "parent_id": "hello"}

RUN: dict[str, Any] = {
    "run_id": "the-run",
    "digest": "0123456789abcdef",
    "agent": "agent",
    "model": "a model",
    "max_turns": 7,
    "compact_at_tokens": 1_000_000,
    "is_loop": True,
    "stream": True,
    "output": OutputSpec(json_schema={"type": "object"}, type="a:B", retries=5),
    "output_faults": 1,
    "start_id": "before",
    "input_count": 1,
    "ephemeral": [WHISPER],
    "turn": 3,
    "next_index": 11,
    "usage": Usage(input=30, output=40),
    "is_cancelled": True,
    "restarts": 2,
    "tools": "fedcba9876543210",
    "trace": f"00-{'a' * 32}-{'b' * 16}-01",
    "caller": "c" * 16,
    "accepted_at": 1_795_981_536.5,
    "links": [f"00-{'d' * 32}-{'e' * 16}-01"],
    "joined": [
        Outcome(command_id="joined", verb="run", status="pending", digest="d" * 16, start_id="x")
    ],
    "calls": [
        OpenCall(
            call=PlannedCall(id="c1", name="refund", arguments={"cents": 1}, needs_approval=True),
            since="2026-11-29T12:00:00Z",
            call_digest="0123456789abcdef",
            proposal=ApproveCommand(command_id="c5", tool_call_id="c1", arguments={"cents": 2}),
        ),
        OpenCall(
            call=PlannedCall(id="c2", name="add", arguments={"a": 1}, parallel=False),
            is_answered=True,
            is_edited=True,
            refusal="no",
        ),
    ],
}

STATE: dict[str, Any] = {
    "session_id": "carried",
    "instance": "b",
    "errand": Errand(parent_id="parent", run_id="the-run", depth=2),
    "max_history_events": 0,
    "max_command_bytes": 2_000_000,
    "max_history_events_in_run": 0,
    "idle_timeout": 3600.0,
    "forked_by": f"00-{'d' * 32}-{'e' * 16}-01",
    "agent": "agent",
    "opened": True,
    "created": True,
    "leaf_id": "hello",
    "tip_id": "elsewhere",
    "inbox": [BranchCommand(command_id="c2", entry_id=""), RunCommand(command_id="c3")],
    "steering": [RunCommand(command_id="c1", when_busy="steer")],
    "active": ActiveRun(**RUN),
    "outcomes": [
        Outcome(
            command_id="c0",
            verb="append",
            status="failed",
            digest="e" * 16,
            error=ErrorInfo(type="StoreError", message="gone"),
        )
    ],
    "owed": ["c9"],
    "runs": 5,
    "turns": 6,
    "usage": Usage(input=300, output=400),
    "context_tokens": 70,
    "last_error": ErrorInfo(type="ModelError", message="not today"),
    "stream": WorkflowStreamState(log=[], base_offset=40, publishers={}),
    "recent_events": [EventMark(offset=39, at=1.5)],
    "parent_id": "parent",
    "said": [Said(role="user", text="hello")],
    "forks": ["a-fork"],
    "hides_text": True,
    "has_attributes": True,
}


@pytest.mark.parametrize("kind, fields", [(ActiveRun, RUN), (SessionState, STATE)])
def test_every_field_of_the_state_is_tried_below(kind: type[Wire], fields: dict[str, Any]) -> None:
    """A new field fails here until there is a value for it that is not its default."""
    assert set(fields) == set(kind.model_fields)
    defaults = {name: field.get_default() for name, field in kind.model_fields.items()}
    assert [name for name, value in fields.items() if value == defaults[name]] == []


def test_every_field_of_the_state_travels() -> None:
    state = SessionState(**STATE)
    assert SessionState.from_json(state.to_json()) == state


async def test_a_step_of_a_run_carries_all_that_it_did_not_change(
    serving: Serving, store: FileStore
) -> None:
    """5.2: in the middle of a run, with a queue, totals, outcomes, and a run that joins it."""
    model = ScriptedModel(call("add", a=1, b=2), call("add", a=1, b=2))
    agent = Agent("agent", model=model, tools=[add])
    state = SessionState(**STATE)
    assert state.active is not None
    state.active.is_cancelled = state.active.is_loop = False
    state.active.calls = []  # those of a turn that is over are gone
    async with serving(agent) as sessions:
        after = await _after_one_step(sessions.client, sessions.task_queue, store, state)

    active = after.active
    assert active is not None
    assert [message.text for message in model.requests[0]] == ["hello", "hello"]
    reply, result = (await store.load_entries("carried"))[1:]
    assert (reply.parent_id, result.parent_id) == ("hello", reply.id)
    expected = state.model_copy(
        update={
            "leaf_id": result.id,
            "tip_id": result.id,
            "steering": [],
            "turns": state.turns + 1,
            "usage": after.usage,
            "context_tokens": after.context_tokens,
            "stream": after.stream,
            "recent_events": [],  # what is not recent any more is forgotten
            "active": state.active.model_copy(
                update={
                    "turn": 4,
                    "next_index": active.next_index,
                    "usage": active.usage,
                    "joined": [*state.active.joined, active.joined[-1]],
                }
            ),
        }
    )
    assert after == expected
    spent = Usage(input=active.usage.input - 30, output=active.usage.output - 40)
    assert (spent.input > 0, after.usage) == (True, state.usage + spent)
    assert after.context_tokens == spent.input + spent.output
    assert active.next_index == 11 + 8  # two for the turn, one for the message, four, one
    assert (active.joined[-1].command_id, active.joined[-1].status) == ("c1", "pending")
    assert after.stream is not None
    assert after.stream.base_offset + len(after.stream.log) == 40 + 8


async def test_a_command_carries_all_that_it_did_not_change(
    serving: Serving, store: FileStore
) -> None:
    """5.2: between two commands, with others in the queue."""
    first = AppendCommand(command_id="c1", entries=[HELLO])
    waiting = STATE["inbox"]
    without_run = {"active": None, "steering": [], "inbox": [first, *waiting]}
    state = SessionState(**(STATE | without_run))
    async with serving(Agent("agent", model=None)) as sessions:
        after = await _after_one_step(sessions.client, sessions.task_queue, store, state)

    appended = (await store.load_entries("carried"))[-1].id
    done = after.outcomes[-1]
    expected = state.model_copy(
        update={
            "leaf_id": appended,
            "tip_id": appended,
            "inbox": waiting,
            "outcomes": [*state.outcomes, done],
            "stream": after.stream,
            "recent_events": [],  # what is not recent any more is forgotten
        }
    )
    assert after == expected
    assert (done.command_id, done.status, done.start_id) == ("c1", "done", "hello")


async def _after_one_step(
    client: Client, task_queue: str, store: FileStore, state: SessionState
) -> SessionState:
    """What the workflow's next run is started with."""
    from perdure.codec import entry_from_json

    await store.create_session(state.session_id)
    await store.append_entries(state.session_id, [entry_from_json(HELLO)])
    handle: WorkflowHandle[Any, Any] = await client.start_workflow(
        names.SESSION_WORKFLOW, state, id=f"carry-{uuid.uuid4().hex}", task_queue=task_queue
    )
    first = client.get_workflow_handle(handle.id, run_id=handle.first_execution_run_id)
    async for event in first.fetch_history_events(wait_new_event=True):
        renewed = event.workflow_execution_continued_as_new_event_attributes
        if renewed.new_execution_run_id:
            break
    await client.get_workflow_handle(handle.id).terminate()
    return SessionState.from_json(renewed.input.payloads[0].data)
