"""The activities of a worker, as spans and metrics; and the observer of its workflows."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any

from opentelemetry.trace import SpanKind
from temporalio import activity
from temporalio.worker import (
    ActivityInboundInterceptor,
    ExecuteActivityInput,
    Interceptor,
    WorkflowInterceptorClassInput,
)

from perdure import names
from perdure.codec import dumps_json
from perdure.messages import Message
from perdure.models.observed import Answered, observing
from perdure.protocol import RunPlan, ToolReply
from perdure.session_id import tenant_of
from perdure.telemetry.conventions import (
    AGENT,
    ATTEMPT,
    CONVERSATION,
    ERROR,
    OPERATION,
    OUTPUT_TYPE,
    REQUEST_MODEL,
    RESPONSE_MODEL,
    RUN,
    STREAM,
    TENANT,
    TOOL,
    TOOL_ARGUMENTS,
    TOOL_CALL,
    TOOL_ERROR,
    TOOL_RESULT,
    TOOL_TYPE,
    TURN,
    Attributes,
    answer_attributes,
    captures_content,
    model_attributes,
)
from perdure.telemetry.logs import session_named, subject
from perdure.telemetry.observer import Observer
from perdure.telemetry.setup import Telemetry
from perdure.telemetry.spans import kind_of, note_error
from perdure.trace_context import TraceContext
from perdure.trace_headers import traceparent_in

_NO_SPAN_OF_ITS_OWN = (
    names.APPEND_ENTRIES,
    names.CALL_MODEL,
    names.FIND_ENTRY,
    names.OPEN_SESSION,
    names.SUMMARIZE,
)
"""What these do has one: the store's calls, and the model's."""


class WorkerTelemetry(Interceptor):
    """Tells of everything that the worker does for sessions."""

    def __init__(self, telemetry: Telemetry) -> None:
        self._telemetry = telemetry
        self._observer = Observer(telemetry)

    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:
        """See the SDK."""
        return _Told(next, self._telemetry)

    def workflow_interceptor_class(self, input: WorkflowInterceptorClassInput) -> None:
        """See the SDK."""
        input.unsafe_extern_functions[names.OBSERVE] = self._observer.observe


@dataclass(frozen=True, slots=True)
class _Doing:
    """An activity under way, and the span that it is part of."""

    request: Any
    about: Attributes
    parent: TraceContext | None


class _Told(ActivityInboundInterceptor):
    def __init__(self, next: ActivityInboundInterceptor, telemetry: Telemetry) -> None:
        super().__init__(next)
        self._spans = telemetry.spans
        self._metrics = telemetry.metrics

    async def execute_activity(self, input: ExecuteActivityInput) -> Any:
        info = activity.info()
        if not info.activity_type.startswith(names.ACTIVITY_PREFIX) or len(input.args) != 1:
            return await super().execute_activity(input)
        request = input.args[0]
        about = _about(info, request)
        parent = TraceContext.parse(traceparent_in(input.headers))
        begun = ""
        if parent is None and info.activity_type == names.START_RUN:
            parent = self._begin_trace(info, request)
            begun = str(parent)
        about_run = subject.set((about.get(CONVERSATION, ""), about.get(RUN, "")))
        doing = _Doing(request, about, parent)
        models = observing.set(partial(self._asking, doing))
        try:
            reply = await self._do(
                info.activity_type, doing, partial(super().execute_activity, input)
            )
        finally:
            observing.reset(models)
            subject.reset(about_run)
        if begun and isinstance(reply, RunPlan):
            reply.trace = begun
        return reply

    def _begin_trace(self, info: activity.Info, request: Any) -> TraceContext:
        own = TraceContext.root(info.namespace, info.workflow_id or "", request.run_id)
        return self._spans.begin_trace(f"invoke_agent {request.agent}", own)

    async def _do(self, activity_type: str, doing: _Doing, do: Callable[[], Awaitable[Any]]) -> Any:
        if activity_type == names.RUN_TOOL:
            return await self._call_tool(doing, do)
        if doing.parent is None:
            return await do()
        if activity_type in _NO_SPAN_OF_ITS_OWN:
            with self._spans.within(doing.parent):
                return await do()
        name = activity_type.removeprefix(names.ACTIVITY_PREFIX)
        with self._spans.span(name, doing.about, parent=doing.parent):
            return await do()

    async def _call_tool(self, doing: _Doing, do: Callable[[], Awaitable[Any]]) -> Any:
        call = doing.request.call
        about = doing.about | {
            OPERATION: "execute_tool",
            TOOL: call.name,
            TOOL_CALL: call.id,
            TOOL_TYPE: "function",
        }
        if captures_content():
            about[TOOL_ARGUMENTS] = _json(call.arguments)
        began, error = time.monotonic(), ""
        try:
            with self._span(f"execute_tool {call.name}", about, doing) as span:
                reply = await do()
                if isinstance(reply, ToolReply) and reply.message.get("is_error"):
                    error = TOOL_ERROR
                if span is not None:
                    if error:
                        note_error(span, error)
                    if captures_content():
                        span.set_attribute(TOOL_RESULT, _json(reply.message.get("content")))
                return reply
        except BaseException as failure:
            error = kind_of(failure)
            raise
        finally:
            self._metrics.tool_called(time.monotonic() - began, call.name, error)

    @contextmanager
    def _asking(self, doing: _Doing, model_name: str) -> Iterator[Answered]:
        """A call of a model, for as long as it takes."""
        request = doing.request
        measured: Attributes = {OPERATION: "chat"} | model_attributes(model_name)
        about = doing.about | measured
        if getattr(request, "stream", False):
            about[STREAM] = True
        if getattr(request, "output", None) is not None:
            about[OUTPUT_TYPE] = "json"
        answers: list[Message] = []
        began = time.monotonic()
        try:
            name = f"chat {measured[REQUEST_MODEL]}"
            with self._span(name, about, doing, SpanKind.CLIENT) as span:
                yield answers.append
                if span is not None and answers:
                    span.set_attributes(answer_attributes(answers[0]))
        except BaseException as failure:
            measured[ERROR] = kind_of(failure)
            raise
        finally:
            usage = None
            if answers:
                usage = answers[0].usage
                measured |= {RESPONSE_MODEL: answers[0].model} if answers[0].model else {}
            self._metrics.model_called(time.monotonic() - began, measured, usage)

    def _span(
        self, name: str, about: Attributes, doing: _Doing, kind: SpanKind = SpanKind.INTERNAL
    ) -> AbstractContextManager[Any]:
        if doing.parent is None:
            return nullcontext()
        return self._spans.span(name, about, parent=doing.parent, kind=kind)


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


def _json(value: Any) -> str:
    return dumps_json(value).decode()
