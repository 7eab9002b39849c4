"""The activity that asks the model stores the answer, too: once, whatever the store does."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest
from temporalio import activity

from perdure import Agent, Entry, MessageEntry, RunCancelledError, Transcript
from perdure.messages import Role
from perdure.stores import MemoryStore
from perdure.testing import ScriptedModel
from tests.engine.conftest import Serving


class Failing(MemoryStore):
    """A store that fails at the first answer that it is given, before or after it has taken it."""

    def __init__(self, *, takes_it: bool) -> None:
        super().__init__()
        self._takes_it = takes_it
        self._has_failed = False

    async def append_entries(self, session_id: str, entries: Sequence[Entry]) -> None:
        fails = not self._has_failed and _is_answer(entries[-1])
        if not fails or self._takes_it:
            await super().append_entries(session_id, entries)
        if fails:
            self._has_failed = True
            raise OSError("the disk is gone")


class Slow(MemoryStore):
    """A store that is at work on an answer until the run is cancelled."""

    def __init__(self) -> None:
        super().__init__()
        self.is_asked = asyncio.Event()

    async def append_entries(self, session_id: str, entries: Sequence[Entry]) -> None:
        if _is_answer(entries[-1]):
            self.is_asked.set()
            await activity.wait_for_cancelled()
        await super().append_entries(session_id, entries)


def _is_answer(entry: Entry) -> bool:
    return isinstance(entry, MessageEntry) and entry.message.role == Role.ASSISTANT


@pytest.mark.parametrize("takes_it", [False, True])
async def test_an_answer_that_the_store_does_not_confirm_is_neither_lost_nor_paid_for_twice(
    serving: Serving, takes_it: bool
) -> None:
    """And its receipt is of what the log has, down to its time."""
    model = ScriptedModel("First.", "Second.")
    store = Failing(takes_it=takes_it)
    async with serving(Agent("plain", model=model), over=store) as sessions:
        session = await sessions.open(f"unconfirmed-{takes_it}", agent="plain")
        run = await session.run("go")
        receipts = [entry async for event in run for entry in event.entries]
        assert (await run)[-1].text == "First."
        assert (await (await session.run("on")))[-1].text == "Second."

    assert len(model.requests) == 2
    entries = await store.load_entries(session.id)
    assert receipts == entries[:2]
    assert _is_chain(entries)


async def test_a_run_that_is_cancelled_while_its_answer_is_stored_keeps_all_of_it(
    serving: Serving,
) -> None:
    store = Slow()
    async with serving(Agent("plain", model=ScriptedModel("All of it.")), over=store) as sessions:
        session = await sessions.open("cancelled-late", agent="plain")
        run = await session.run("go", stream=True)
        await store.is_asked.wait()
        await session.cancel()
        with pytest.raises(RunCancelledError):
            await run

    entries = await store.load_entries(session.id)
    assert _is_chain(entries)
    assert [entry.message.text for entry in entries if isinstance(entry, MessageEntry)] == [
        "go",
        "All of it.",
    ]


def _is_chain(entries: Sequence[Entry]) -> bool:
    return Transcript(entries).path() == list(entries)
