"""What the Temporal UI shows of a session: its details, and a summary of each step."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from temporalio.api.enums.v1 import EventType
from temporalio.api.history.v1 import HistoryEvent
from temporalio.api.sdk.v1 import WorkflowMetadata
from temporalio.client import WorkflowHandle, WorkflowHistory

from perdure import Agent, LoopError, Message, ServerError, Session, Sessions, names, tool
from perdure.messages import Role, TextBlock
from perdure.models.protocol import ModelRequest, OnDelta
from perdure.models.scripted import ScriptedModel, call
from perdure.protocol import ErrorInfo, PendingApproval, Said, SessionState, Status
from perdure.session_id import workflow_id
from perdure.ui_text import given_ui_text
from perdure.usage import Cost, Usage
from perdure.workflows.details import details
from perdure.workflows.verbs import VERBS
from tests.engine.conftest import Serving

HISTORIES = sorted(Path(__file__).parents[1].glob("histories/*/*.json"))


@tool(needs_approval=True)
async def refund(order_id: str, cents: int) -> str:
    """Refund an order."""
    return f"refunded {cents}"


def support() -> Agent:
    script = ScriptedModel(
        ["I will refund it.", call("refund", order_id="7", cents=1250)], "It is refunded."
    )
    return Agent("support", model=script, tools=[refund])


async def test_the_details_tell_how_a_session_stands(serving: Serving) -> None:
    async with serving(support()) as sessions:
        session = await sessions.open("ui-42", agent="support")
        run = await session.run("The boots of order 7 are broken.")
        [approval] = await waiting_calls(session)
        asked = await details_of(sessions, session)
        await session.approve(approval.tool_call_id)
        await run
        done = await details_of(sessions, session)
        leaf_id = await session.leaf_id()

    assert asked.startswith(
        "**waiting for a person, turn 1** · session `ui-42`\n\nagent `support` · 1 turn in 1 run"
    )
    assert '```\nrefund(order_id="7", cents=1250)\n```' in asked
    assert f"perdure approve ui-42 {approval.tool_call_id}`" in asked
    assert f'signal `approve` with `"{approval.tool_call_id}"`' in asked
    assert r"- **user** The boots of order 7 are broken\." in asked
    assert r"- **assistant** I will refund it\." in asked
    assert done.startswith("**idle**")
    assert "tokens in, " in done
    assert "refund(order" not in done.partition("### Last messages")[0]
    assert r"- **tool refund** refunded 1250" in done
    assert r"- **assistant** It is refunded\." in done
    assert f"leaf `{leaf_id}`" in done


async def test_what_was_said_last_is_still_told_after_a_continue_as_new_and_a_new_opening(
    serving: Serving,
) -> None:
    async with serving(talker(), max_history_events=20) as sessions:
        session = await sessions.open("ui-long", agent="talker")
        for number in range(6):
            await (await session.run(f"question {number}"))
        carried = await details_of(sessions, session)
        described = await handle_of(sessions, session).describe()
        await session.close()
        opened = await details_of(sessions, await sessions.open("ui-long", agent="talker"))

    assert described.run_id != described.raw_description.workflow_execution_info.first_run_id
    for told in (carried, opened):
        assert told.startswith("**idle** · session `ui-long`")
        assert r"**user** question 5" in told
        assert r"**assistant** answer to question 5" in told
        assert "question 3" not in told


async def test_a_branch_a_fork_and_its_parent_are_told(serving: Serving) -> None:
    async with serving(talker()) as sessions:
        session = await sessions.open("ui-tree", agent="talker")
        await (await session.run("first"))
        checkpoint = await session.leaf_id()
        await (await session.run("second"))
        await session.branch(checkpoint)
        child = await session.fork("ui-tree/child")
        parent_details = await details_of(sessions, session)
        child_details = await details_of(sessions, child)

    assert "answer to first" in parent_details
    assert "second" not in parent_details
    assert "on another branch" in parent_details
    assert "forks `ui-tree/child`" in parent_details
    assert "child of `ui-tree`" in child_details
    assert "answer to first" in child_details


async def test_the_last_error_is_told(serving: Serving) -> None:
    agent = Agent("breaks", model=ScriptedModel(LoopError("out of *order*")))
    async with serving(agent) as sessions:
        session = await sessions.open("ui-error", agent="breaks")
        with pytest.raises(LoopError):
            await (await session.run("Hello."))
        told = await details_of(sessions, session)
    assert "### Last error\n\n" in told
    assert r"out of \*order\*" in told


async def test_the_verbs_are_offered_as_signals(serving: Serving) -> None:
    async with serving(talker()) as sessions:
        session = await sessions.open("ui-verbs", agent="talker")
        told = await metadata_of(sessions, session)
    offered = [signal.name for signal in told.definition.signal_definitions]
    assert offered == list(VERBS)
    assert all(signal.description for signal in told.definition.signal_definitions)


def test_what_was_said_is_shown_as_it_is_and_is_no_markup() -> None:
    text = "<b>x</b> ![i](http://e.x/i.png) [l](u) www.e.x `c` # 1. \ud800 {{runId}} \\"
    told = details(status(), state(said=[Said(role="user", text=text)]))
    [line] = [line for line in told.splitlines() if line.startswith("- **user**")]
    assert line == (
        r"- **user** \<b\>x\<\/b\> ".replace(r"\/", "/")
        + r"\!\[i\]\(http\://e\.x/i\.png\) \[l\]\(u\) www\.e\.x \`c\` \# 1\. ? \{\{runId\}\} "
        + "\\\\"
    )


def test_the_details_stay_small_whatever_a_session_holds() -> None:
    calls = [
        PendingApproval(
            tool_call_id=f"c{number}",
            tool_name="refund",
            arguments={"why": "`" * 100_000},
            run_id="r",
            turn=1,
            since="2026-11-29T12:00:00Z",
            call_digest="d",
        )
        for number in range(50)
    ]
    told = details(
        status(
            approvals=calls,
            awaiting=80,
            last_error=ErrorInfo(type="ModelError", message="x" * 2_000),
        ),
        state(said=[Said(role="user", text="y" * 300)] * 4, forks=["z" * 90] * 5),
    )
    assert "### 80 calls wait" in told
    assert len(told) < 6_000


def test_cost_is_told_where_it_is_known() -> None:
    known = Usage(input=12_400, output=340, cost=Cost(input=0.03, output=0.0125))
    assert "12.4k tokens in, 340 out · cost 0.0425" in details(status(usage=known), state())
    unknown = details(status(usage=Usage(input=12_400)), state())
    assert "cost" not in unknown


@pytest.mark.parametrize("path", HISTORIES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_each_activity_timer_and_child_workflow_has_a_summary(path: Path) -> None:
    history = WorkflowHistory.from_json("recorded", json.loads(path.read_text()))
    steps = [event for event in history.events if event.event_type in STEPS]
    assert [event.event_id for event in steps if not summary_of(event)] == []


async def test_a_call_of_the_model_and_of_a_tool_are_summarized(serving: Serving) -> None:
    async with serving(support()) as sessions:
        session = await sessions.open("ui-steps", agent="support")
        run = await session.run("Order 7.")
        [approval] = await waiting_calls(session)
        await session.approve(approval.tool_call_id)
        await run
        events = [event async for event in handle_of(sessions, session).fetch_history_events()]

    told = [summary_of(event) for event in events if event.event_type in STEPS]
    first, *_, size = (summary for summary in told if "turn" in summary)
    assert first == "scripted · turn 1"
    assert size.startswith("scripted · turn 2 · ")
    assert size.endswith(" tokens")
    assert 'refund(order_id="7", cents=1250)' in told
    assert told.count("append 1 entry") == 2


async def test_one_setting_keeps_all_that_is_said_out_of_it(serving: Serving) -> None:
    """Details, summaries and search attributes; what the messages themselves hold is another
    matter.
    """
    secret = "hush"
    script = ScriptedModel(
        [f"{secret} 1", call("refund", order_id=secret, cents=1)], LoopError(f"{secret} 3")
    )
    agent = Agent("quiet", model=script, tools=[refund])
    async with serving(agent, ui_text=False) as sessions:
        session = await sessions.open("ui-quiet", agent="quiet")
        run = await session.run(f"{secret} 0")
        [approval] = await waiting_calls(session)
        asked = await details_of(sessions, session)
        await session.approve(approval.tool_call_id)
        with pytest.raises(LoopError):
            await run
        failed = await details_of(sessions, session)
        handle = handle_of(sessions, session)
        events = [event async for event in handle.fetch_history_events()]
        described = await handle.describe()

    assert "```\nrefund(…)\n```" in asked
    assert "### Last error" in failed
    summaries = [summary_of(event) for event in events]
    assert "refund(…)" in summaries
    seen = [asked, failed, *summaries, repr(described.typed_search_attributes)]
    assert [text for text in seen if secret in text] == []


def test_the_setting_is_on_or_off(monkeypatch: pytest.MonkeyPatch) -> None:
    told = []
    for word in ("", "on", "OFF"):
        monkeypatch.setenv("PERDURE_UI_TEXT", word)
        told.append(given_ui_text(None))
    assert told == [True, True, False]
    assert given_ui_text(True)
    monkeypatch.setenv("PERDURE_UI_TEXT", "no")
    with pytest.raises(ServerError, match="PERDURE_UI_TEXT is on or off, not 'no'"):
        given_ui_text(None)


# ── what the tests above are made of ───────────────────────────────────────────────────────────

STEPS = {
    EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED,
    EventType.EVENT_TYPE_MARKER_RECORDED,
    EventType.EVENT_TYPE_TIMER_STARTED,
    EventType.EVENT_TYPE_START_CHILD_WORKFLOW_EXECUTION_INITIATED,
}


class Answering:
    """A model that repeats what it was asked."""

    name = "answering"

    async def respond(self, request: ModelRequest, on_delta: OnDelta | None = None) -> Message:
        text = f"answer to {request.messages[-1].text}"
        return Message(role=Role.ASSISTANT, content=(TextBlock(text=text),))


def talker() -> Agent:
    return Agent("talker", model=Answering())


def status(**fields: Any) -> Status:
    return Status(session_id="s", state="idle", **fields)


def state(**fields: Any) -> SessionState:
    return SessionState(session_id="s", **fields)


def handle_of(sessions: Sessions, session: Session) -> WorkflowHandle[Any, Any]:
    return sessions.client.get_workflow_handle(workflow_id(session.id))


async def metadata_of(sessions: Sessions, session: Session) -> WorkflowMetadata:
    handle = handle_of(sessions, session)
    told: WorkflowMetadata = await handle.query(names.METADATA, result_type=WorkflowMetadata)
    return told


async def details_of(sessions: Sessions, session: Session) -> str:
    return (await metadata_of(sessions, session)).current_details


async def waiting_calls(session: Session) -> list[PendingApproval]:
    while not (calls := (await session.status()).approvals):
        pass
    return calls


def summary_of(event: HistoryEvent) -> str:
    data = event.user_metadata.summary.data
    return str(json.loads(data)) if data else ""
