"""Lifecycle events: told after the effect, to the publisher and on the stream."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from temporalio.worker import Worker

from perdure import Agent, EntryNotFoundError, SessionEvent, Sessions
from perdure.dev_server import DevServer
from perdure.lifecycle import Publisher
from perdure.models.scripted import ScriptedModel
from perdure.stores import FileStore
from perdure.worker import build_worker
from tests.engine.agents import echo
from tests.engine.conftest import Serving


def worker(server: DevServer, store: FileStore, publisher: Publisher, queue: str) -> Worker:
    agent = Agent("agent", model=ScriptedModel("one", "the summary"))
    return build_worker(
        server.client, agents=[agent], store=store, task_queue=queue, publisher=publisher
    )


def facts(event: SessionEvent) -> tuple[str, str, str, str, str]:
    summary = event.entry.summary if event.entry else ""
    return (event.type, event.session_id, event.from_id, event.parent_id, summary)


class Diary:
    """A publisher with a method; the events that it was told."""

    def __init__(self) -> None:
        self.events: list[SessionEvent] = []

    async def publish(self, event: SessionEvent) -> None:
        self.events.append(event)


async def test_the_publisher_is_told_after_each_effect(server: DevServer, store: FileStore) -> None:
    """7.1, 7.2: init, branch, fork (and then the child's init), compaction, with their fields."""
    diary = Diary()
    async with worker(server, store, diary, "told"):
        sessions = Sessions(server.client, store, task_queue="told")
        session = await sessions.open("told", agent="agent")
        await (await session.run("hello"))
        question, answer = await session.entries()
        await session.branch(question.id)
        await session.branch(answer.id)
        await session.fork("told/child")
        entry = await session.compact()
        await session.close()
        await sessions.open("told")

    assert entry is not None
    assert [facts(event) for event in diary.events] == [
        ("session_init", "told", "", "", ""),
        ("session_branched", "told", answer.id, "", ""),
        ("session_branched", "told", question.id, "", ""),
        ("session_forked", "told/child", "", "told", ""),
        ("session_init", "told/child", "", "", ""),
        ("session_compacted", "told", "", "", "the summary"),
        ("session_init", "told", "", "", ""),
    ]
    child_leaf = (await store.load_entries("told/child"))[-1].id
    assert [event.leaf_id for event in diary.events] == [
        "",
        question.id,
        answer.id,
        "",
        child_leaf,
        entry.id,
        entry.id,
    ]


async def test_a_verb_that_fails_publishes_nothing(server: DevServer, store: FileStore) -> None:
    """7.2."""
    told: list[str] = []
    async with worker(server, store, lambda event: told.append(event.type), "untold"):
        sessions = Sessions(server.client, store, task_queue="untold")
        session = await sessions.open("untold", agent="agent")
        await session.append("hello")
        with pytest.raises(EntryNotFoundError):
            await session.branch("nowhere")
        assert await session.compact(keep_turns=3) is None
    assert told == ["session_init"]


async def test_a_publisher_that_fails_undoes_nothing_and_is_reported(
    server: DevServer, store: FileStore
) -> None:
    """7.3: a bounded number of tries; the effect stands, `status` tells."""
    tries: list[str] = []

    def broken(event: SessionEvent) -> None:
        tries.append(event.type)
        raise RuntimeError("sk-secret")

    async with worker(server, store, broken, "broken"):
        sessions = Sessions(server.client, store, task_queue="broken")
        session = await sessions.open("broken", agent="agent")
        [entry, _] = await session.append("hello", "there")
        await session.branch(entry.id)
        status = await session.status()
        assert status.leaf_id == entry.id
        assert status.last_error is not None
        assert status.last_error.type == "PublisherError"
        assert "sk-secret" not in status.last_error.message
    assert 2 <= tries.count("session_branched") <= 10


async def test_any_process_can_subscribe(serving: Serving, tmp_path: Path) -> None:
    """The same events on the stream, across a continue-as-new."""
    async with serving(echo(), max_history_events=12) as sessions:
        session = await sessions.open("subscribed", agent="agent")
        seen: list[str] = []
        is_watching = asyncio.Event()

        async def watch() -> None:
            async for event in session.lifecycle():
                seen.append(event.type)
                is_watching.set()
                if event.type == "session_forked":
                    return

        watching = asyncio.create_task(watch())
        await is_watching.wait()
        for word in ("one", "two", "three"):
            await (await session.run(word))
        await session.branch("")
        await session.branch((await session.entries())[-1].id)
        await session.fork("subscribed/child")
        await asyncio.wait_for(watching, 20)
        assert seen == ["session_init", "session_branched", "session_branched", "session_forked"]


async def test_without_a_publisher_nothing_is_different(serving: Serving) -> None:
    """7.3."""
    async with serving(echo()) as sessions:
        session = await sessions.open("unpublished", agent="agent")
        await session.append("hello")
        await session.branch("")
        assert (await session.status()).last_error is None
