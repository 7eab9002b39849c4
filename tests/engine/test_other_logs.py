"""Sessions whose logs were written elsewhere, were damaged, or are long."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from perdure import Agent, DamagedLogError, Message, MessageEntry, encode_entry
from perdure.models.scripted import ScriptedModel
from perdure.stores import FileStore
from tests.engine.agents import echo, texts
from tests.engine.conftest import Serving

FIXTURES = Path(__file__).parent.parent / "fixtures"


async def test_a_log_of_another_program_goes_on_here(serving: Serving, store: FileStore) -> None:
    """2.4, 4.4: a program that died in the middle of two calls left it; nothing is rewritten."""
    store.root.mkdir(parents=True)
    log = store.root / "interrupted.jsonl"
    shutil.copy(FIXTURES / "interrupted.jsonl", log)
    before = log.read_bytes()
    model = ScriptedModel("I start again.", start=2)
    async with serving(Agent("agent", model=model)) as sessions:
        session = await sessions.open("interrupted", agent="agent")
        [answer] = await (await session.run())

    assert answer.text == "I start again."
    assert [(m.role, m.text) for m in model.requests[0]][-1] == (
        "tool_result",
        "tool execution interrupted",
    )
    assert log.read_bytes().startswith(before)
    assert log.read_bytes().count(b"\n") == before.count(b"\n") + 1


async def test_a_damaged_log_is_one_clear_error_until_it_is_mended(
    serving: Serving, store: FileStore
) -> None:
    """2.7: the file and the line are named, nothing is changed, and the ID is not stuck."""
    async with serving(echo()) as sessions:
        session = await sessions.open("damaged", agent="agent")
        await (await session.run("hello"))
        await session.close()
        log = store.root / "damaged.jsonl"
        good = log.read_bytes()
        lines = good.split(b"\n")
        log.write_bytes(b"\n".join([lines[0], b'{"type":"message", oops', *lines[2:]]))
        bad = log.read_bytes()

        for _ in range(2):
            with pytest.raises(DamagedLogError, match=r"damaged\.jsonl, line 2"):
                await sessions.open("damaged")
        assert log.read_bytes() == bad

        log.write_bytes(good)
        again = await sessions.open("damaged", agent="agent")
        await (await again.run("mended"))
        assert texts(await again.transcript())[-1] == "You said 'mended'"


async def test_a_session_of_ten_thousand_entries_runs_and_branches(
    serving: Serving, store: FileStore
) -> None:
    """4.1, 5.1: depth is unlimited, and history does not know how long the conversation is."""
    async with serving(echo()) as sessions:
        await (await sessions.open("long")).close()
        entries = long_chain(10_000)
        await store.append_entries("long", entries)
        session = await sessions.open("long", agent="agent")
        assert (await (await session.run("end?")))[-1].text == "You said 'end?'"
        await session.branch(entries[5].id)
        assert (await (await session.run("early?")))[-1].text == "You said 'early?'"
        assert len(await session.transcript()) == 8
        handle = sessions.client.get_workflow_handle("session:long")
        history = await handle.fetch_history()
        assert sum(event.ByteSize() for event in history.events) < 20_000


def long_chain(length: int) -> list[MessageEntry]:
    """A conversation of that many messages."""
    chain: list[MessageEntry] = []
    for number in range(length):
        role = "assistant" if number % 2 else "user"
        entry = MessageEntry(
            id=f"e{number}",
            parent_id=f"e{number - 1}" if number else "",
            message=Message(role=role, content=f"message {number} " + "x" * 200),
        )
        assert encode_entry(entry)
        chain.append(entry)
    return chain
