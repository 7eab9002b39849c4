"""What a workflow tells as it happens, as spans, metrics and log lines."""

from __future__ import annotations

import logging
import time
from contextlib import nullcontext
from datetime import datetime

from perdure.protocol import ActiveRun
from perdure.protocol.observed import (
    ApprovalEnded,
    CallEnded,
    CommandBegun,
    CommandQueued,
    Observed,
    RunEnded,
    TurnEnded,
)
from perdure.session_id import tenant_of
from perdure.telemetry.conventions import (
    AGENT,
    APPROVED,
    CONVERSATION,
    OPERATION,
    RESTARTS,
    RUN,
    RUN_STATUS,
    TENANT,
    TOOL,
    TOOL_CALL,
    TOOL_TYPE,
    TURN,
    TURNS,
    WORKFLOW,
    Attributes,
    model_attributes,
    usage_attributes,
)
from perdure.telemetry.logs import session_named, subject
from perdure.telemetry.setup import Telemetry
from perdure.trace_context import TraceContext

logger = logging.getLogger("perdure.runs")

_CANCELLED = "RunCancelledError"


class Observer:
    """Observes the workflows of one worker. It is called on their threads, and returns at once."""

    def __init__(self, telemetry: Telemetry) -> None:
        self._spans = telemetry.spans
        self._metrics = telemetry.metrics

    def observe(self, workflow_id: str, event: Observed) -> None:
        """Note what has happened in the workflow. Never raises: a session does not stop for it."""
        try:
            self._note(workflow_id, event)
        except Exception:
            logger.exception("what happened in %s could not be told", workflow_id)

    def _note(self, workflow_id: str, event: Observed) -> None:
        match event:
            case RunEnded():
                self._run_ended(workflow_id, event)
            case TurnEnded(run, began, at):
                self._metrics.turn_ended(_now(at) - began, run.agent)
            case CallEnded():
                self._call_ended(workflow_id, event)
            case ApprovalEnded():
                self._approval_ended(workflow_id, event)
            case CommandQueued(verb, waiting):
                self._metrics.command_queued(verb, waiting)
            case CommandBegun(verb, waited):
                self._metrics.command_begun(verb, waited)

    def _run_ended(self, workflow_id: str, event: RunEnded) -> None:
        run, outcome = event.run, event.outcome
        error = "" if outcome.error is None else outcome.error.type
        status = "cancelled" if error == _CANCELLED else outcome.status
        session_id = session_named(workflow_id)
        if run.accepted_at:
            self._metrics.run_ended(_now(event.at) - run.accepted_at, run.agent, status, error)
        own = TraceContext.parse(run.trace)
        if own is not None:
            self._spans.tell(
                f"invoke_agent {run.agent}",
                own,
                _about(workflow_id, run)
                | {OPERATION: "invoke_agent", RUN_STATUS: status, TURNS: run.turn}
                | ({RESTARTS: run.restarts} if run.restarts else {})
                | model_attributes(run.model)
                | usage_attributes(run.usage),
                began=run.accepted_at,
                ended=_now(event.at),
                parent=_caller(run, own),
                links=[link for text in run.links if (link := TraceContext.parse(text))],
                error=error,
            )
        token = subject.set((session_id, run.run_id))
        try:
            with nullcontext() if own is None else self._spans.within(own):
                told = f"{status}: {error}" if error else status
                logger.info(
                    "run %s of session %s %s, turns: %d", run.run_id, session_id, told, run.turn
                )
        finally:
            subject.reset(token)

    def _call_ended(self, workflow_id: str, event: CallEnded) -> None:
        run, call = event.run, event.call
        self._metrics.tool_called(_now(event.at) - event.began, call.name, event.error)
        parent = TraceContext.parse(run.trace)
        if parent is None:
            return
        own = TraceContext.parse(event.trace) or parent.child("call", str(run.turn), call.id)
        self._spans.tell(
            f"execute_tool {call.name}",
            own,
            _about(workflow_id, run)
            | {OPERATION: "execute_tool", TOOL: call.name, TOOL_CALL: call.id, TURN: run.turn}
            | {TOOL_TYPE: "function"},
            began=event.began,
            ended=_now(event.at),
            parent=parent,
            error=event.error,
        )

    def _approval_ended(self, workflow_id: str, event: ApprovalEnded) -> None:
        run, call = event.run, event.call
        parent = TraceContext.parse(run.trace)
        if parent is None:
            return
        self._spans.tell(
            f"wait_for_approval {call.name}",
            parent.child("approval", str(run.turn), call.id),
            _about(workflow_id, run)
            | {TOOL: call.name, TOOL_CALL: call.id, TURN: run.turn, APPROVED: event.approved},
            began=datetime.fromisoformat(event.since).timestamp(),
            ended=_now(event.at),
            parent=parent,
        )


def _about(workflow_id: str, run: ActiveRun) -> Attributes:
    found = {
        CONVERSATION: session_named(workflow_id),
        AGENT: run.agent,
        RUN: run.run_id,
        TENANT: tenant_of(workflow_id),
        WORKFLOW: workflow_id,
    }
    return {name: value for name, value in found.items() if value}


def _now(at: float) -> float:
    """The time now, of which the workflow knows only when its task began."""
    return max(at, time.time())


def _caller(run: ActiveRun, own: TraceContext) -> TraceContext | None:
    return TraceContext(own.trace_id, run.caller, own.flags) if run.caller else None
