"""Branch: the leaf moves, and that is all."""

from __future__ import annotations

import json

import pytest

from perdure import EntryNotFoundError, ephemeral
from tests.engine.agents import echo, texts
from tests.engine.conftest import Serving


async def test_branch_moves_the_leaf_and_changes_nothing_that_is_stored(serving: Serving) -> None:
    """5.1: rewind is to branch; the abandoned branch stays complete."""
    async with serving(echo()) as sessions:
        session = await sessions.open("rewind", agent="agent")
        await (await session.run("one"))
        checkpoint = await session.leaf_id()
        await (await session.run("two"))
        log = await session.entries()

        await session.branch(checkpoint)
        assert await session.leaf_id() == checkpoint
        assert await session.entries() == log
        assert texts(await session.transcript()) == ["one", "You said 'one'"]

        await (await session.run("three"))
        assert texts(await session.transcript()) == [
            "one",
            "You said 'one'",
            "three",
            "You said 'three'",
        ]
        assert (await session.entries())[: len(log)] == log
        assert len(await session.leaves()) == 2


async def test_edit_and_retry_are_branches(serving: Serving) -> None:
    """5.1: edit is to branch before an entry and run new text; retry is to branch and run again."""
    async with serving(echo()) as sessions:
        session = await sessions.open("edit", agent="agent")
        await (await session.run("helo"))
        question, answer = await session.entries()

        await session.branch("")
        await (await session.run("hello"))
        assert texts(await session.transcript()) == ["hello", "You said 'hello'"]

        await session.branch(question.id)
        [again] = await (await session.run())
        assert again.text == "You said 'helo'"
        assert [entry.parent_id for entry in await session.entries()][-1] == answer.parent_id


async def test_a_leaf_that_was_moved_survives_a_continue_as_new(serving: Serving) -> None:
    """5.2: the leaf is live state of the instance."""
    async with serving(echo(), max_history_events=1) as sessions:
        session = await sessions.open("moved", agent="agent")
        await (await session.run("one"))
        checkpoint = await session.leaf_id()
        await (await session.run("two"))
        await session.branch(checkpoint)
        assert await session.leaf_id() == checkpoint
        await (await session.run("three"))
        assert texts(await session.transcript())[2:] == ["three", "You said 'three'"]


async def test_a_session_that_is_opened_again_resumes_at_the_last_appended_entry(
    serving: Serving,
) -> None:
    """5.2: the leaf is not a stored fact."""
    async with serving(echo()) as sessions:
        session = await sessions.open("reopened", agent="agent")
        await (await session.run("one"))
        last = await session.leaf_id()
        await session.branch("")
        await session.close()
        assert await (await sessions.open("reopened")).leaf_id() == last


@pytest.mark.parametrize("entry_id", ["nowhere", "x" * 500, "ключ", "\ud800"])
async def test_branch_to_an_unknown_entry_moves_nothing(serving: Serving, entry_id: str) -> None:
    """5.1: an error, nothing moves."""
    async with serving(echo()) as sessions:
        session = await sessions.open()
        await session.append("here")
        leaf = await session.leaf_id()
        with pytest.raises(EntryNotFoundError, match="nothing changed"):
            await session.branch(entry_id)
        assert await session.leaf_id() == leaf


async def test_branch_refuses_what_was_ephemeral_or_is_another_sessions(serving: Serving) -> None:
    """3.4, 5.1."""
    async with serving(echo()) as sessions:
        session = await sessions.open("mine", agent="agent")
        run = await session.run(ephemeral("whisper"), "hello")
        await run
        other = await sessions.open("theirs")
        [foreign] = await other.append("elsewhere")
        history = await sessions.client.get_workflow_handle("session:mine").fetch_history()
        for event in history.events:
            scheduled = event.activity_task_scheduled_event_attributes
            if scheduled.activity_type.name == "perdure.call_model":
                [whisper] = json.loads(scheduled.input.payloads[0].data)["ephemeral"]
        for entry_id in (whisper["id"], foreign.id):
            with pytest.raises(EntryNotFoundError):
                await session.branch(entry_id)
