"""Any sequence of verbs, crashes and reopenings leaves a valid log.

A sequence that fails is printed by hypothesis, made as short as it can be; `PERDURE_SEQUENCES` sets
how many are tried. To try one again, hand it to the test with `@example`.
"""

from __future__ import annotations

import asyncio
import os
import uuid
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from temporalio.service import RPCError

from perdure import Agent, Entry, Message, PerdureError, Run, Session, Sessions, Transcript
from perdure.dev_server import DevServer
from perdure.models.scripted import Answer, ScriptedModel, call
from perdure.session_id import workflow_id
from perdure.stores import MemoryStore
from perdure.worker import build_worker
from tests.core.provider import check_as_a_provider
from tests.engine.agents import add
from tests.engine.conftest import replay_all
from tests.engine.histories import counted

SEQUENCES = int(os.environ.get("PERDURE_SEQUENCES", "12"))

Step = tuple[str, int]
"""A verb, and a number that it makes of what it will."""

VERBS = [
    "run",
    "run with tools",
    "run and wait",
    "steer",
    "continue",
    "branch",
    "fork",
    "compact",
    "append",
    "cancel",
    "close",
    "reopen",
    "replace the worker",
    "terminate",
]
sequences = st.lists(st.tuples(st.sampled_from(VERBS), st.integers(0, 7)), min_size=3, max_size=14)


def agent() -> Agent:
    """It calls tools when it is told to, and takes a moment, so that it can be interrupted."""

    def answer(messages: list[Message]) -> Answer:
        last = messages[-1]
        if last.role == "user" and last.text.startswith("tools"):
            return ["Adding.", call("add", a=1, b=2), call("add", a=3, b=4)]
        return "ok"

    model = ScriptedModel(answer, delay=0.05, stream=True)
    return Agent("agent", model=model, tools=[add], compact_at_tokens=400)


@dataclass
class Play:
    """A session, what is done to it, and the receipts that came of it."""

    sessions: Sessions
    session: Session
    worker: AsyncExitStack
    runs: list[Run] = field(default_factory=list)
    watchers: list[asyncio.Task[list[Entry]]] = field(default_factory=list)
    receipts: list[Entry] = field(default_factory=list)
    children: list[str] = field(default_factory=list)

    async def act(self, verb: str, number: int) -> None:
        """Do one step. One that the session refuses changes nothing."""
        session = self.session
        match verb:
            case "run" | "run with tools" | "steer" | "continue" | "run and wait":
                await self._run(verb, number)
            case "branch":
                log = await session.entries()
                await session.branch(log[number % len(log)].id if log else "")
            case "fork":
                child = await session.fork(f"{session.id}-{len(self.children)}")
                self.children.append(child.id)
            case "compact":
                await session.compact(keep_turns=number % 3)
            case "append":
                self.receipts += await session.append(*(f"{number}.{n}" for n in range(1 + number)))
            case "cancel":
                await session.cancel()
            case "close":
                await session.close()
            case "reopen":
                self.session = await self.sessions.open(session.id, agent="agent")
            case "replace the worker":
                await self.worker.aclose()
                await self.start_worker()
            case "terminate":
                handle = self.sessions.client.get_workflow_handle(workflow_id(session.id))
                await handle.terminate("out of the blue")

    async def _run(self, verb: str, number: int) -> None:
        entries = {"run with tools": ["tools"], "continue": []}.get(verb, [f"run {number}"])
        run = await self.session.run(*entries, when_busy="steer" if verb == "steer" else "queue")
        self.watchers.append(asyncio.create_task(_receipts(run)))
        if verb == "run and wait":
            await run

    async def start_worker(self) -> None:
        worker = build_worker(
            self.sessions.client,
            agents=[agent()],
            store=self.sessions.store,
            task_queue=self.sessions.task_queue,
        )
        await self.worker.enter_async_context(worker)

    async def end(self) -> None:
        """Let what is under way come to its end."""
        self.session = await self.sessions.open(self.session.id, agent="agent")
        for receipts in await asyncio.gather(*self.watchers):
            self.receipts += receipts
        await self.session.close()


async def _receipts(run: Run) -> list[Entry]:
    receipts: list[Entry] = []
    try:
        async for event in run:
            receipts += event.entries
    except PerdureError:
        pass  # a run may fail; what it told of is stored all the same
    return receipts


async def _check(play: Play) -> None:
    for session_id in [play.session.id, *play.children]:
        log = await play.sessions.store.load_entries(session_id)
        ids = [entry.id for entry in log]
        assert len(ids) == len(set(ids))
        seen = {""}
        for entry in log:
            assert entry.parent_id in seen  # every parent exists, and was there first
            seen.add(entry.id)
        transcript = Transcript(log)
        for leaf_id in transcript.leaves():
            check_as_a_provider(transcript.model_view(leaf_id))
    log = await play.sessions.store.load_entries(play.session.id)
    for receipt in play.receipts:
        assert [entry for entry in log if entry.id == receipt.id] == [receipt]


@pytest.mark.timeout(600)
@settings(
    max_examples=SEQUENCES,
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(steps=sequences, events=st.sampled_from([1, 40]))
@example(steps=[("run with tools", 0), ("cancel", 0), ("compact", 0), ("run", 1)], events=1)
@example(steps=[("run", 0), ("replace the worker", 0), ("steer", 1), ("terminate", 0)], events=40)
async def test_any_sequence_of_verbs_and_crashes_leaves_a_valid_log(
    server: DevServer, steps: list[Step], events: int
) -> None:
    """1.3, 4.5, 6.3: parents exist, receipts are stored once, every branch is valid for a
    provider; and every history replays.
    """
    queue = f"play-{uuid.uuid4().hex}"
    sessions = Sessions(server.client, MemoryStore(), task_queue=queue, max_history_events=events)
    async with AsyncExitStack() as worker:
        first: Any = None
        play = Play(sessions, first, worker)
        await play.start_worker()
        play.session = await sessions.open(f"play-{uuid.uuid4().hex}", agent="agent")
        for verb, number in steps:
            try:
                await play.act(verb, number)
            except (PerdureError, RPCError):
                continue  # nothing to cancel, nothing to fork, no workflow to end
        await play.end()
        await _check(play)
        found = await counted(sessions.client, workflow_id(play.session.id))
        assert found["WORKFLOW_TASK_FAILED"] == 0
    await replay_all(server.client, queue)
