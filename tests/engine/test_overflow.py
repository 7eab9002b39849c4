"""A conversation that is too long for its model is summarized, once, and the run goes on."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

import pytest

from perdure import (
    Agent,
    CompactionEntry,
    ContextOverflowError,
    Message,
    MessageEntry,
    ModelError,
    Session,
    ephemeral,
    tool,
)
from perdure.messages import ToolCallBlock
from perdure.models.protocol import Delta
from tests.engine.agents import shape, watched
from tests.engine.conftest import Serving

NEVER = 10**9
"""So many tokens that nothing is compacted before a model says that it is too much."""

LONG = "word " * 2_000


class Narrow:
    """A model that takes so many characters at a time, and says so when it is sent more."""

    name = "narrow"

    def __init__(self, width: int, *answers: str | ToolCallBlock) -> None:
        self.width = width
        self.asked: list[str] = []
        self.refused = 0
        self.summaries: list[str] = []
        self._answers = list(answers)

    async def respond(self, request: Any, on_delta: Any = None) -> Message:
        texts = [message.text for message in request.messages]
        is_summary = "ummarize the conv" in texts[-1]
        if on_delta is not None:
            on_delta(Delta("text", "Well", 0))
        if sum(map(len, texts)) > self.width:
            self.refused += 1
            raise ContextOverflowError(f"more than {self.width} characters")
        if is_summary:
            self.summaries.append(texts[-1])
            return Message(role="assistant", content=f"summary {len(self.summaries)}")
        self.asked.append(" | ".join(texts))
        answer = self._answers.pop(0) if self._answers else "noted"
        return Message(role="assistant", content=answer if isinstance(answer, str) else (answer,))


def narrow(model: Any, *, tools: Iterable[Any] = (), limit: int | None = NEVER) -> Agent:
    return Agent("agent", model=model, tools=tools, compact_at_tokens=limit)


async def shown(session: Session) -> list[str]:
    """The log in short."""
    lines = []
    for entry in await session.entries():
        if isinstance(entry, CompactionEntry):
            lines.append(f"<{entry.summary}>")
        elif isinstance(entry, MessageEntry):
            lines.append(f"{entry.message.role} {entry.message.text[:9]}".strip())
    return lines


async def test_the_run_compacts_and_goes_on(serving: Serving) -> None:
    """5.4: in the same turn; the log has the summary, and nothing is lost from it."""
    model = Narrow(12_000)
    async with serving(narrow(model)) as sessions:
        session = await sessions.open("overflow", agent="agent")
        await (await session.run(LONG))
        run = await session.run(f"{LONG} twice")
        events, error = await watched(run)
        again, _ = await watched(session.attach(run.id))

        assert error is None
        assert await shown(session) == [
            "user word word",
            "assistant noted",
            "user word word",
            "<summary 2>",
            "assistant noted",
        ]
        assert model.asked[-1] == "summary 2"
        assert (
            shape(events)
            == shape(again)
            == [
                "agent_start*",
                "turn_start",
                "message_start",
                "message_end*",
                "turn_end",
                "agent_end",
            ]
        )
        # Summarized in two parts, the second after the summary of the first.
        assert [len(part) // 10_000 for part in model.summaries] == [1, 1]
        assert "summary 1" in model.summaries[1]


async def test_in_the_middle_of_a_run_and_through_renewals(serving: Serving) -> None:
    """Between a tool's result and the answer to it, whenever the workflow continues as new."""

    @tool
    async def read() -> str:
        return LONG

    model = Narrow(15_000, *(ToolCallBlock(id=f"c{n}", name="read") for n in range(4)), "done")
    async with serving(narrow(model, tools=[read]), max_history_events=1) as sessions:
        session = await sessions.open("overflow-in-run", agent="agent")
        run = await session.run("read")
        assert [message.text for message in await run][-1] == "done"
        log = await shown(session)
        assert sum(line.startswith("<") for line in log) == 2
        assert sum(line.startswith("tool_result") for line in log) == 4
        assert (await session.status()).turns == 5


async def test_without_automatic_compaction_the_run_fails_by_name(serving: Serving) -> None:
    model = Narrow(100)
    async with serving(narrow(model, limit=None)) as sessions:
        session = await sessions.open("no-compaction", agent="agent")
        with pytest.raises(ContextOverflowError, match="more than 100 characters"):
            await (await session.run(LONG))
        assert await shown(session) == ["user word word"]
        assert model.refused == 1


async def test_it_compacts_once_and_no_more(serving: Serving) -> None:
    """When the summary is too long as well, the run fails; the session lives on."""

    class Stubborn(Narrow):
        async def respond(self, request: Any, on_delta: Any = None) -> Message:
            if request.messages[-1].text.startswith("summary"):
                raise ContextOverflowError("still too long")
            return await super().respond(request, on_delta)

    model = Stubborn(8_000)
    async with serving(narrow(model)) as sessions:
        session = await sessions.open("once", agent="agent")
        with pytest.raises(ContextOverflowError, match="still too long"):
            await (await session.run(LONG))
        log = await shown(session)
        assert [line[:8] for line in log] == ["user wor", "<summary"]
        assert (await (await session.run("hello?")))[-1].text == "noted"


async def test_where_there_is_nothing_to_summarize_the_run_fails(serving: Serving) -> None:
    """What is ephemeral is not in the log, so a summary cannot shorten it."""
    model = Narrow(5_000)
    async with serving(narrow(model)) as sessions:
        session = await sessions.open("nothing-there", agent="agent")
        with pytest.raises(ContextOverflowError):
            await (await session.run(ephemeral(LONG)))
        assert (await session.entries(), model.summaries, model.refused) == ([], [], 1)


async def test_a_summary_that_cannot_be_had_fails_the_run_with_the_first_error(
    serving: Serving,
) -> None:
    """Whether it is too long, however small its parts, or fails for another reason."""

    class Mute(Narrow):
        async def respond(self, request: Any, on_delta: Any = None) -> Message:
            if "ummarize" in request.messages[-1].text:
                raise ModelError("no ink")
            return await super().respond(request, on_delta)

    for name, model in (("mute", Mute(500)), ("too-narrow", Narrow(500))):
        async with serving(narrow(model)) as sessions:
            session = await sessions.open(name, agent="agent")
            with pytest.raises(ContextOverflowError, match="more than 500"):
                await (await session.run(LONG))
            assert await shown(session) == ["user word word"]


async def test_a_watcher_of_a_streamed_run_is_told_that_the_message_begins_anew(
    serving: Serving,
) -> None:
    """What was said before the conversation was compacted is void."""
    heard = asyncio.Event()

    class Patient(Narrow):
        async def respond(self, request: Any, on_delta: Any = None) -> Message:
            try:
                return await super().respond(request, on_delta)
            except ContextOverflowError:
                if on_delta is not None:
                    await heard.wait()
                raise

    agent = Agent("agent", model=Patient(8_000), compact_at_tokens=NEVER, stream_interval=0.01)
    async with serving(agent) as sessions:
        session = await sessions.open("streamed-overflow", agent="agent")
        told = []
        async for event in await session.run(LONG, stream=True):
            if event.type == "message_update":
                told.append("reset" if event.delta is None else event.delta.text)
                heard.set()
    assert told == ["Well", "reset", "Well"]
