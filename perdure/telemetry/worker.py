"""The activities of a worker, as spans and metrics; and the observer of its workflows."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from opentelemetry.trace import Span, SpanKind
from temporalio import activity
from temporalio.exceptions import ApplicationError
from temporalio.worker import (
    ActivityInboundInterceptor,
    ExecuteActivityInput,
    Interceptor,
    WorkflowInterceptorClassInput,
)

from perdure import names
from perdure.activities.agents import AgentRegistry
from perdure.codec import dumps_json
from perdure.errors import PerdureError
from perdure.protocol import ModelReply, RunPlan, Summary, ToolReply
from perdure.session_id import tenant_of
from perdure.telemetry.conventions import (
    AGENT,
    ATTEMPT,
    CONVERSATION,
    ENTRIES,
    ERROR,
    FINISH_REASONS,
    OPERATION,
    OUTPUT_MESSAGES,
    OUTPUT_TYPE,
    RESPONSE_MODEL,
    RUN,
    STREAM,
    TENANT,
    TOOL,
    TOOL_ARGUMENTS,
    TOOL_CALL,
    TOOL_RESULT,
    TOOL_TYPE,
    TURN,
    Attributes,
    captures_content,
    finish_reason,
    model_attributes,
    output_messages,
    usage_attributes,
)
from perdure.telemetry.logs import session_named, subject
from perdure.telemetry.observer import Observer
from perdure.telemetry.setup import Telemetry
from perdure.telemetry.spans import note_error
from perdure.trace_context import TraceContext
from perdure.trace_headers import traceparent_in
from perdure.usage import Usage

_NEVER_A_SPAN = (names.OPEN_SESSION, names.FIND_ENTRY)


class WorkerTelemetry(Interceptor):
    """Tells of everything that the worker does for sessions."""

    def __init__(self, telemetry: Telemetry, agents: AgentRegistry) -> None:
        self._telemetry = telemetry
        self._agents = agents
        self._observer = Observer(telemetry)

    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:
        """See the SDK."""
        return _Told(next, self._telemetry, self._agents)

    def workflow_interceptor_class(self, input: WorkflowInterceptorClassInput) -> None:
        """See the SDK."""
        input.unsafe_extern_functions[names.OBSERVE] = self._observer.observe


class _Told(ActivityInboundInterceptor):
    def __init__(
        self, next: ActivityInboundInterceptor, telemetry: Telemetry, agents: AgentRegistry
    ) -> None:
        super().__init__(next)
        self._spans = telemetry.spans
        self._metrics = telemetry.metrics
        self._agents = agents

    async def execute_activity(self, input: ExecuteActivityInput) -> Any:
        info = activity.info()
        if not info.activity_type.startswith(names.ACTIVITY_PREFIX) or len(input.args) != 1:
            return await super().execute_activity(input)
        request = input.args[0]
        session_id = getattr(request, "session_id", "") or session_named(info.workflow_id or "")
        token = subject.set((session_id, getattr(request, "run_id", "")))
        try:
            return await self._told(info, request, input)
        finally:
            subject.reset(token)

    async def _told(self, info: activity.Info, request: Any, input: ExecuteActivityInput) -> Any:
        parent = TraceContext.parse(traceparent_in(input.headers))
        begun = ""
        if parent is None and info.activity_type == names.START_RUN:
            parent = self._begin_trace(info, request)
            begun = str(parent)
        with self._doing(info, request, parent) as (span, seen):
            reply = await super().execute_activity(input)
            seen.reply = reply
            _describe(span, reply)
        if begun and isinstance(reply, RunPlan):
            reply.trace = begun
        return reply

    def _begin_trace(self, info: activity.Info, request: Any) -> TraceContext:
        own = TraceContext.root(info.namespace, info.workflow_id or "", request.run_id)
        return self._spans.begin_trace(f"invoke_agent {request.agent}", own)

    @contextmanager
    def _doing(
        self, info: activity.Info, request: Any, parent: TraceContext | None
    ) -> Iterator[tuple[Span | None, _Seen]]:
        name, attributes, kind = self._named(info.activity_type, request)
        attributes |= _about(info, request)
        began, seen = time.monotonic(), _Seen()
        try:
            if parent is None or info.activity_type in _NEVER_A_SPAN:
                yield None, seen
                return
            with self._spans.span(name, attributes, parent=parent, kind=kind) as span:
                try:
                    yield span, seen
                except BaseException as error:
                    note_error(span, _kind_of(error))
                    raise
        except BaseException as error:
            seen.error = _kind_of(error)
            raise
        finally:
            self._measure(info.activity_type, time.monotonic() - began, request, attributes, seen)

    def _named(self, activity_type: str, request: Any) -> tuple[str, Attributes, SpanKind]:
        if activity_type in (names.CALL_MODEL, names.SUMMARIZE):
            model = self._model_of(activity_type, request.agent)
            attributes: Attributes = {OPERATION: "chat"} | model_attributes(model)
            if getattr(request, "stream", False):
                attributes[STREAM] = True
            if getattr(request, "output", None) is not None:
                attributes[OUTPUT_TYPE] = "json"
            return f"chat {attributes['gen_ai.request.model']}", attributes, SpanKind.CLIENT
        if activity_type == names.RUN_TOOL:
            call = request.call
            attributes = {OPERATION: "execute_tool", TOOL: call.name, TOOL_CALL: call.id}
            attributes[TOOL_TYPE] = "function"
            if captures_content():
                attributes[TOOL_ARGUMENTS] = _json(call.arguments)
            return f"execute_tool {call.name}", attributes, SpanKind.INTERNAL
        entries = getattr(request, "entries", None)
        return (
            activity_type.removeprefix(names.ACTIVITY_PREFIX),
            {} if entries is None else {ENTRIES: len(entries)},
            SpanKind.INTERNAL,
        )

    def _model_of(self, activity_type: str, agent_name: str) -> str:
        try:
            agent = self._agents.find(agent_name)
            model = agent.compaction_model() if activity_type == names.SUMMARIZE else None
            model = model or agent.language_model()
        except PerdureError:  # which the activity then tells of
            return "unknown"
        return "unknown" if model is None else model.name

    def _measure(
        self, activity_type: str, seconds: float, request: Any, attributes: Attributes, seen: _Seen
    ) -> None:
        reply, error = seen.reply, seen.error
        if activity_type in (names.CALL_MODEL, names.SUMMARIZE):
            if isinstance(reply, Summary) and not reply.text:
                return  # there was nothing to summarize, so no model was asked
            kept = (OPERATION, "gen_ai.provider.name", "gen_ai.request.model")
            measured = {name: attributes[name] for name in kept}
            if isinstance(reply, ModelReply) and reply.message.get("model"):
                measured[RESPONSE_MODEL] = str(reply.message["model"])
            if error:
                measured[ERROR] = error
            self._metrics.model_called(seconds, measured, _usage_of(reply))
        elif activity_type == names.RUN_TOOL:
            if isinstance(reply, ToolReply) and reply.message.get("is_error"):
                error = "tool_error"
            self._metrics.tool_called(seconds, request.call.name, error)


class _Seen:
    """What became of an activity."""

    def __init__(self) -> None:
        self.reply: Any = None
        self.error = ""


def _about(info: activity.Info, request: Any) -> Attributes:
    found = {
        CONVERSATION: getattr(request, "session_id", "") or session_named(info.workflow_id or ""),
        RUN: getattr(request, "run_id", ""),
        AGENT: getattr(request, "agent", ""),
        TURN: getattr(request, "turn", 0),
        TENANT: tenant_of(info.workflow_id or ""),
        ATTEMPT: info.attempt,
    }
    return {name: value for name, value in found.items() if value}


def _describe(span: Span | None, reply: Any) -> None:
    """Add to a span what came of it."""
    if span is None:
        return
    usage = _usage_of(reply)
    if usage is not None:
        span.set_attributes(usage_attributes(usage))
    if isinstance(reply, ModelReply):
        message = reply.message
        if message.get("model"):
            span.set_attribute(RESPONSE_MODEL, str(message["model"]))
        span.set_attribute(FINISH_REASONS, [finish_reason(message)])
        if captures_content():
            span.set_attribute(OUTPUT_MESSAGES, output_messages(message))
    elif isinstance(reply, ToolReply):
        if reply.message.get("is_error"):
            note_error(span, "tool_error")
        if captures_content():
            span.set_attribute(TOOL_RESULT, _json(reply.message.get("content")))
    elif isinstance(reply, Summary) and not reply.text:
        span.update_name("summarize")


def _usage_of(reply: Any) -> Usage | None:
    if isinstance(reply, ModelReply):
        return Usage.model_validate(reply.message.get("usage") or {})
    return reply.usage if isinstance(reply, Summary) else None


def _kind_of(error: BaseException) -> str:
    if isinstance(error, ApplicationError) and error.type:
        return error.type
    return "cancelled" if isinstance(error, asyncio.CancelledError) else type(error).__name__


def _json(value: Any) -> str:
    return dumps_json(value).decode()
