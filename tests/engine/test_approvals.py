"""Approvals: a call waits for a person, for as long as it takes, and is answered once."""

from __future__ import annotations

import asyncio
import uuid
from collections import Counter
from functools import partial
from typing import Any

import pytest

from perdure import (
    Agent,
    CommandError,
    Message,
    PendingApproval,
    Run,
    RunCancelledError,
    Session,
    Sessions,
    ToolArgumentsError,
    ToolCallBlock,
    tool,
)
from perdure.models.scripted import ScriptedModel, call
from perdure.protocol import MAX_COMMAND_BYTES, AppendCommand, ApproveCommand
from perdure.session_id import workflow_id
from tests.engine.agents import add, scripted, texts, watched
from tests.engine.conftest import Serving
from tests.engine.histories import counted, until


class Shop:
    """Tools that leave a trace, two of which need an approval."""

    def __init__(self) -> None:
        self.paid: list[tuple[str, int]] = []

        @tool(needs_approval=True)
        async def refund(order: str, cents: int) -> str:
            """Refund an order."""
            self.paid.append((order, cents))
            return f"refunded {cents} for {order}"

        @tool(needs_approval=lambda arguments: arguments["cents"] > 100)
        async def pay(order: str, cents: int = 500) -> str:
            """Pay for an order."""
            self.paid.append((order, cents))
            return f"paid {cents} for {order}"

        self.refund = refund
        self.pay = pay

    def agent(self, *items: Any, **options: Any) -> Agent:
        return scripted(*items, tools=[self.refund, self.pay, add], **options)


async def pending(session: Session, count: int = 1) -> list[PendingApproval]:
    """What waits, once so many calls do."""
    await until(lambda: _awaits(session, count))
    return await session.approvals()


async def _awaits(session: Session, count: int) -> bool:
    return (await session.status()).awaiting == count


async def results(run: Run) -> list[tuple[str, bool]]:
    return [(m.text, m.is_error) for m in await run if m.role == "tool_result"]


async def refused(session: Session, *args: Any, **options: Any) -> str:
    """Why an answer is refused. Nothing is changed by it."""
    before = (await session.status()).approvals, texts(await session.entries())
    with pytest.raises(CommandError) as raised:
        await session.approve(*args, **options)
    assert ((await session.status()).approvals, texts(await session.entries())) == before
    return str(raised.value)


async def test_a_call_waits_for_a_person_and_its_siblings_go_on(serving: Serving) -> None:
    """What waits is in the status; nothing runs meanwhile, no activity and no timer."""
    shop = Shop()
    agent = shop.agent(
        [call("refund", order="7", cents=900), call("add", a=1, b=2)], "Both are done."
    )
    async with serving(agent) as sessions:
        session = await sessions.open("approval-siblings", agent="agent")
        run = await session.run("refund 7, and 1 + 2?")
        [asked] = await pending(session)
        await until(lambda: _said(session, "3"))
        status = await session.status()

        assert shop.paid == []
        assert (asked.tool_call_id, asked.tool_name) == ("call_1_1", "refund")
        assert (asked.arguments, asked.is_cut) == ({"order": "7", "cents": 900}, False)
        assert (asked.run_id, asked.turn) == (run.id, 1)
        assert asked.since.endswith("Z")
        assert (status.state, status.awaiting) == ("running", 1)
        events = await counted(sessions.client, workflow_id(session.id))
        assert events["ACTIVITY_TASK_SCHEDULED"] == events["ACTIVITY_TASK_COMPLETED"] == 2
        assert events["TIMER_STARTED"] == 0

        await session.approve("call_1_1")
        assert await results(run) == [("3", False), ("refunded 900 for 7", False)]
        assert shop.paid == [("7", 900)]
        assert await session.approvals() == []


async def _said(session: Session, words: str) -> bool:
    return words in texts(await session.entries())


async def test_whoever_watches_is_asked_and_may_answer(serving: Serving) -> None:
    """The events are not counted: rebuilt from the store, the others have the same order."""
    was_told = asyncio.Event()

    @tool(needs_approval=True)
    async def wait(cents: int) -> str:
        await was_told.wait()
        return "done"

    async with serving(scripted([call("wait", cents=1)], "Done.", tools=[wait])) as sessions:
        session = await sessions.open("approval-watched", agent="agent")
        run = await session.run("go")
        told = []
        async for event in run:
            told.append(event)
            if event.approval is not None:
                await session.approve(event.approval)
            if event.type == "approval_answered":
                was_told.set()
        types = [event.type for event in told]
        assert types[4:8] == [
            "tool_execution_start",
            "approval_requested",
            "approval_answered",
            "tool_execution_end",
        ]
        assert (told[6].approved, told[6].arguments) == (True, {"cents": 1})
        lasting = [event.type for event in told if not event.is_passing]
        later = [event async for event in session.attach(run.id)]
        assert [event.type for event in later if not event.is_passing] == lasting


async def test_a_denial_is_a_result_that_the_model_reads(serving: Serving) -> None:
    shop = Shop()
    model = ScriptedModel(
        [call("refund", order="7", cents=900), call("refund", order="8", cents=1)], "I see."
    )
    agent = Agent("agent", model=model, tools=[shop.refund])
    async with serving(agent) as sessions:
        session = await sessions.open("approval-denied", agent="agent")
        run = await session.run("go")
        await pending(session, 2)
        await session.approve("call_1_1", approved=False, reason="not before Friday")
        await session.approve("call_1_2", False)
        denied = "A person denied this call; it did not run."
        assert await results(run) == [
            (f"{denied} Their reason: not before Friday", True),
            (denied, True),
        ]
        assert model.requests[1][2].text.endswith("not before Friday")
        assert shop.paid == []


async def test_a_person_may_change_the_arguments_and_the_model_and_the_log_are_told(
    serving: Serving,
) -> None:
    shop = Shop()
    async with serving(shop.agent([call("refund", order="7", cents=900)], "I see.")) as sessions:
        session = await sessions.open("approval-edited", agent="agent")
        run = await session.run("go")
        await pending(session)
        await session.approve("call_1_1", arguments={"order": "7", "cents": 90})
        [result] = [m for m in await run if m.role == "tool_result"]
        assert shop.paid == [("7", 90)]
        note = "A person changed the arguments of this call. It ran with: "
        assert [block.text for block in result.content] == [  # type: ignore[union-attr]
            note + '{"order":"7","cents":90}',
            "refunded 90 for 7",
        ]
        assert result in await session.messages()


async def test_changed_arguments_that_do_not_fit_are_refused_before_anything_happens(
    serving: Serving,
) -> None:
    """The call goes on waiting, and can be answered again."""
    shop = Shop()
    async with serving(shop.agent([call("refund", order="7", cents=900)], "I see.")) as sessions:
        session = await sessions.open("approval-misedited", agent="agent")
        run = await session.run("go")
        asked = await pending(session)
        with pytest.raises(ToolArgumentsError, match="cents: Input should be a valid integer"):
            await session.approve("call_1_1", arguments={"order": "7", "cents": "few"})
        huge = {"order": "x" * 200_001, "cents": 1}
        assert "200,000 bytes" in await refused(session, "call_1_1", arguments=huge)
        assert await session.approvals() == asked
        assert shop.paid == []
        await session.approve("call_1_1", arguments={"order": "7", "cents": 900})  # as they were
        assert await results(run) == [("refunded 900 for 7", False)]


async def test_a_predicate_asks_for_some_calls_only(serving: Serving) -> None:
    """It gets the arguments validated, with their defaults; those that do not fit need nobody."""
    shop = Shop()
    calls = [
        call("pay", order="1", cents="99"),
        call("pay", order="2", cents="101"),
        call("pay", order="3"),
        call("pay", order="4", cents="many"),
    ]
    async with serving(shop.agent(calls, "Done.")) as sessions:
        session = await sessions.open("approval-predicate", agent="agent")
        run = await session.run("go")
        asked = await pending(session, 2)
        assert [approval.arguments["order"] for approval in asked] == ["2", "3"]
        for approval in asked:
            await session.approve(approval)
        told = dict.fromkeys(text.split("\n")[0] for text, _ in await results(run))
        assert set(told) == {
            "paid 99 for 1",
            "paid 101 for 2",
            "paid 500 for 3",
            "the arguments do not fit pay:",
        }


@pytest.mark.parametrize("fault", [ValueError("oops"), SystemExit(3), asyncio.CancelledError()])
async def test_a_predicate_that_raises_has_not_said_that_nobody_need_be_asked(
    serving: Serving, fault: BaseException, caplog: pytest.LogCaptureFixture
) -> None:
    def raises(arguments: dict[str, Any]) -> bool:
        raise fault

    @tool(needs_approval=raises)
    async def risky() -> str:
        return "done"

    async with serving(scripted([call("risky")], "ok", tools=[risky])) as sessions:
        session = await sessions.open(f"approval-raising-{type(fault).__name__}", agent="agent")
        run = await session.run("go")
        [asked] = await pending(session)
        await session.approve(asked)
        assert await results(run) == [("done", False)]
    assert "needs_approval of the tool risky raised" in caplog.text


async def test_answers_to_calls_that_do_not_wait_are_refused(serving: Serving) -> None:
    """Unknown, finished, answered already, another run's: an error, and nothing changes."""
    shop = Shop()
    agent = shop.agent(
        [call("refund", order="7", cents=1), call("add", a=1, b=1), call("refund", order="8")],
        "Done.",
        [call("refund", order="9", cents=9)],
        "Done again.",
    )
    async with serving(agent) as sessions:
        session = await sessions.open("approval-not-waiting", agent="agent")
        nothing = "no tool call '{}' waits for an approval; see the approvals in the status"
        assert await refused(session, "call_1_1") == nothing.format("call_1_1")
        run = await session.run("go")
        await pending(session, 2)
        await until(lambda: _said(session, "2"))
        assert await refused(session, "elsewhere") == nothing.format("elsewhere")
        assert await refused(session, "call_1_2") == nothing.format("call_1_2")  # needed none
        await session.approve("call_1_1")
        await until(lambda: _said(session, "refunded 1 for 7"))
        assert await refused(session, "call_1_1", approved=False) == nothing.format("call_1_1")
        await session.approve("call_1_3", approved=False)
        await run
        assert await refused(session, "call_1_1") == nothing.format("call_1_1")

        again = await session.run("again")
        [asked] = await pending(session)
        assert await refused(session, "call_1_1") == nothing.format("call_1_1")
        other = await sessions.open("approval-not-waiting/other", agent="agent")
        assert await refused(other, asked) == nothing.format(asked.tool_call_id)
        await session.approve(asked)
        await again
        assert shop.paid == [("7", 1), ("9", 9)]


async def test_an_answer_to_a_call_that_was_seen_does_not_count_for_another_of_its_id(
    serving: Serving,
) -> None:
    """A provider may give an ID again: in a later turn, in a later run, with other arguments."""
    paid: list[int] = []

    @tool(needs_approval=True)
    async def refund(cents: int) -> str:
        paid.append(cents)
        return "refunded"

    agent = scripted(
        asking("c1", cents=1),
        asking("c1", cents=2),
        "Done.",
        asking("c1", cents=2),
        "Done.",
        tools=[refund],
    )
    async with serving(agent) as sessions:
        session = await sessions.open("approval-id-again", agent="agent")
        run = await session.run("go")
        [first] = await pending(session)
        await session.approve(first)
        await until(lambda: _shows(session, 2))
        assert "not the one seen" in await refused(session, first)
        [second] = await pending(session)
        await session.approve(second)
        await run

        run = await session.run("again")
        [third] = await pending(session)
        assert "not the one seen" in await refused(session, first)
        assert "not the one seen" in await refused(session, second)
        assert len({first.call_digest, second.call_digest, third.call_digest}) == 3
        await session.approve(third, False)
        await run
        assert paid == [1, 2]


def asking(call_id: str, **arguments: Any) -> Message:
    """A message that calls `refund` by this ID."""
    block = ToolCallBlock(id=call_id, name="refund", arguments=arguments)
    return Message(role="assistant", content=[block])


async def _shows(session: Session, turn: int) -> bool:
    return [approval.turn for approval in await session.approvals()] == [turn]


async def test_two_calls_with_one_id_are_told_apart_by_what_was_seen(serving: Serving) -> None:
    shop = Shop()
    first, second = (
        ToolCallBlock(id="twin", name="refund", arguments={"order": order, "cents": cents})
        for order, cents in [("7", 1), ("8", 2)]
    )
    twins = Message(role="assistant", content=[first, second])
    async with serving(shop.agent(twins, "Done.")) as sessions:
        session = await sessions.open("approval-twins", agent="agent")
        run = await session.run("go")
        one, two = await pending(session, 2)
        assert "state a call_digest" in await refused(session, "twin")
        await session.approve(two)
        await session.approve(one, False)
        await run
        assert shop.paid == [("8", 2)]


async def test_of_answers_that_race_one_counts(serving: Serving) -> None:
    """Some agree, some do not, some change something: the call runs once, or not at all."""
    shop = Shop()
    async with serving(shop.agent([call("refund", order="7", cents=1)], "Done.")) as sessions:
        session = await sessions.open("approval-race", agent="agent")
        run = await session.run("go")
        await pending(session)
        answers: list[dict[str, Any]] = [
            {},
            {"approved": False},
            {"arguments": {"order": "7", "cents": 2}},
        ] * 4
        ends = await asyncio.gather(
            *(session.approve("call_1_1", **answer) for answer in answers), return_exceptions=True
        )
        counts = Counter(type(end) for end in ends)
        assert counts == {type(None): 1, CommandError: 11}
        await run
        winner = answers[ends.index(None)]
        assert len(shop.paid) == (0 if "approved" in winner else 1)


async def test_one_answer_that_is_sent_twice_counts_once(serving: Serving) -> None:
    """By its command's ID, as a signal and as an update; with other content it is a mistake."""
    shop = Shop()
    async with serving(shop.agent([call("refund", order="7", cents=1)], "Done.")) as sessions:
        session = await sessions.open("approval-twice", agent="agent")
        run = await session.run("go")
        await pending(session)
        handle = sessions.client.get_workflow_handle(workflow_id("approval-twice"))
        answer = ApproveCommand(command_id="mine", tool_call_id="call_1_1")
        for _ in range(3):
            await handle.signal("approve", answer)
        await handle.execute_update("approve", answer)
        await run
        status = await session.status()
        assert (shop.paid, status.last_error) == ([("7", 1)], None)
        await handle.signal("approve", answer.model_copy(update={"approved": False}))
        await until(lambda: _complains(session, "CommandConflictError"))


async def _complains(session: Session, error: str) -> bool:
    status = await session.status()
    return status.last_error is not None and status.last_error.type == error


async def test_cancel_answers_the_calls_that_wait_as_interrupted(serving: Serving) -> None:
    """6.6: also where nothing runs that could be stopped; the session is ready for the next."""
    shop = Shop()
    agent = shop.agent([call("refund", order="7", cents=1), call("add", a=1, b=2)], "", "Fine.")
    async with serving(agent) as sessions:
        session = await sessions.open("approval-cancelled-waiting", agent="agent")
        run = await session.run("go")
        await pending(session)
        await until(lambda: _said(session, "3"))
        await session.cancel()
        with pytest.raises(RunCancelledError):
            await run
        assert [m.text for m in await session.messages()][2:] == ["3", "tool execution interrupted"]
        assert await session.approvals() == []
        assert "waits" in await refused(session, "call_1_1")
        await session.append("ready")


async def test_what_waits_survives_the_death_of_its_worker(serving: Serving) -> None:
    shop = Shop()
    agent = shop.agent([call("refund", order="7", cents=1)], "Done.")
    queue = f"test-{uuid.uuid4().hex}"
    async with serving(agent, task_queue=queue) as sessions:
        session = await sessions.open("approval-survivor", agent="agent")
        run = await session.run("go")
        asked = await pending(session)
    async with serving(agent, task_queue=queue):
        assert await session.approvals() == asked
        await session.approve(asked[0])
        assert await results(run) == [("refunded 1 for 7", False)]


async def test_the_workflow_continues_as_new_while_it_waits(serving: Serving) -> None:
    """Messages that leave nothing to do do not make history grow without bound; who awaits the
    run, what is queued and what steers it are still there, and the answer counts afterwards.
    """
    shop = Shop()
    agent = shop.agent(
        [call("refund", order="7", cents=1), call("refund", order="8", cents=2)], "Done.", "Next."
    )
    async with serving(agent) as sessions:
        session = await sessions.open("approval-renewed", agent="agent")
        run = await session.run("go")
        waiting = asyncio.create_task(run.messages())
        asked = await pending(session, 2)
        await session.approve(asked[0])
        steering = await session.run("quickly", when_busy="steer")
        queued = await session.run("and then")
        handle = sessions.client.get_workflow_handle(workflow_id("approval-renewed"))
        renewals = 0
        for _ in range(2):
            for number in range(150):
                await handle.signal("branch", f"nowhere {number}")  # refused: a queue of its own
                await handle.signal("approve", "nothing")
            await until(partial(_renewed, sessions, "approval-renewed", renewals), seconds=60)
            renewals = await _renewals(sessions, "approval-renewed")
        assert await session.approvals() == asked[1:]

        await session.approve(asked[1])
        assert [m.text for m in await waiting][1:] == [
            "refunded 1 for 7",
            "refunded 2 for 8",
            "quickly",
            "Done.",
        ]
        assert [m.text for m in await steering] == ["Done."]
        assert [m.text for m in await queued] == ["Next."]
        assert shop.paid == [("7", 1), ("8", 2)]


async def _renewals(sessions: Sessions, session_id: str) -> int:
    counts = await counted(sessions.client, workflow_id(session_id))
    return counts["WORKFLOW_EXECUTION_CONTINUED_AS_NEW"]


async def _renewed(sessions: Sessions, session_id: str, before: int) -> bool:
    return await _renewals(sessions, session_id) > before


async def test_a_session_that_waits_is_not_idle(serving: Serving) -> None:
    """Nor does `close` end it under the run: it has its turn after it."""
    shop = Shop()
    async with serving(shop.agent([call("refund", order="7", cents=1)], "Done.")) as sessions:
        session = await sessions.open("approval-not-idle", agent="agent", idle_timeout=0.2)
        run = await session.run("go")
        await pending(session)
        closing = asyncio.create_task(session.close())
        handle = sessions.client.get_workflow_handle(workflow_id("approval-not-idle"))

        async def several_timeouts_passed() -> bool:
            return (await counted(sessions.client, handle.id))["TIMER_FIRED"] >= 3

        await until(several_timeouts_passed)
        assert (await session.status()).awaiting == 1
        await session.approve("call_1_1")
        assert (await run)[-1].text == "Done."
        await closing


async def test_arguments_too_large_to_wait_are_an_error_that_the_model_reads(
    serving: Serving,
) -> None:
    shop = Shop()
    agent = shop.agent([call("refund", order="x" * 250_000, cents=1)], "I see.")
    async with serving(agent) as sessions:
        session = await sessions.open("approval-too-large-to-ask", agent="agent")
        [(told, is_error)] = await results(await session.run("go"))
        assert is_error
        assert "200,000" in told
        assert shop.paid == []


async def test_large_arguments_are_shown_shortened(serving: Serving) -> None:
    shop = Shop()
    agent = shop.agent([call("refund", order="x" * 50_000, cents=1)], "Done.")
    async with serving(agent) as sessions:
        session = await sessions.open("approval-shortened", agent="agent")
        run = await session.run("go")
        [asked] = await pending(session)
        assert asked.is_cut
        assert asked.arguments == {"order": "x" * 200 + "… (50,000 characters)", "cents": 1}
        await session.approve(asked)
        await run
        assert shop.paid == [("x" * 50_000, 1)]


async def test_an_answer_is_taken_while_a_sibling_is_at_work(serving: Serving) -> None:
    """It does not wait for the sibling's end."""
    shop = Shop()
    may_end, is_running = asyncio.Event(), asyncio.Event()

    @tool
    async def slow() -> str:
        is_running.set()
        await may_end.wait()
        return "slow"

    agent = scripted(
        [call("slow"), call("refund", order="7", cents=1)], "Done.", tools=[slow, shop.refund]
    )
    async with serving(agent) as sessions:
        session = await sessions.open("approval-beside", agent="agent")
        run = await session.run("go")
        await is_running.wait()
        await pending(session)
        await session.approve("call_1_2")
        await until(lambda: _said(session, "refunded 1 for 7"))
        may_end.set()
        assert await results(run) == [("refunded 1 for 7", False), ("slow", False)]


async def test_twenty_turns_each_with_an_approval_renewed_at_every_step(serving: Serving) -> None:
    """Answered by whoever watches, as fast as it goes."""
    shop = Shop()
    steps = [[call("refund", order=str(n), cents=n), call("add", a=n, b=n)] for n in range(20)]
    async with serving(shop.agent(*steps, "Done."), max_history_events=1) as sessions:
        session = await sessions.open("approval-twenty", agent="agent")
        run = await session.run("go")

        async def answer() -> None:
            while True:
                for approval in await session.approvals():
                    await session.approve(approval)
                await asyncio.sleep(0.05)

        answering = asyncio.create_task(answer())
        events, error = await watched(run)
        answering.cancel()
        assert error is None
        assert [(order, cents) for order, cents in shop.paid] == [(str(n), n) for n in range(20)]
        ends = [event for event in events if event.type == "tool_execution_end"]
        assert len(ends) == 40
        assert await _renewals(sessions, "approval-twenty") >= 10


async def test_a_full_queue_keeps_nobody_from_answering_or_cancelling(serving: Serving) -> None:
    """What waits behind the call would otherwise wait for ever."""
    shop = Shop()
    agent = shop.agent(
        [call("refund", order="7", cents=1)], [call("refund", order="8", cents=2)], "Done."
    )
    async with serving(agent) as sessions:
        session = await sessions.open("approval-full-queue", agent="agent")
        run = await session.run("go")
        [asked] = await pending(session)
        room = MAX_COMMAND_BYTES - len(AppendCommand(command_id="x" * 16, entries=[{}]).to_json())
        appending = asyncio.create_task(session.append("x" * (room - 120)))

        async def is_full() -> bool:
            return (await session.status()).waiting == 1

        await until(is_full)
        await session.approve(asked)
        await until(lambda: _shows(session, 2))
        await session.cancel()
        with pytest.raises(RunCancelledError):
            await run
        await appending
        assert shop.paid == [("7", 1)]
