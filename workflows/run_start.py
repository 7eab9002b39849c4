"""The beginning of a run: whether its loop can start, and with which tools."""

from __future__ import annotations

from temporalio import workflow

from perdure import names
from perdure.protocol import ListTools, RunPlan, StartRun, ToolList
from perdure.workflows.history import HistoryLength
from perdure.workflows.summaries import append_summary
from perdure.workflows.timing import LISTING, STORING


async def start_run(request: StartRun, history: HistoryLength) -> tuple[RunPlan, str]:
    """Have the run's input stored if its loop can start; answers with the plan, and with the digest
    of the tools, which is empty unless servers had to be asked.

    Raises what the failed activity raised, with nothing stored.
    """
    plan = await _start(request)
    if not plan.asks_servers:
        return plan, ""
    # Not in the local activity above: servers take their time, and a local one holds the workflow
    # task meanwhile.
    listed: ToolList = await workflow.execute_activity(
        names.LIST_TOOLS,
        ListTools(agent=request.agent),
        result_type=ToolList,
        summary=f"tools of {request.agent}"[:120],
        **LISTING,
    )
    history.add_activities()
    request = request.model_copy(update={"tools": listed.digest})
    return await _start(request), listed.digest


async def _start(request: StartRun) -> RunPlan:
    plan: RunPlan = await workflow.execute_local_activity(
        names.START_RUN,
        request,
        result_type=RunPlan,
        summary=append_summary(len(request.entries)),
        **STORING,
    )
    return plan
