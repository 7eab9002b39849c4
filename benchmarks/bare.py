"""The yardstick: a workflow that does what a turn needs and nothing else.

A turn is one update; in it a local activity for the question, a regular one in the place of the
model call, and a local one for the answer. A tool call is three more: a local one for what the
model said, a regular one in the place of the tool, a local one for its result; then the model is
called again. The local ones add a line to a file and wait until it is on disk, the least that a
durable store can do; or they do nothing at all, and what is left is the server and the SDK.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from temporalio import activity, workflow
from temporalio.client import Client, WorkflowHandle

from benchmarks.conversation import ANSWER, QUESTION, RECORD

STORE = "bare.store"
NOTHING = "bare.nothing"

_TIMEOUT = timedelta(seconds=60)


@workflow.defn(name="bare.turns", sandboxed=False)
class BareTurns:
    """Takes turns until it is told to stop. The local activities are those of the given name."""

    @workflow.init
    def __init__(self, local_activity: str) -> None:
        self._local_activity = local_activity
        self._number = 0
        self._is_over = False

    @workflow.run
    async def run(self, local_activity: str) -> None:
        """Wait for the end."""
        await workflow.wait_condition(lambda: self._is_over)

    @workflow.update
    async def turn(self, question: str, results: Sequence[int] = ()) -> str:
        """One turn, with a tool call for each of the given lengths of results."""
        self._number += 1
        await self._store(question)
        said = await self._answer()
        for size in results:
            await self._store(said)
            result = await workflow.execute_activity(find, size, start_to_close_timeout=_TIMEOUT)
            await self._store(result)
            said = await self._answer()
        await self._store(said)
        return said

    @workflow.signal
    def stop(self) -> None:
        """Let the workflow end."""
        self._is_over = True

    async def _answer(self) -> str:
        return await workflow.execute_activity(
            answer, self._number, start_to_close_timeout=_TIMEOUT
        )

    async def _store(self, text: str) -> None:
        await workflow.execute_local_activity(
            self._local_activity, text, start_to_close_timeout=_TIMEOUT
        )


@activity.defn(name="bare.answer")
async def answer(number: int) -> str:
    """Answer at once."""
    return ANSWER


@activity.defn(name="bare.find")
async def find(size: int) -> str:
    """A result of so many characters."""
    return RECORD[:size]


@activity.defn(name=NOTHING)
async def nothing(text: str) -> None:
    """Take a text."""


@dataclass(frozen=True, slots=True)
class BareStore:
    """A file for each workflow."""

    folder: Path

    @activity.defn(name=STORE)
    async def store(self, text: str) -> None:
        """Put a line on disk."""
        workflow_id = activity.info().workflow_id or ""
        await asyncio.to_thread(_append, self.folder / f"{workflow_id}.txt", f"{text}\n".encode())


def _append(path: Path, line: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(descriptor, line)
        os.fdatasync(descriptor)
    finally:
        os.close(descriptor)


class BareSession:
    """A bare workflow with the one verb of a session that the benchmarks compare."""

    def __init__(self, handle: WorkflowHandle[BareTurns, None]) -> None:
        self._handle = handle

    @classmethod
    async def open(
        cls, client: Client, session_id: str, task_queue: str, local_activity: str = STORE
    ) -> BareSession:
        """Start the workflow."""
        handle = await client.start_workflow(
            BareTurns.run,
            local_activity,
            id=f"{local_activity}:{session_id}",
            task_queue=task_queue,
        )
        return cls(handle)

    @property
    def workflow_id(self) -> str:
        """The ID of the workflow."""
        return self._handle.id

    async def turn(self, *results: int) -> None:
        """Ask the question, wait for the answer; in between a tool call for each of the given
        lengths of results.
        """
        await self._handle.execute_update(BareTurns.turn, args=[QUESTION, results])

    async def close(self) -> None:
        """Stop the workflow."""
        await self._handle.signal(BareTurns.stop)


def bare_activities(folder: Path) -> list[Callable[..., object]]:
    """What a worker of the bare workflow has to serve."""
    return [answer, find, nothing, BareStore(folder).store]
