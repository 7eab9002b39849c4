"""Compaction: a summary stands for what lies before it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from perdure import Agent, CommandError, CompactionEntry, Message, ModelError, Session, Usage
from perdure.models.scripted import ScriptedModel, call
from tests.engine.agents import add, echo, texts
from tests.engine.conftest import Serving


class Scribe:
    """Echoes, and writes summaries that name all that they cover."""

    name = "scribe"

    def __init__(self) -> None:
        self.asked: list[list[str]] = []
        self.fails = False

    async def respond(self, request: Any, on_delta: Any = None) -> Message:
        said = [message.text for message in request.messages]
        if "ummarize" not in said[-1]:
            return Message(role="assistant", content=f"re {said[-1]}")
        if self.fails:
            raise ModelError("no ink")
        self.asked.append(said)
        return Message(role="assistant", content=f"<{' '.join(said[:-1])}>")


async def talked(session: Session, *words: str) -> None:
    for word in words:
        await (await session.run(word))


async def said(session: Session) -> list[str]:
    return [message.text for message in await session.messages()]


async def test_compact_appends_one_entry_and_deletes_nothing(serving: Serving) -> None:
    """5.4: the model is sent the summary; branching before it gives everything back."""
    scribe = Scribe()
    async with serving(Agent("agent", model=scribe)) as sessions:
        session = await sessions.open("compacting", agent="agent")
        await talked(session, "a", "b")
        before = await session.entries()
        entry = await session.compact()

        assert isinstance(entry, CompactionEntry)
        assert (entry.summary, entry.first_kept_id) == ("<a re a b re b>", "")
        assert await session.entries() == [*before, entry]
        await talked(session, "c")
        assert await said(session) == ["<a re a b re b>", "c", "re c"]

        await session.branch(before[-1].id)
        assert await said(session) == ["a", "re a", "b", "re b"]


async def test_the_last_turns_can_be_kept(serving: Serving) -> None:
    """5.4: a turn starts at a user message that is not meta."""
    async with serving(Agent("agent", model=Scribe())) as sessions:
        session = await sessions.open("keeping", agent="agent")
        await talked(session, "a", "b", "c")
        entry = await session.compact(keep_turns=2)
        assert entry is not None
        kept = (await session.entries())[2]
        assert (entry.summary, entry.first_kept_id) == ("<a re a>", kept.id)
        assert await said(session) == ["<a re a>", "b", "re b", "c", "re c"]


async def test_a_second_compaction_covers_the_first(serving: Serving) -> None:
    """5.4: its summary is written from the first summary and what came after."""
    scribe = Scribe()
    async with serving(Agent("agent", model=scribe)) as sessions:
        session = await sessions.open("twice-compacted", agent="agent")
        await talked(session, "a", "b")
        await session.compact(keep_turns=1)
        await talked(session, "c")
        entry = await session.compact(keep_turns=1)
        assert entry is not None
        assert entry.summary == "<<a re a> b re b>"
        assert await said(session) == ["<<a re a> b re b>", "c", "re c"]


async def test_where_there_is_nothing_to_summarize_nothing_is_appended(serving: Serving) -> None:
    """5.4: an empty session, one that keeps all its turns, one that was just compacted."""
    async with serving(Agent("agent", model=Scribe())) as sessions:
        session = await sessions.open("nothing-to-say", agent="agent")
        assert await session.compact() is None
        await talked(session, "a")
        assert await session.compact(keep_turns=1) is None
        assert await session.compact(keep_turns=5) is None
        assert await session.compact() is not None
        log = await session.entries()
        assert await session.compact() is None
        assert await session.entries() == log


async def test_a_model_that_fails_appends_nothing_and_the_session_is_usable(
    serving: Serving,
) -> None:
    scribe = Scribe()
    async with serving(Agent("agent", model=scribe)) as sessions:
        session = await sessions.open("no-ink", agent="agent")
        await talked(session, "a")
        scribe.fails = True
        with pytest.raises(ModelError, match="no ink"):
            await session.compact()
        assert texts(await session.entries()) == ["a", "re a"]
        await talked(session, "b")
        assert await said(session) == ["a", "re a", "b", "re b"]


async def test_a_negative_number_of_turns_is_refused(serving: Serving) -> None:
    async with serving(echo()) as sessions:
        session = await sessions.open("negative", agent="agent")
        with pytest.raises(CommandError, match="keep_turns"):
            await session.compact(keep_turns=-1)


async def test_a_prompt_and_a_model_for_summaries(serving: Serving) -> None:
    """The summary may be written by another model, from a prompt of one's own."""
    short = ScriptedModel(lambda messages: f"short: {messages[-1].text}")
    async with serving(Agent("agent", model=Scribe(), compact_model=short)) as sessions:
        session = await sessions.open("by-another", agent="agent")
        await talked(session, "a")
        entry = await session.compact(prompt="In a word?")
        assert entry is not None
        assert entry.summary == "short: In a word?"


class Counting:
    """A model whose usage grows with the conversation: ten tokens a message."""

    name = "counting"

    def __init__(self, steps: int) -> None:
        self._steps = steps
        self.sizes: list[int] = []

    async def respond(self, request: Any, on_delta: Any = None) -> Message:
        size = 10 * len(request.messages)
        if "ummarize" in request.messages[-1].text:
            return Message(role="assistant", content="so far so good")
        self.sizes.append(size)
        usage = Usage(input=size, output=5)
        if len(self.sizes) > self._steps:
            return Message(role="assistant", content="done", usage=usage)
        step = call("add", a=len(self.sizes), b=0)
        block = {"type": "tool_call", "id": f"c{len(self.sizes)}", "name": step.name}
        content = [block | {"arguments": step.arguments}]
        return Message.model_validate({"role": "assistant", "content": content, "usage": usage})


async def test_a_long_run_compacts_itself_at_a_step_boundary(serving: Serving) -> None:
    """5.4: measured by the provider's own usage; no call is parted from its result."""
    model = Counting(steps=12)
    agent = Agent("agent", model=model, tools=[add], compact_at_tokens=60)
    async with serving(agent) as sessions:
        session = await sessions.open("self-compacting", agent="agent")
        messages = await (await session.run("go"))

        assert messages[-1].text == "done"
        assert max(model.sizes) <= 70
        compactions = [
            entry for entry in await session.entries() if isinstance(entry, CompactionEntry)
        ]
        assert len(compactions) >= 2
        assert all(entry.tokens_before >= 60 for entry in compactions)
        results = [message.text for message in messages if message.role == "tool_result"]
        assert results == [str(number) for number in range(1, 13)]


async def test_what_arrives_while_it_runs_is_kept_and_in_order(serving: Serving) -> None:
    """5.4: commands wait for the summary, and come after it."""
    async with serving(Agent("agent", model=Scribe())) as sessions:
        session = await sessions.open("meanwhile", agent="agent")
        await talked(session, "a")
        compacting = asyncio.create_task(session.compact())
        await asyncio.sleep(0)
        run = await session.run("b")
        await session.append("c")
        assert await compacting is not None
        await run
        assert texts(await session.entries()) == ["a", "re a", "b", "re b", "c"]
