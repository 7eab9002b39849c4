"""Traces and the workflow: the context that a command brings along goes on to the activities that
are done for it, and a worker that observes is told what happens.

All that is decided here hangs on what history holds: headers, and what a run carries. Whether a
worker observes makes no difference to the workflow. So workers that do and workers that do not may
serve the same session, and a trace goes through both.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import replace
from typing import Any

from temporalio import workflow
from temporalio.api.common.v1 import Payload
from temporalio.worker import (
    HandleSignalInput,
    HandleUpdateInput,
    Interceptor,
    StartActivityInput,
    StartLocalActivityInput,
    WorkflowInboundInterceptor,
    WorkflowInterceptorClassInput,
    WorkflowOutboundInterceptor,
)

from perdure.names import OBSERVE, TRACE_HEADER
from perdure.protocol import ActiveRun, PlannedCall, QueuedCommand, RunCommand, RunPlan
from perdure.protocol.observed import CommandBegun, Observed
from perdure.trace_context import TraceContext
from perdure.trace_headers import trace_payload, traceparent_in

_brought: ContextVar[str] = ContextVar("brought", default="")
"""The context that the message at hand brought along."""

_current: ContextVar[str] = ContextVar("current", default="")
"""The span that what is done now is part of."""


def note_trace(command: QueuedCommand) -> None:
    """Write down in a command that has just come which trace it belongs to, if to any."""
    context = TraceContext.parse(_brought.get() or command.trace)
    command.trace = "" if context is None else str(context)
    command.accepted_at = 0.0 if context is None else workflow.time()


def begin(command: QueuedCommand) -> None:
    """From here on the command is done."""
    context = TraceContext.parse(command.trace)
    if context is not None and isinstance(command, RunCommand):
        context = context.child(workflow.info().workflow_id, command.command_id)
    _current.set("" if context is None else str(context))
    if command.accepted_at:
        observe(CommandBegun(command.verb, workflow.time() - command.accepted_at))


def go_on(run: ActiveRun | None) -> None:
    """From here on the run is done; none: what is done belongs to no trace."""
    _current.set("" if run is None else run.trace)


def current() -> str:
    """The span that what is done now is part of; empty when nobody traces it."""
    return _current.get()


def traced(command: RunCommand, plan: RunPlan, forked_by: str) -> dict[str, Any]:
    """What a run that begins carries of its trace: nothing, if nobody traces it."""
    trace = _current.get() or plan.trace
    if not trace:
        return {}
    caller = TraceContext.parse(command.trace)
    return {
        "trace": trace,
        "caller": "" if caller is None else caller.span_id,
        "accepted_at": command.accepted_at or workflow.time(),
        "links": [forked_by] if forked_by else [],
    }


def call_trace(run: ActiveRun, call: PlannedCall) -> str:
    """The span of a tool call that another agent answers, if the run is traced."""
    context = TraceContext.parse(run.trace)
    return "" if context is None else str(context.child(call.child_id, call.id))


def observe(event: Observed) -> None:
    """Tell the worker, if it observes, of what happens now for the first time."""
    if workflow.unsafe.is_replaying():
        return
    tell = workflow.extern_functions().get(OBSERVE)
    if tell is not None:
        with workflow.unsafe.sandbox_unrestricted(), workflow.unsafe.imports_passed_through():
            tell(workflow.info().workflow_id, event)


class TraceHeaders(Interceptor):
    """Takes contexts from the headers of messages, and puts them into those of activities.

    The header is that of the SDK's own tracing, in whichever language: who sends a command from a
    client that is traced so is part of the trace.
    """

    def workflow_interceptor_class(
        self, input: WorkflowInterceptorClassInput
    ) -> type[WorkflowInboundInterceptor]:
        """See the SDK."""
        return _Inbound


class _Inbound(WorkflowInboundInterceptor):
    def init(self, outbound: WorkflowOutboundInterceptor) -> None:
        super().init(_Outbound(outbound))

    async def handle_signal(self, input: HandleSignalInput) -> None:
        _brought.set(traceparent_in(input.headers))
        await super().handle_signal(input)

    async def handle_update_handler(self, input: HandleUpdateInput) -> Any:
        _brought.set(traceparent_in(input.headers))
        return await super().handle_update_handler(input)


class _Outbound(WorkflowOutboundInterceptor):
    def start_activity(self, input: StartActivityInput) -> workflow.ActivityHandle[Any]:
        return super().start_activity(replace(input, headers=_headed(input.headers)))

    def start_local_activity(self, input: StartLocalActivityInput) -> workflow.ActivityHandle[Any]:
        return super().start_local_activity(replace(input, headers=_headed(input.headers)))


def _headed(headers: Mapping[str, Payload]) -> Mapping[str, Payload]:
    trace = _current.get()
    return {**headers, TRACE_HEADER: trace_payload(trace)} if trace else headers
