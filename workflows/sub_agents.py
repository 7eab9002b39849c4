"""Tool calls that another agent answers, in a session of its own.

The other session is a child workflow that is started with the task in its inbox, and a `close`
after it: it ends when its run has ended, and its result reports on that. So nothing is asked
twice, whatever dies: the engine knows one child by one ID.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeAlias, TypeVar

from temporalio import workflow
from temporalio.exceptions import (
    ApplicationError,
    ChildWorkflowError,
    TerminatedError,
    WorkflowAlreadyStartedError,
)

from perdure import names
from perdure.protocol import (
    CancelCommand,
    CloseCommand,
    Errand,
    ErrandReport,
    MessageJson,
    PlannedCall,
    RunCommand,
    SessionState,
)
from perdure.repair import INTERRUPTED
from perdure.session_id import tenant_of, workflow_id
from perdure.workflows.log import SessionLog
from perdure.workflows.summaries import child_summary

MAX_DEPTH = 5
"""How deep sub-agents may be nested. An agent that asks itself would otherwise never end."""


T = TypeVar("T")

_Child: TypeAlias = "workflow.ChildWorkflowHandle[Any, ErrandReport]"

_RUN_ID = "task"
"""The one run of a sub-agent's session that its parent asks for."""


class SubAgentCall:
    """One call of a sub-agent. `cancel` it to have the other run cancelled.

    That run is part of the `trace`, if there is one.
    """

    def __init__(
        self, call: PlannedCall, state: SessionState, log: SessionLog, trace: str = ""
    ) -> None:
        self._call = call
        self._trace = trace
        self._log = log
        self._state = state
        self._depth = 1 + (0 if state.errand is None else state.errand.depth)
        self._is_cancelled = False
        self._is_late = False

    def cancel(self) -> None:
        """Cancel the other run, and answer as soon as it has ended."""
        self._is_cancelled = True

    async def answer(self) -> MessageJson:
        """The other agent's last message as the call's result, or what went wrong as an error."""
        if self._depth > MAX_DEPTH:
            return self._error(
                f"sub-agents may be nested {MAX_DEPTH} deep, and this would be one more; "
                "do it without another agent"
            )
        try:
            report = await self._report()
        except WorkflowAlreadyStartedError:
            return self._error(
                f"somebody opened the session {self._call.child_id!r} before its agent"
            )
        except ChildWorkflowError as error:
            is_ended = isinstance(error.cause, TerminatedError)
            return self._error("the agent's session was ended" if is_ended else INTERRUPTED)
        if self._is_late:
            return self._error(f"the agent did not finish within {self._call.timeout:g} seconds")
        reason = report.outcome.error
        if reason is None:
            return self._result(report.content)
        if self._is_cancelled:
            return self._error(INTERRUPTED)
        return self._error(f"{reason.type}: {reason.message}")

    async def _report(self) -> ErrandReport:
        """What became of the other run."""
        child = await self._start()
        try:
            await workflow.wait_condition(
                lambda: child.done() or self._is_cancelled,
                timeout=self._call.timeout,
                timeout_summary=f"{self._call.sub_agent} has {self._call.timeout:g} s"
                if self._call.timeout is not None
                else None,
            )
        except TimeoutError:
            self._is_late = True
        if not child.done():
            await self._stop(child)
        return await child

    async def _start(self) -> _Child:
        state, call = self._state, self._call
        task = RunCommand.model_validate({"command_id": _RUN_ID, "entries": call.arguments["task"]})
        if self._trace:
            task.trace, task.accepted_at = self._trace, workflow.time()
        child = SessionState(
            session_id=call.child_id,
            agent=call.sub_agent,
            max_history_events=state.max_history_events,
            max_history_events_in_run=state.max_history_events_in_run,
            max_command_bytes=state.max_command_bytes,
            inbox=[task, CloseCommand(command_id="close")],
            parent_id=state.session_id,
            errand=Errand(parent_id=state.session_id, run_id=_RUN_ID, depth=self._depth),
        )
        starting: Coroutine[Any, Any, _Child] = workflow.start_child_workflow(
            names.SESSION_WORKFLOW,
            child,
            id=workflow_id(call.child_id, tenant=tenant_of(workflow.info().workflow_id)),
            result_type=ErrandReport,
            # When the session ends in the middle of a call, nobody waits for the answer.
            parent_close_policy=workflow.ParentClosePolicy.REQUEST_CANCEL,
            task_timeout=workflow.info().task_timeout,
            static_summary=child_summary(call, state),
        )
        return await self._between_appends(starting)

    async def _between_appends(self, asking: Coroutine[Any, Any, T]) -> T:
        """Ask the engine while no append is under way, and await its answer when one may be."""
        async with self._log.between_appends():
            asked = asyncio.ensure_future(asking)
            await asyncio.sleep(0)  # by now it has asked
        return await asked

    async def _stop(self, child: _Child) -> None:
        """Have the run end as a cancelled one does, with all that it said in its log."""
        try:
            await self._between_appends(child.signal(names.CANCEL, CancelCommand(run_id=_RUN_ID)))
        except ApplicationError:
            child.cancel()

    def _error(self, text: str) -> MessageJson:
        return self._result([{"type": "text", "text": text}]) | {"is_error": True}

    def _result(self, content: list[dict[str, Any]]) -> MessageJson:
        return {
            "role": "tool_result",
            "content": content,
            "tool_call_id": self._call.id,
            "tool_name": self._call.name,
        }


def is_sub_agent_call(call: PlannedCall) -> bool:
    """Whether another agent answers the call. One whose arguments do not fit is answered as that
    of any other tool.
    """
    if not call.sub_agent or set(call.arguments) != {"task"}:
        return False
    task = call.arguments["task"]
    return isinstance(task, str) and task != ""
