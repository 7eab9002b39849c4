"""How much history a session has, over all runs of its workflow."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass

from temporalio.client import Client, WorkflowHandle

from perdure import Session
from perdure.session_id import workflow_id


@dataclass(frozen=True, slots=True)
class HistoryTotal:
    """Events, their bytes as the server counts them, and the runs of the workflow that they are
    in.
    """

    events: int
    size_bytes: int
    runs: int

    def since(self, earlier: HistoryTotal) -> HistoryTotal:
        """What was added."""
        return HistoryTotal(
            self.events - earlier.events,
            self.size_bytes - earlier.size_bytes,
            self.runs - earlier.runs,
        )


async def history_total(client: Client, session: Session) -> HistoryTotal:
    """The whole chain of runs, once the workflow has come to rest."""
    # A query is answered after the workflow task that is under way.
    await session.status()
    events = size_bytes = runs = 0
    async for handle in workflow_runs(client, session):
        described = (await handle.describe()).raw_description.workflow_execution_info
        events += described.history_length
        size_bytes += described.history_size_bytes
        runs += 1
    return HistoryTotal(events, size_bytes, runs)


async def workflow_runs(
    client: Client, session: Session
) -> AsyncIterator[WorkflowHandle[object, object]]:
    """Every run of the session's workflow, the newest first."""
    run_id: str | None = None
    while True:
        handle: WorkflowHandle[object, object] = client.get_workflow_handle(
            workflow_id(session.id), run_id=run_id
        )
        yield handle
        first = await anext(handle.fetch_history_events(page_size=1))
        run_id = first.workflow_execution_started_event_attributes.continued_execution_run_id
        if not run_id:
            return
