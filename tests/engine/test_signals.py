"""The verbs from outside Python: bare JSON from the `temporal` command."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest
from temporalio.api.common.v1 import Payload
from temporalio.client import Client
from temporalio.common import RawValue

from perdure import (
    Agent,
    CommandConflictError,
    CompactionEntry,
    Session,
    SessionEvent,
    Sessions,
    tool,
)
from perdure.dev_server import DevServer
from perdure.models.scripted import ScriptedModel, call
from perdure.protocol import AppendCommand, BranchCommand, CompactCommand, RunCommand
from perdure.session_id import workflow_id
from tests.engine.agents import echo, texts
from tests.engine.conftest import Serving
from tests.engine.histories import counted, until
from tests.engine.temporal_cli import TemporalCli

MESSAGE = json.dumps(
    {
        "type": "message",
        "message": {"role": "user", "content": [{"type": "text", "text": "an entry"}]},
    }
)


def agreeing() -> Agent:
    return Agent("agent", model=ScriptedModel(lambda messages: "ok"))


@dataclass(frozen=True, slots=True)
class ByHand:
    """A session, and the command line beside it."""

    session: Session
    cli: TemporalCli
    sessions: Sessions

    async def signal(self, verb: str, *inputs: str) -> None:
        """Send, and wait until nothing is left to do."""
        answer = await self.cli.signal(verb, *inputs)
        assert answer.is_ok, answer.text
        await self.settled()

    async def settled(self) -> None:
        async def is_idle() -> bool:
            status = await self.session.status()
            return status.state == "idle" and not status.waiting

        await until(is_idle)

    async def said(self) -> list[str]:
        await self.session.status()
        return texts(await self.session.transcript())

    async def refusal(self) -> str:
        error = (await self.session.status()).last_error
        assert error is not None
        return f"{error.type}: {error.message}"

    async def failed_tasks(self) -> int:
        return (await counted(self.sessions.client, self.cli.workflow_id))["WORKFLOW_TASK_FAILED"]


Opening = Callable[..., Any]


@pytest.fixture
def by_hand(serving: Serving, server: DevServer) -> Opening:
    @asynccontextmanager
    async def opening(session_id: str, agent: Agent) -> AsyncIterator[ByHand]:
        async with serving(agent) as sessions:
            session = await sessions.open(session_id, agent="agent")
            cli = TemporalCli(server, workflow_id(session_id))
            yield ByHand(session, cli, sessions)

    return opening


async def test_run_and_append_take_bare_text_and_entries(by_hand: Opening) -> None:
    """5.5: one text, one entry, or a list of either, as a signal."""
    async with by_hand("hand-text", agreeing()) as hand:
        for verb, given in [
            ("run", '"hello"'),
            ("append", '"bare"'),
            ("append", MESSAGE),
            ("append", f'["listed", {MESSAGE}]'),
            ("append", '{"entries": [{"type": "custom", "kind": "note", "body": "kept"}]}'),
            ("run", MESSAGE),
            ("run", '{"entries": "wrapped", "when_busy": "reject"}'),
        ]:
            await hand.signal(verb, given)
        await hand.signal("run")  # without input: on from the leaf

        assert await hand.said() == [
            *["hello", "ok", "bare", "an entry", "listed", "an entry"],
            *["an entry", "ok", "wrapped", "ok", "ok"],
        ]
        assert await hand.failed_tasks() == 0


async def test_branch_fork_and_compact_are_signals(by_hand: Opening) -> None:
    """5.1, 5.3, 5.4: as the documentation shows them, one bare value each."""
    async with by_hand("hand-tree", agreeing()) as hand:
        for number in range(4):
            await hand.signal("append", f'"{number}"')
        first = (await hand.session.entries())[0]

        await hand.signal("branch", f'"{first.id}"')
        assert await hand.said() == ["0"]
        await hand.signal("append", '"other"')
        await hand.signal("fork", '"hand-tree-b"')
        child = await hand.sessions.open("hand-tree-b")
        assert texts(await child.entries()) == ["0", "other"]

        await hand.signal("compact", '{"keep_turns": 1}')
        [kept] = [e for e in await hand.session.entries() if isinstance(e, CompactionEntry)]
        assert (kept.summary, kept.first_kept_id) == ("ok", kept.parent_id)
        await hand.signal("append", '"more"')
        await hand.signal("compact", "0")
        await hand.signal("append", '"still more"')
        await hand.signal("compact")
        summaries = [e for e in await hand.session.entries() if isinstance(e, CompactionEntry)]
        assert [entry.first_kept_id for entry in summaries] == [kept.parent_id, "", ""]
        status = await hand.session.status()
        assert status.last_error is None
        assert await hand.failed_tasks() == 0


@pytest.mark.parametrize("given", [(), ("null",), ("{}",), ('"by-its-id"',)])
async def test_cancel_and_close_are_signals(by_hand: Opening, given: tuple[str, ...]) -> None:
    """6.6: without an input the run in progress; close ends the workflow and not the session."""
    started = asyncio.Event()

    @tool
    async def wait_for_ever() -> str:
        """Never answers."""
        started.set()
        await asyncio.Event().wait()
        return "never"

    agent = Agent("agent", model=ScriptedModel(call("wait_for_ever"), "ok"), tools=[wait_for_ever])
    async with by_hand(f"hand-cancel-{len(given)}-{given}", agent) as hand:
        run = await hand.session.run("go", run_id="by-its-id")
        await started.wait()
        await hand.signal("cancel", *given)
        outcome = await run.outcome()
        assert outcome.error is not None
        assert outcome.error.type == "RunCancelledError"
        assert await hand.said() == ["go", "", "tool execution interrupted"]

        assert (await hand.cli.signal("close")).is_ok
        handle = hand.sessions.client.get_workflow_handle(hand.cli.workflow_id)
        assert await handle.result() is None
        assert await hand.failed_tasks() == 0


async def test_every_verb_is_an_update_that_answers_with_its_outcome(by_hand: Opening) -> None:
    """The same commands, for whoever waits for the answer."""
    async with by_hand("hand-update", agreeing()) as hand:
        cli = hand.cli
        appended = await cli.outcome("append", '"one"')
        ran = await cli.outcome("run", '"two"')
        branched = await cli.outcome("branch", json.dumps(appended["leaf_id"]))
        forked = await cli.outcome("fork", '"hand-update-b"')
        compacted = await cli.outcome("compact", '{"keep_turns": 0}')
        nothing = await cli.outcome("compact")

        assert [outcome["status"] for outcome in (appended, ran, branched, forked)] == ["done"] * 4
        one, two, ok, summary = await hand.session.entries()
        assert (appended.get("start_id"), appended["leaf_id"]) == (None, one.id)
        assert (ran["start_id"], ran["leaf_id"], ran["input_count"]) == (one.id, ok.id, 1)
        assert (branched["start_id"], branched["leaf_id"]) == (ok.id, one.id)
        assert forked["child_id"] == "hand-update-b"
        assert (compacted["entry_id"], summary.parent_id) == (summary.id, one.id)
        assert (nothing["status"], nothing.get("entry_id")) == ("done", None)
        assert two.parent_id == one.id

        for verb, given, error in [
            ("branch", '"nowhere"', "EntryNotFoundError"),
            ("fork", '"hand-update"', "SessionExistsError"),
            ("cancel", '"nothing"', "there is nothing to cancel"),
            ("approve", '"nothing"', "waits for an approval"),
        ]:
            answer = await cli.update(verb, given)
            assert not answer.is_ok
            assert error in answer.text
        waited = await cli.outcome("wait", json.dumps(ran["command_id"]))
        assert waited == ran
        assert (await cli.outcome("close"))["status"] == "done"
        assert await hand.failed_tasks() == 0


@tool(needs_approval=True)
async def refund(cents: int) -> str:
    """Give money back."""
    return f"refunded {cents}"


async def test_approve_is_a_signal_and_an_update(by_hand: Opening) -> None:
    """The bare ID of the call is a yes; what waits is in the status, and refusals are seen."""
    calls = [call("refund", cents=cents) for cents in (1, 2, 3, 4)]
    agent = Agent("agent", model=ScriptedModel(calls, "Done."), tools=[refund])
    async with by_hand("hand-approve", agent) as hand:
        cli = hand.cli
        assert (await cli.signal("run", '"go"')).is_ok

        async def are_asked() -> bool:
            status = await hand.session.status()
            return len(status.approvals) == 4

        await until(are_asked)
        asked = (await cli.status())["approvals"]
        assert [(one["tool_call_id"], one["arguments"]["cents"]) for one in asked] == [
            ("call_1_1", 1),
            ("call_1_2", 2),
            ("call_1_3", 3),
            ("call_1_4", 4),
        ]
        assert set(asked[0]) == {
            *("tool_call_id", "tool_name", "arguments", "is_cut"),
            *("run_id", "turn", "since", "call_digest"),
        }

        assert (await cli.signal("approve", '"call_1_1"')).is_ok
        answered = await cli.outcome("approve", '"call_1_2"')
        assert (answered["verb"], answered["status"]) == ("approve", "done")
        for given, reason in [
            ('"call_1_2"', "call_1_2"),
            ('{"tool_call_id": "call_1_3", "call_digest": "other"}', "not the one seen"),
            ('{"tool_call_id": "call_1_3", "arguments": {"cents": "x"}}', "cents: Input should be"),
        ]:
            refused = await cli.update("approve", given)
            assert not refused.is_ok
            assert reason in refused.text
        no = {"tool_call_id": "call_1_3", "approved": False, "reason": "too much"}
        assert (await cli.signal("approve", json.dumps(no))).is_ok
        changed = {
            "tool_call_id": "call_1_4",
            "arguments": {"cents": 40},
            "call_digest": asked[3]["call_digest"],
        }
        await hand.signal("approve", json.dumps(changed))

        results = {
            message.tool_call_id: message.text.split(" arguments ")[-1]
            for message in await hand.session.messages()
            if message.role == "tool_result"
        }
        assert results == {
            "call_1_1": "refunded 1",
            "call_1_2": "refunded 2",
            "call_1_3": "A person denied this call; it did not run. Their reason: too much",
            "call_1_4": 'of this call. It ran with: {"cents":40}refunded 40',
        }
        assert await hand.failed_tasks() == 0


async def test_status_is_a_query_that_shows_the_session_at_a_glance(by_hand: Opening) -> None:
    async with by_hand("hand-status", echo()) as hand:
        await hand.signal("run", '"hello"')
        status = await hand.cli.status()
        leaf = (await hand.session.entries())[-1].id
        assert {
            key: status[key] for key in ("session_id", "state", "leaf_id", "runs", "turns")
        } == {
            "session_id": "hand-status",
            "state": "idle",
            "leaf_id": leaf,
            "runs": 1,
            "turns": 1,
        }


UNUSABLE: list[tuple[str, tuple[str, ...], str]] = [
    ("branch", (), "entry_id: Field required"),
    ("branch", ("5",), "entry_id: Input should be a valid string"),
    ("branch", ('{"entry_id": "e1", "force": true}',), "force: Extra inputs are not permitted"),
    ("branch", ('"a"', '"b"'), "2 inputs for branch"),
    ("fork", ('{"at": "e1"}',), "session_id: Field required"),
    ("fork", ('"a\\nb"',), "InvalidSessionIdError"),
    ("fork", ('""',), "InvalidSessionIdError"),
    ("fork", ('"\\ud800"',), "InvalidSessionIdError"),
    ("compact", ('{"keep_turns": -1}',), "greater than or equal to 0"),
    ("compact", ('"2"',), "keep_turns: Input should be a valid integer"),
    ("compact", ('{"keep": 2}',), "keep: Extra inputs are not permitted"),
    ("append", ("5",), "entries: Input should be a valid list"),
    ("append", ("[5]",), "entries.0: Input should be a valid dictionary"),
    ("append", ('{"entries": [{"type": 5}]}',), "EntryDecodeError"),
    ("append", ('{"entries": ["a"], "when_busy": "steer"}',), "when_busy: Extra inputs"),
    ("run", ('{"entries": ["a"], "when_busy": "never"}',), "when_busy: Input should be"),
    ("run", ('{"entries": ["a"], "command_id": 5}',), "command_id: Input should be"),
    ("run", (json.dumps({"command_id": "x" * 201}),), "at most 200 characters"),
    ("cancel", ("[]",), "run_id: Input should be a valid string"),
    ("cancel", ('""',), "nothing to cancel"),
    ("approve", ("true",), "tool_call_id: Input should be a valid string"),
    ("approve", (), "tool_call_id: Field required"),
    ("approve", ('"call-1"',), "no tool call 'call-1' waits for an approval"),
    ("approve", ('{"tool_call_id": "c", "approved": "no"}',), "approved: Input should be a valid"),
    ("approve", ('{"tool_call_id": "c", "approve": false}',), "approve: Extra inputs"),
    ("approve", ('{"tool_call_id": "c", "arguments": []}',), "arguments: Input should be"),
    (
        "approve",
        ('{"tool_call_id": "c", "approved": false, "arguments": {}}',),
        "a call that is denied does not run",
    ),
    ("close", ('"now"',), "Input should be a valid dictionary"),
    ("levitate", ('"high"',), "no verb 'levitate'"),
    ("status", (), "no verb 'status'"),
]


async def test_a_signal_that_cannot_be_done_changes_nothing_and_is_seen(by_hand: Opening) -> None:
    """Wrong types, unknown fields, unknown verbs: in `status`, on the stream, workflow alive."""
    async with by_hand("hand-wrong", echo()) as hand:
        await hand.signal("append", '"here"')
        log = await hand.session.entries()
        for verb, given, reason in UNUSABLE:
            await hand.signal(verb, *given)
            assert reason in await hand.refusal()

        seen = await _lifecycle_until(hand.session, "status")
        assert [event.verb for event in seen if event.type == "command_failed"] == [
            verb for verb, _, _ in UNUSABLE
        ]
        assert await hand.session.entries() == log
        await hand.signal("run", '"and on"')
        assert await hand.said() == ["here", "and on", "You said 'and on'"]
        assert await hand.failed_tasks() == 0


MALFORMED = [
    b"{",
    b"",
    b"\xff\xfe",
    b"nonsense",
    b'{"entries": [NaN]}',
    b'{"entries": [{"type": "custom", "kind": "x", "v": 1e999}]}',
    b'{"entries": [{"type": "custom", "kind": "x", "v": %s}]}' % (b"[" * 20_000 + b"]" * 20_000),
]


async def test_a_signal_that_is_no_json_is_refused(by_hand: Opening) -> None:
    """Whatever bytes arrive, the workflow reads the next message."""
    async with by_hand("hand-bytes", echo()) as hand:
        handle = hand.sessions.client.get_workflow_handle(hand.cli.workflow_id)
        for data in MALFORMED:
            payload = Payload(metadata={"encoding": b"json/plain"}, data=data)
            await handle.signal("append", RawValue(payload))
            await hand.settled()
            assert (await hand.refusal()).startswith("BadMessage: ")
        await hand.signal("append", '"still here"')
        assert await hand.said() == ["still here"]
        assert await hand.failed_tasks() == 0


@pytest.mark.parametrize("depth", [300, 9_000])
async def test_an_entry_that_is_nested_deeply_is_as_good_as_any(
    by_hand: Opening, depth: int
) -> None:
    """2.9: what the log can hold can be sent, carried along and stored."""
    async with by_hand(f"hand-deep-{depth}", agreeing()) as hand:
        nested = "[" * depth + "]" * depth
        await hand.signal(
            "append", f'{{"entries": [{{"type": "custom", "kind": "deep", "v": {nested}}}]}}'
        )
        assert (await hand.session.status()).last_error is None
        assert len(await hand.session.entries()) == 1
        assert await hand.failed_tasks() == 0


async def test_an_update_that_cannot_be_done_is_answered_with_the_reason(by_hand: Opening) -> None:
    async with by_hand("hand-refused", echo()) as hand:
        for verb, given, _ in UNUSABLE:
            answer = await hand.cli.update(verb, *given)
            assert not answer.is_ok, (verb, given)
        for verb in ("open", "wait"):
            for given in ((), ('"x"',), ("5",), ('{"y": 1}',), ('"a"', '"b"')):
                await hand.cli.update(verb, *given)
        assert await hand.session.entries() == []
        await hand.signal("append", '"still here"')
        assert await hand.said() == ["still here"]
        assert await hand.failed_tasks() == 0


@pytest.mark.timeout(180)
async def test_a_thousand_signals_at_once_are_all_done_in_order(
    serving: Serving, server: DevServer
) -> None:
    """Several clients at once: everything once, and each client's own in its order."""
    async with serving(echo()) as sessions:
        session = await sessions.open("thousand")
        senders = [f"sender {number}" for number in range(5)]

        async def send(sender: str) -> None:
            client = await Client.connect(server.address)
            handle = client.get_workflow_handle(workflow_id("thousand"))
            for number in range(200):
                await handle.signal("append", f"{sender}: {number}")

        await asyncio.gather(*(send(sender) for sender in senders))

        await until(lambda: _has(session, 1_000), seconds=100)
        said = texts(await session.transcript())
        for sender in senders:
            own = [words for words in said if words.startswith(f"{sender}:")]
            assert own == [f"{sender}: {number}" for number in range(200)]
        found = await counted(sessions.client, workflow_id("thousand"))
        assert found["WORKFLOW_TASK_FAILED"] == 0


async def test_signals_from_a_crowd_of_commands_are_all_done(by_hand: Opening) -> None:
    """Each of many processes sends one; none is lost and none is done twice.

    The server refuses a signal at the moment when the workflow continues as new, and says so; it is
    sent again then, as a person would.
    """
    async with by_hand("crowd-of-commands", echo()) as hand:

        async def send(number: int) -> None:
            async with asyncio.timeout(30):
                while not (await hand.cli.signal("append", f'"{number}"')).is_ok:
                    continue

        for start in range(0, 40, 8):
            await asyncio.gather(*(send(number) for number in range(start, start + 8)))
        await until(lambda: _has(hand.session, 40))
        assert sorted(await hand.said(), key=int) == [str(number) for number in range(40)]
        assert len(await hand.session.entries()) == 40


@pytest.mark.parametrize("when", ["queued", "active", "done"])
async def test_a_command_id_is_used_for_one_command(serving: Serving, when: str) -> None:
    """Again with the same content it is done once; with other content it is an error."""
    begun, go_on = asyncio.Event(), asyncio.Event()

    class Pausing:
        name = "pausing"

        async def respond(self, request: Any, on_delta: Any = None) -> Any:
            begun.set()
            await go_on.wait()
            return await ScriptedModel(lambda messages: "ok").respond(request)

    async with serving(Agent("agent", model=Pausing())) as sessions:
        session = await sessions.open(f"conflict-{when}", agent="agent")
        first = await session.run("first", run_id="first" if when == "queued" else "one")
        await begun.wait()
        if when == "queued":
            second = await session.run("second", run_id="one")
        if when == "done":
            go_on.set()
            await first
        with pytest.raises(CommandConflictError, match="'one' was used for something else"):
            await session.run("else", run_id="one")
        handle = sessions.client.get_workflow_handle(workflow_id(session.id))
        for other in (
            RunCommand(command_id="one", entries=[], when_busy="queue"),
            AppendCommand(command_id="one", entries=[json.loads(MESSAGE)]),
            BranchCommand(command_id="one", entry_id=""),
            CompactCommand(command_id="one"),
        ):
            await handle.signal(other.verb, other)
            error = (await session.status()).last_error
            assert error is not None
            assert error.type == "CommandConflictError"

        words = "second" if when == "queued" else "first"
        again = await session.run(words, run_id="one")
        go_on.set()
        assert await again == await (second if when == "queued" else first)
        asked = ["first", "second"] if when == "queued" else ["first"]
        assert texts(await session.transcript()) == [word for w in asked for word in (w, "ok")]


async def _has(session: Session, count: int) -> bool:
    """Whether so many entries are on the path."""
    return len(await session.transcript()) == count


async def _lifecycle_until(session: Session, verb: str) -> list[SessionEvent]:
    seen: list[SessionEvent] = []
    async for event in session.lifecycle():
        seen.append(event)
        if event.verb == verb:
            break
    return seen


async def test_the_order_of_keys_does_not_make_another_command(serving: Serving) -> None:
    """The same command by signal and by update: SDKs write the keys of an object in orders of
    their own.
    """
    message = json.loads(MESSAGE)
    turned = dict(reversed(message.items()))
    assert list(turned) != list(message)
    async with serving(echo()) as sessions:
        session = await sessions.open("in-any-order", agent="agent")
        handle = sessions.client.get_workflow_handle(workflow_id(session.id))
        await handle.signal("append", AppendCommand(command_id="one", entries=[message]))
        again = AppendCommand(command_id="one", entries=[turned])
        await handle.execute_update("append", again, id="another-way")
        assert len(await session.entries()) == 1
