"""What a session's workflow left in its histories, those of all its runs."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable

from temporalio.api.enums.v1.event_type_pb2 import EventType
from temporalio.api.enums.v1.failed_cause_pb2 import (
    WORKFLOW_TASK_FAILED_CAUSE_FORCE_CLOSE_COMMAND,
    WORKFLOW_TASK_FAILED_CAUSE_UNHANDLED_COMMAND,
    WORKFLOW_TASK_FAILED_CAUSE_UNHANDLED_UPDATE,
)
from temporalio.api.history.v1 import HistoryEvent
from temporalio.client import Client


async def until(holds: Callable[[], Awaitable[bool]], *, seconds: float = 30) -> None:
    """Wait for something to become true in another process."""
    async with asyncio.timeout(seconds):
        while not await holds():  # noqa: ASYNC110 - another process makes it true
            await asyncio.sleep(0.02)


async def histories(client: Client, workflow_id: str) -> AsyncIterator[list[HistoryEvent]]:
    """The events of each run of the workflow, the last run first."""
    run_id: str | None = None
    while run_id != "":
        handle = client.get_workflow_handle(workflow_id, run_id=run_id)
        events = [event async for event in handle.fetch_history_events()]
        yield events
        started = events[0].workflow_execution_started_event_attributes
        run_id = started.continued_execution_run_id


async def counted(client: Client, workflow_id: str) -> Counter[str]:
    """How many events of each type there are, in all runs of the workflow."""
    found: Counter[str] = Counter()
    async for events in histories(client, workflow_id):
        found.update(
            EventType.Name(event.event_type).removeprefix("EVENT_TYPE_")
            for event in events
            if not _is_ordinary(event)
        )
    return found


def _is_ordinary(event: HistoryEvent) -> bool:
    """The server has a workflow task done again when messages arrive that it should have seen: one
    while it ends the run, or a hundred while it goes on. That is no fault.
    """
    return event.workflow_task_failed_event_attributes.cause in _OVERTAKEN


_OVERTAKEN = {
    WORKFLOW_TASK_FAILED_CAUSE_FORCE_CLOSE_COMMAND,
    WORKFLOW_TASK_FAILED_CAUSE_UNHANDLED_COMMAND,
    WORKFLOW_TASK_FAILED_CAUSE_UNHANDLED_UPDATE,
}
