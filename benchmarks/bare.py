"""The yardstick: a workflow that does what a turn needs and nothing else.

A turn is one update; in it a local activity (the question would be stored), a regular one (a model
would be called) and a local one again (the answer would be stored). They do nothing: whatever time
this takes is the server's and the SDK's.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

from temporalio import activity, workflow
from temporalio.client import Client, WorkflowHandle

from benchmarks.conversation import ANSWER, QUESTION

_TIMEOUT = timedelta(seconds=60)


@activity.defn(name="bare.store")
async def store(text: str) -> None:
    """Take a text."""


@activity.defn(name="bare.answer")
async def answer(number: int) -> str:
    """Give an answer."""
    return ANSWER


@workflow.defn(name="bare.turns", sandboxed=False)
class BareTurns:
    """Takes turns until it is told to stop."""

    def __init__(self) -> None:
        self._number = 0
        self._is_over = False

    @workflow.run
    async def run(self) -> None:
        """Wait for the end."""
        await workflow.wait_condition(lambda: self._is_over)

    @workflow.update
    async def turn(self, question: str) -> str:
        """One turn."""
        self._number += 1
        await workflow.execute_local_activity(store, question, start_to_close_timeout=_TIMEOUT)
        said = await workflow.execute_activity(
            answer, self._number, start_to_close_timeout=_TIMEOUT
        )
        await workflow.execute_local_activity(store, said, start_to_close_timeout=_TIMEOUT)
        return said

    @workflow.signal
    def stop(self) -> None:
        """Let the workflow end."""
        self._is_over = True


class BareSession:
    """A bare workflow with the one verb of a session that the benchmarks compare."""

    def __init__(self, handle: WorkflowHandle[BareTurns, None]) -> None:
        self._handle = handle

    @classmethod
    async def open(cls, client: Client, session_id: str, task_queue: str) -> BareSession:
        """Start the workflow."""
        handle = await client.start_workflow(
            BareTurns.run, id=f"bare:{session_id}", task_queue=task_queue
        )
        return cls(handle)

    async def turn(self) -> None:
        """Ask the question, wait for the answer."""
        await self._handle.execute_update(BareTurns.turn, QUESTION)

    async def close(self) -> None:
        """Stop the workflow."""
        await self._handle.signal(BareTurns.stop)


BARE_WORKFLOWS = [BareTurns]
BARE_ACTIVITIES: list[Callable[..., object]] = [store, answer]
