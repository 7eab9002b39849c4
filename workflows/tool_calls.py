"""The tool calls of one turn: side by side, but for those that run alone or wait for a person."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from itertools import takewhile

from temporalio import workflow
from temporalio.exceptions import ActivityError, ApplicationError
from temporalio.exceptions import TimeoutError as ActivityTimeout

from perdure import names
from perdure.protocol import (
    ActiveRun,
    ApproveCommand,
    CheckArguments,
    CheckedArguments,
    ErrorInfo,
    EventRecord,
    MessageJson,
    OpenCall,
    PlannedCall,
    RunTool,
    SessionState,
    ToolReply,
)
from perdure.protocol.observed import ApprovalEnded, CallEnded
from perdure.repair import INTERRUPTED
from perdure.run_events import EventScript
from perdure.workflows.approvals import (
    accept_proposal,
    edited_note,
    opened,
    pending,
    take_answer,
)
from perdure.workflows.attributes import show_status
from perdure.workflows.failures import reason_of
from perdure.workflows.history import HistoryLength
from perdure.workflows.log import SessionLog, message_entry, wire_time
from perdure.workflows.sub_agents import SubAgentCall, is_sub_agent_call
from perdure.workflows.summaries import tool_summary
from perdure.workflows.timing import CHECKING, tool_timing
from perdure.workflows.tracing import call_trace, observe

Answered = Callable[[ApproveCommand, ErrorInfo | None], None]
"""Told what became of an answer to a call that waited."""


class ToolCalls:
    """Runs the open calls of a run, and stores each result as it arrives."""

    def __init__(
        self,
        run: ActiveRun,
        state: SessionState,
        log: SessionLog,
        script: EventScript,
        publish: Callable[[Sequence[EventRecord]], None],
        history: HistoryLength,
        answered: Answered,
    ) -> None:
        self._run = run
        self._state = state
        self._log = log
        self._script = script
        self._publish = publish
        self._history = history
        self._answered = answered
        self._at_work = 0
        self._handles: list[workflow.ActivityHandle[ToolReply] | SubAgentCall] = []
        self._asked = _count_asked(run.calls)

    def open(self, calls: Sequence[PlannedCall]) -> None:
        """The model asked for these calls. From now on those that wait can be answered."""
        self._run.calls = opened(self._run, calls, since=wire_time())
        self._asked = _count_asked(self._run.calls)
        if any(call.is_awaited for call in self._run.calls):
            show_status(self._state, "waiting")

    def announce(self) -> None:
        """Tell whoever watches of the open calls, once the message that has them is stored."""
        for call in self._run.calls:
            self._publish(self._script.tool_started(self._run.turn, call.call))
        for approval in pending(self._run):
            self._publish(self._script.approval_requested(approval))

    @property
    def is_at_rest(self) -> bool:
        """Whether calls are open, and there is nothing to do but to wait for a person."""
        calls = self._run.calls
        return bool(calls) and not self._at_work and not any(self._has_work(call) for call in calls)

    async def run(self) -> None:
        """Run the open calls. When this returns, each has its result stored, unless they are at
        rest.
        """
        while self._run.calls and not self.is_at_rest:
            calls = self._run.calls
            endings = await asyncio.gather(
                *(self._take(call) for call in calls), return_exceptions=True
            )
            self._handles.clear()
            for ending in endings:
                if isinstance(ending, BaseException):
                    raise ending

    def approve(self, command: ApproveCommand) -> None:
        """Take a person's answer to a call that waits; `answered` is told, now or when its
        arguments have been checked.
        """
        call = take_answer(self._run, command)
        if isinstance(call, ErrorInfo):
            self._answered(command, call)
        elif call.proposal is None:
            self._settle(command, call)

    def cancel(self) -> None:
        """Interrupt the calls that run; a cancelled run starts no others."""
        for handle in self._handles:
            handle.cancel()

    def _has_work(self, call: OpenCall) -> bool:
        return call.proposal is not None or self._may_run(call)

    def _may_run(self, call: OpenCall) -> bool:
        """Whether nothing holds the call up: no person, and no call before it.

        A call that is not parallel has its place: those before it are over when it starts, and it
        is when those after it do.
        """
        if self._run.is_cancelled:
            return True
        if call.is_awaited:
            return False
        before = takewhile(lambda other: other is not call, self._run.calls)
        if call.call.parallel:
            return all(other.call.parallel for other in before)
        return not any(before)

    async def _take(self, call: OpenCall) -> None:
        """See a call through to its result, or until all are at rest."""
        while True:
            if not self._has_work(call):
                await workflow.wait_condition(lambda: self._has_work(call) or self.is_at_rest)
            if not self._has_work(call):
                return
            self._at_work += 1
            try:
                if call.proposal is not None:
                    await self._check(call, call.proposal)
                    continue
                await self._store(await self._result(call))
                self._history.add_messages(int(call.call.needs_approval))
                self._run.calls = [other for other in self._run.calls if other is not call]
                return
            finally:
                self._at_work -= 1

    async def _check(self, call: OpenCall, proposal: ApproveCommand) -> None:
        """Have the arguments that a person gave checked, before anything happens with them."""
        request = CheckArguments(
            agent=self._run.agent,
            tool_name=call.call.name,
            arguments=proposal.arguments or {},
            tools=self._run.tools,
        )
        error: ErrorInfo | None = None
        try:
            async with self._log.between_appends():
                checking = workflow.start_activity(
                    names.CHECK_ARGUMENTS,
                    request,
                    result_type=CheckedArguments,
                    summary=f"check the arguments for {call.call.name}"[:120],
                    **CHECKING,
                )
            checked = await checking
            if checked.fault:
                error = ErrorInfo(type="ToolArgumentsError", message=checked.fault)
        except ActivityError as failure:
            error = reason_of(failure)
        self._history.add_activities()
        if error is None:
            accept_proposal(call)
            self._settle(proposal, call)
        else:
            call.proposal = None
            self._answered(proposal, error)

    def _settle(self, command: ApproveCommand, call: OpenCall) -> None:
        self._publish(self._script.approval_answered(self._run.turn, call.call, not call.refusal))
        observe(ApprovalEnded(self._run, call.call, call.since, workflow.time(), not call.refusal))
        self._answered(command, None)

    async def _result(self, call: OpenCall) -> MessageJson:
        began = workflow.time()
        async with self._log.between_appends():
            self._note_answered(call)
            if self._run.is_cancelled:
                return _error(call, INTERRUPTED)
            if call.refusal:
                return _error(call, call.refusal)
            handle = None if is_sub_agent_call(call.call) else self._start(call.call)
        if handle is None:
            return _noted(call, await self._delegate(call.call))
        self._handles.append(handle)
        try:
            reply = await handle
        except ActivityError as error:
            cause = error.cause
            told = cause.message if isinstance(cause, ApplicationError) else INTERRUPTED
            if isinstance(cause, ActivityTimeout):  # of all else the activity tells by itself
                observe(CallEnded(self._run, call.call, began, workflow.time(), "interrupted"))
            return _noted(call, _error(call, told))
        self._history.add_messages(reply.batches)
        return _noted(call, reply.message)

    def _note_answered(self, call: OpenCall) -> None:
        """The session no longer waits for a person when the last call that did goes on. Which one
        that is hangs on the order in which calls go on, as the activities that they start do.
        """
        if not call.call.needs_approval:
            return
        self._asked -= 1
        if not self._asked:
            show_status(self._state, "running")

    async def _delegate(self, call: PlannedCall) -> MessageJson:
        began, trace = workflow.time(), call_trace(self._run, call)
        asked = SubAgentCall(call, self._state, self._log, trace)
        self._handles.append(asked)
        message = await asked.answer()
        error = "tool_error" if message.get("is_error") else ""
        observe(CallEnded(self._run, call, began, workflow.time(), error, trace))
        return message

    def _start(self, call: PlannedCall) -> workflow.ActivityHandle[ToolReply]:
        run = self._run
        request = RunTool(
            session_id=self._state.session_id,
            agent=run.agent,
            run_id=run.run_id,
            call=call,
            place=run.watched_place(),
            tools=run.tools,
        )
        return workflow.start_activity(
            names.RUN_TOOL,
            request,
            result_type=ToolReply,
            summary=tool_summary(call, self._state),
            **tool_timing(call.timeout, call.idempotent),
        )

    async def _store(self, message: MessageJson) -> None:
        [entry] = await self._log.append(self._run.run_id, [message_entry(message)])
        self._publish(self._script.tool_ended(self._run.turn, entry))


def _count_asked(calls: Sequence[OpenCall]) -> int:
    return sum(call.call.needs_approval for call in calls)


def _error(call: OpenCall, text: str) -> MessageJson:
    return {
        "role": "tool_result",
        "content": [{"type": "text", "text": text}],
        "tool_call_id": call.call.id,
        "tool_name": call.call.name,
        "is_error": True,
    }


def _noted(call: OpenCall, message: MessageJson) -> MessageJson:
    """The result, after a note when the call ran with other arguments than the model's."""
    if not call.is_edited:
        return message
    note = {"type": "text", "text": edited_note(call.call)}
    return message | {"content": [note, *message.get("content", [])]}
