"""Runs: what is stored when, in which order it is told, and how a run ends."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from perdure import (
    Agent,
    CommandError,
    CommandTooLargeError,
    MaxTurnsError,
    Message,
    ModelError,
    ModelSpecError,
    RunEvent,
    UnknownAgentError,
    UnknownCommandError,
    ephemeral,
    image,
    text,
)
from perdure.models.protocol import Delta
from perdure.models.scripted import ScriptedModel, call
from perdure.stores import FileStore
from tests.engine.agents import add, echo, scripted, shape, texts, watched
from tests.engine.conftest import Serving


async def test_a_run_gives_the_new_messages(serving: Serving) -> None:
    """6.7: awaiting a run gives what it added, tool results included."""
    agent = scripted(["Adding.", call("add", a=1, b=2)], "It is 3.", tools=[add])
    async with serving(agent) as sessions:
        session = await sessions.open("sum", agent="agent")
        messages = await (await session.run("1 + 2?"))
        assert [(message.role, message.text) for message in messages] == [
            ("assistant", "Adding."),
            ("tool_result", "3"),
            ("assistant", "It is 3."),
        ]


async def test_the_model_sees_the_input_in_the_order_given(serving: Serving) -> None:
    """3.2, 3.3: a reminder before the question arrives before it, meta is seen and hidden from
    people.
    """
    model = ScriptedModel("ok")
    async with serving(Agent("agent", model=model)) as sessions:
        session = await sessions.open("order", agent="agent")
        await (
            await session.run(
                ephemeral(text("Today is Sunday.")), text("Be terse.", meta=True), "What day is it?"
            )
        )
        assert [message.text for message in model.requests[0]] == [
            "Today is Sunday.",
            "Be terse.",
            "What day is it?",
        ]
        assert texts(await session.transcript()) == ["What day is it?", "ok"]


async def test_an_ephemeral_entry_lives_for_one_run(serving: Serving) -> None:
    """3.4: seen in every turn of its run, in no later one; never stored, no receipt, nobody's
    parent.
    """
    model = ScriptedModel([call("add", a=1, b=1)], "two", "later")
    async with serving(Agent("agent", model=model, tools=[add])) as sessions:
        session = await sessions.open("once", agent="agent")
        run = await session.run("1 + 1?", ephemeral("whisper"))
        events = [event async for event in run]
        await (await session.run("and now?"))

        heard = [[message.text for message in request] for request in model.requests]
        assert ["whisper" in request for request in heard] == [True, True, False]
        stored = await session.entries()
        assert "whisper" not in texts(stored)
        assert texts(events[0].entries) == ["1 + 1?"]
        ids = {entry.id for entry in stored}
        assert all(entry.parent_id in ids or not entry.parent_id for entry in stored)


async def test_events_are_receipts_in_a_fixed_order(serving: Serving, store: FileStore) -> None:
    """6.3, 6.5: an event comes when its entries are in the store, with the leaf after it."""
    agent = scripted(["Adding.", call("add", a=1, b=2)], "It is 3.", tools=[add])
    async with serving(agent) as sessions:
        session = await sessions.open("receipts", agent="agent")
        run = await session.run("1 + 2?")
        events: list[RunEvent] = []
        async for event in run:
            events.append(event)
            stored = {entry.id for entry in await store.load_entries("receipts")}
            assert {entry.id for entry in event.entries} <= stored

        assert shape(events) == [
            "agent_start*",
            "turn_start",
            "message_start",
            "message_end*",
            "tool_execution_start",
            "tool_execution_end",
            "message_start",
            "message_end*",
            "turn_end",
            "turn_start",
            "message_start",
            "message_end*",
            "turn_end",
            "agent_end",
        ]
        receipts = [entry for event in events for entry in event.entries]
        assert receipts == await session.entries()
        assert [event.leaf_id for event in events if event.entries] == [
            entry.id for entry in receipts
        ]
        assert events[-1].messages == [entry.message for entry in receipts[1:]]  # type: ignore[attr-defined]
        usage = events[-1].usage
        assert usage is not None
        assert usage.output > 0


async def test_a_run_can_be_watched_again_later_and_from_elsewhere(serving: Serving) -> None:
    """6.7: both ways work from another process, also after the stream has dropped the run."""
    agent = scripted(
        [call("add", a=1, b=2), call("add", a=3, b=4)], "done", *["more"] * 30, tools=[add]
    )
    async with serving(agent, max_history_events=20) as sessions:
        session = await sessions.open("late", agent="agent")
        run = await session.run("go")
        live = [event async for event in run]
        for _ in range(20):
            await (await session.run("x" * 20_000))

        elsewhere = (await sessions.open("late")).attach(run.id)
        assert [event async for event in elsewhere] == live
        assert await elsewhere == await run


async def test_a_run_that_nobody_knows_is_a_clear_error(serving: Serving) -> None:
    async with serving(echo()) as sessions:
        session = await sessions.open("lost", agent="agent")
        with pytest.raises(UnknownCommandError, match="does not remember"):
            await session.attach("no-such-run")


async def test_leaving_the_stream_does_not_stop_the_run(serving: Serving) -> None:
    """6.6: whoever watches may go; the run goes on."""
    agent = scripted([call("add", a=1, b=2)], "It is 3.", tools=[add])
    async with serving(agent) as sessions:
        session = await sessions.open("left", agent="agent")
        run = await session.run("1 + 2?")
        async for event in run:
            if event.type == "turn_start":
                break
        assert (await run)[-1].text == "It is 3."


async def test_runs_of_one_session_wait_for_each_other(serving: Serving) -> None:
    """One command at a time, in the order in which they came."""
    async with serving(echo()) as sessions:
        session = await sessions.open("queue", agent="agent")
        runs = [await session.run(f"question {number}") for number in range(5)]
        answers = [(await run)[-1].text for run in runs]
        assert answers == [f"You said 'question {number}'" for number in range(5)]
        assert texts(await session.transcript())[::2] == [f"question {n}" for n in range(5)]


async def test_a_run_that_is_sent_twice_happens_once(serving: Serving) -> None:
    """A command is idempotent by its ID, while it waits, while it runs and after."""
    async with serving(echo()) as sessions:
        session = await sessions.open("twice", agent="agent")
        runs = [await session.run("once", run_id="one") for _ in range(3)]
        assert [await run for run in runs] == [await runs[0]] * 3
        again = await session.run("once", run_id="one")
        assert await again == await runs[0]
        assert texts(await session.transcript()) == ["once", "You said 'once'"]


async def test_a_model_that_fails_for_good_fails_the_run_loudly(serving: Serving) -> None:
    """6.4: the input stays, the session lives on, and a run without input does not repeat the
    question.
    """
    model = Moody()
    async with serving(Agent("agent", model=model)) as sessions:
        session = await sessions.open("moody", agent="agent")
        run = await session.run("please")
        seen, error = await watched(run)
        assert isinstance(error, ModelError)
        with pytest.raises(ModelError, match="not today"):
            await run
        assert shape(seen) == ["agent_start*", "turn_start", "message_start"]
        assert texts(await session.transcript()) == ["please"]
        status = await session.status()
        assert status.last_error is not None
        assert status.last_error.type == "ModelError"

        model.is_willing = True
        assert [message.text for message in await (await session.run())] == ["fine"]
        assert (await session.status()).last_error is None  # it is about what went wrong last
        assert texts(await session.transcript()) == ["please", "fine"]


class Moody:
    """A model that refuses until it is willing."""

    name = "moody"
    is_willing = False

    async def respond(self, request: Any, on_delta: Any = None) -> Message:
        if not self.is_willing:
            raise ModelError("not today")
        return Message(role="assistant", content="fine")


async def test_a_model_that_may_recover_is_asked_again(serving: Serving) -> None:
    """6.4: what the provider calls temporary is retried, after the time that it asked for."""
    attempts: list[int] = []

    class Recovering:
        name = "recovering"

        async def respond(self, request: Any, on_delta: Any = None) -> Message:
            attempts.append(len(attempts))
            if len(attempts) < 3:
                raise ModelError("overloaded", retryable=True, retry_after=0.01)
            return Message(role="assistant", content="back again")

    async with serving(Agent("agent", model=Recovering())) as sessions:
        session = await sessions.open("recovering", agent="agent")
        assert (await (await session.run("hello")))[-1].text == "back again"
        assert len(attempts) == 3
        assert texts(await session.transcript()) == ["hello", "back again"]


async def test_a_model_that_raises_something_of_its_own_fails_the_run_without_quoting_it(
    serving: Serving,
) -> None:
    """Secrets do not reach history: only the kind of a foreign error is told."""

    class Leaky:
        name = "leaky"

        async def respond(self, request: Any, on_delta: Any = None) -> Message:
            raise KeyError("sk-secret")

    async with serving(Agent("agent", model=Leaky())) as sessions:
        session = await sessions.open("leaky", agent="agent")
        with pytest.raises(ModelError, match="KeyError"):
            await (await session.run("hello"))
        handle = sessions.client.get_workflow_handle("session:leaky")
        assert "sk-secret" not in (await handle.fetch_history()).to_json()


@pytest.mark.parametrize(
    "answer, what",
    [(None, "NoneType"), ("hi", "str"), (Message(role="user", content="hi"), "one of role 'user'")],
)
async def test_a_model_that_returns_no_answer_is_told_so_and_not_asked_again(
    serving: Serving, answer: Any, what: str
) -> None:
    asked: list[int] = []

    class Mistaken:
        name = "mistaken"

        async def respond(self, request: Any, on_delta: Any = None) -> Any:
            asked.append(len(asked))
            return answer

    async with serving(Agent("agent", model=Mistaken())) as sessions:
        session = await sessions.open(f"mistaken-{what}", agent="agent")
        with pytest.raises(ModelError, match=f"has to return a Message.*, not {what}"):
            await (await session.run("hello?"))
        assert len(asked) == 1
        assert texts(await session.transcript()) == ["hello?"]


@pytest.mark.parametrize("piece", [("song", "x", 0), ("text", 5, 0), ("text", "x", "first")])
async def test_a_piece_that_is_none_ends_the_run_at_once(serving: Serving, piece: Any) -> None:
    class Mistaken:
        name = "mistaken"

        async def respond(self, request: Any, on_delta: Any = None) -> Message:
            on_delta(Delta(*piece))
            return Message(role="assistant", content="fine")

    async with serving(Agent("agent", model=Mistaken())) as sessions:
        session = await sessions.open(f"piece-{piece}", agent="agent")
        with pytest.raises(ModelError, match="no piece of an answer"):
            await (await session.run("hello?", stream=True))


async def test_a_model_that_returns_nothing_is_one_clear_error(serving: Serving) -> None:
    async with serving(scripted("")) as sessions:
        session = await sessions.open("silent", agent="agent")
        with pytest.raises(ModelError, match="empty message"):
            await (await session.run("hello?"))
        assert texts(await session.transcript()) == ["hello?"]


async def test_an_answer_too_large_for_the_engine_is_refused_at_once(serving: Serving) -> None:
    model = ScriptedModel("x" * 1_100_000)
    async with serving(Agent("agent", model=model)) as sessions:
        session = await sessions.open("verbose", agent="agent")
        with pytest.raises(ModelError, match="1,000,000") as failed:
            await (await session.run("go"))
        assert not failed.value.retryable
        assert len(model.requests) == 1
        assert texts(await session.entries()) == ["go"]


async def test_a_run_stops_after_the_turns_that_its_agent_allows(serving: Serving) -> None:
    """A loop without end ends; what it stored stays, and it can be sent on."""
    calls = [[call("add", a=n, b=n)] for n in range(3)]
    agent = scripted(*calls, "enough", tools=[add], max_turns=3)
    async with serving(agent) as sessions:
        session = await sessions.open("too-long", agent="agent")
        with pytest.raises(MaxTurnsError, match="3 turns"):
            await (await session.run("go"))
        assert [message.text for message in await (await session.run())] == ["enough"]


@pytest.mark.parametrize(
    "agent, error",
    [
        ("nobody", UnknownAgentError),
        ("mute", ModelSpecError),
        ("misspelt", ModelSpecError),
    ],
)
async def test_a_loop_that_cannot_start_stores_nothing(
    serving: Serving, agent: str, error: type[Exception], caplog: pytest.LogCaptureFixture
) -> None:
    """6.2: an unknown agent, no model, a bad model name fail the run and not the session; in the
    worker's log they are a line each, without a traceback.
    """
    caplog.set_level("INFO")
    agents = [Agent("mute", model=None), Agent("misspelt", model="anthropc:clade")]
    async with serving(*agents, echo()) as sessions:
        session = await sessions.open(f"stuck-{agent}", agent=agent)
        run = await session.run("hello")
        seen, failed = await watched(run)
        assert seen == []
        assert isinstance(failed, error)
        assert await session.entries() == []
        again = await sessions.open(f"stuck-{agent}", agent="agent")
        assert (await (await again.run("hello")))[-1].text == "You said 'hello'"
    assert f"start_run, attempt 1: {error.__name__}: " in caplog.text
    assert not [record.getMessage() for record in caplog.records if record.exc_info]


async def test_an_empty_session_has_nothing_to_continue(serving: Serving) -> None:
    async with serving(echo()) as sessions:
        session = await sessions.open("empty", agent="agent")
        with pytest.raises(CommandError, match="empty"):
            await (await session.run())


async def test_an_input_too_large_for_the_engine_is_refused_before_it_is_sent(
    serving: Serving,
) -> None:
    async with serving(scripted("seen")) as sessions:
        session = await sessions.open("large", agent="agent")
        handle = sessions.client.get_workflow_handle("session:large")
        before = (await handle.describe()).history_length
        with pytest.raises(CommandTooLargeError, match="1,500,000"):
            await session.run(image(b"x" * 1_500_000, "image/png"))
        assert (await handle.describe()).history_length == before
        await (await session.run(text("x" * 1_400_000)))
        assert len((await session.messages())[0].text) == 1_400_000


async def test_many_clients_of_one_session_are_all_served(
    serving: Serving,
) -> None:
    """All of them, once: the embedded server lets more than the usual ten wait at a time."""
    async with serving(echo()) as sessions:
        session = await sessions.open("crowd", agent="agent")

        async def ask(number: int) -> str:
            return (await (await session.run(f"{number}")))[-1].text

        answers = await asyncio.gather(*(ask(number) for number in range(25)))
        assert answers == [f"You said '{number}'" for number in range(25)]
        await asyncio.gather(*(session.append(f"note {number}") for number in range(25)))
        assert len(await session.entries()) == 75
        assert len(await session.leaves()) == 1


async def test_text_that_stricter_encoders_refuse_travels_unharmed(serving: Serving) -> None:
    """NUL, lone surrogates, U+2028, integers of any size reach store, model and client as they
    are.
    """
    strange = "a\x00b\ud800c\u2028d\u0085e😀"
    big = 12345678901234567890123
    seen: list[Any] = []

    from perdure import tool

    @tool
    async def keep(value: int, note: str) -> str:
        seen.append((value, note))
        return note

    agent = scripted([call("keep", value=big, note=strange)], strange, tools=[keep])
    async with serving(agent) as sessions:
        session = await sessions.open("strange", agent="agent")
        messages = await (await session.run(strange))
        assert messages[-1].text == strange
        assert texts(await session.entries())[0] == strange
        assert seen == [(big, strange)]
