"""The tool calls of one turn, side by side."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from temporalio import workflow
from temporalio.exceptions import ActivityError, ApplicationError

from perdure import names
from perdure.protocol import ActiveRun, MessageJson, PlannedCall, RunTool, SessionState, ToolReply
from perdure.repair import INTERRUPTED
from perdure.workflows.log import SessionLog
from perdure.workflows.sub_agents import SubAgentCall, is_sub_agent_call
from perdure.workflows.summaries import tool_summary
from perdure.workflows.timing import tool_timing


class ToolCalls:
    """Runs calls and hands each result over as it arrives."""

    def __init__(
        self,
        run: ActiveRun,
        state: SessionState,
        log: SessionLog,
        store: Callable[[MessageJson], Awaitable[None]],
    ) -> None:
        self._run = run
        self._state = state
        self._log = log
        self._store = store
        self._calls: list[workflow.ActivityHandle[ToolReply] | SubAgentCall] = []

    async def run(self, calls: Sequence[PlannedCall]) -> None:
        """Run the calls of one message. When this returns, each of them has its result stored."""
        endings = await asyncio.gather(*(self._one(call) for call in calls), return_exceptions=True)
        self._calls.clear()
        for ending in endings:
            if isinstance(ending, BaseException):
                raise ending

    def cancel(self) -> None:
        """Interrupt the calls that run; a cancelled run starts no others."""
        for call in self._calls:
            call.cancel()

    async def _one(self, call: PlannedCall) -> None:
        if self._run.is_cancelled:
            await self._store(_error(call, INTERRUPTED))
            return
        if is_sub_agent_call(call):
            asked = SubAgentCall(call, self._state, self._log)
            self._calls.append(asked)
            await self._store(await asked.answer())
            return
        handle = workflow.start_activity(
            names.RUN_TOOL,
            RunTool(
                session_id=self._state.session_id,
                agent=self._run.agent,
                run_id=self._run.run_id,
                call=call,
                tools=self._run.tools,
            ),
            result_type=ToolReply,
            summary=tool_summary(call),
            **tool_timing(call.timeout, call.idempotent),
        )
        self._calls.append(handle)
        try:
            message = (await handle).message
        except ActivityError as error:
            cause = error.cause
            told = cause.message if isinstance(cause, ApplicationError) else INTERRUPTED
            message = _error(call, told)
        await self._store(message)


def _error(call: PlannedCall, text: str) -> MessageJson:
    return {
        "role": "tool_result",
        "content": [{"type": "text", "text": text}],
        "tool_call_id": call.id,
        "tool_name": call.name,
        "is_error": True,
    }
