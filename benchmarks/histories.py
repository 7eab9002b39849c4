"""How much history a session has, over all runs of its workflow."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from dataclasses import astuple, dataclass
from typing import Final, Self

from temporalio.api.enums.v1 import EventType
from temporalio.api.history.v1 import HistoryEvent
from temporalio.client import Client, WorkflowHandle

from perdure import Session
from perdure.session_id import workflow_id

_ACTIONS: Final = frozenset(
    {
        EventType.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED,
        EventType.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED,
        EventType.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ACCEPTED,
        EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED,
        EventType.EVENT_TYPE_TIMER_STARTED,
        EventType.EVENT_TYPE_UPSERT_WORKFLOW_SEARCH_ATTRIBUTES,
    }
)


@dataclass(frozen=True, slots=True)
class HistoryTotal:
    """Events, their bytes as the server counts them, and the runs of the workflow that they are
    in.
    """

    events: int
    size_bytes: int
    runs: int

    def since(self, earlier: HistoryTotal) -> Self:
        """What was added."""
        pairs = zip(astuple(self), astuple(earlier), strict=True)
        return type(self)(*(now - before for now, before in pairs))


async def history_total(client: Client, session: Session) -> HistoryTotal:
    """The whole chain of runs, once the workflow has come to rest."""
    # A query is answered after the workflow task that is under way.
    await session.status()
    return await chain_total(client, workflow_id(session.id))


async def chain_total(client: Client, workflow: str) -> HistoryTotal:
    """The whole chain of runs of a workflow, as it is now."""
    events = size_bytes = runs = 0
    async for handle in chain_of(client, workflow):
        described = (await handle.describe()).raw_description.workflow_execution_info
        events += described.history_length
        size_bytes += described.history_size_bytes
        runs += 1
    return HistoryTotal(events, size_bytes, runs)


async def action_total(client: Client, workflow: str) -> int:
    """What Temporal Cloud counts of the whole chain of runs as actions, as far as history tells:
    heartbeats, queries and retries are not in it.
    """
    total = 0
    async for handle in chain_of(client, workflow):
        total += actions_in([event async for event in handle.fetch_history_events()])
    return total


@dataclass(frozen=True, slots=True)
class Spent:
    """What a turn, or a step of one, left in history."""

    events: float
    size_bytes: float
    actions: float


async def spent_by(
    client: Client, session: Session, turn: Callable[[], Awaitable[None]], turns: int
) -> Spent:
    """What each of so many turns leaves, once the workflow has come to rest."""
    chain = workflow_id(session.id)
    before, actions = await history_total(client, session), await action_total(client, chain)
    for _ in range(turns):
        await turn()
    used = (await history_total(client, session)).since(before)
    actions = await action_total(client, chain) - actions
    return Spent(used.events / turns, used.size_bytes / turns, actions / turns)


def actions_in(events: Iterable[HistoryEvent]) -> int:
    """The actions that these events stand for. The markers of one workflow task, which are those
    of its local activities, count as one.
    """
    total = 0
    marked: set[int] = set()
    for event in events:
        total += event.event_type in _ACTIONS
        if event.event_type == EventType.EVENT_TYPE_MARKER_RECORDED:
            marked.add(event.marker_recorded_event_attributes.workflow_task_completed_event_id)
    return total + len(marked)


async def workflow_runs(
    client: Client, session: Session
) -> AsyncIterator[WorkflowHandle[object, object]]:
    """Every run of the session's workflow, the newest first."""
    async for handle in chain_of(client, workflow_id(session.id)):
        yield handle


async def chain_of(client: Client, workflow: str) -> AsyncIterator[WorkflowHandle[object, object]]:
    """Every run of the workflow, the newest first."""
    run_id: str | None = None
    while True:
        handle: WorkflowHandle[object, object] = client.get_workflow_handle(workflow, run_id=run_id)
        yield handle
        first = await anext(handle.fetch_history_events(page_size=1))
        run_id = first.workflow_execution_started_event_attributes.continued_execution_run_id
        if not run_id:
            return
