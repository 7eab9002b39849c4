"""The commands that a client sends, as spans; their context goes along in a header."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from opentelemetry.trace import SpanKind
from temporalio.client import (
    Client,
    Interceptor,
    OutboundInterceptor,
    SignalWorkflowInput,
    StartWorkflowUpdateInput,
    WorkflowUpdateHandle,
)

from perdure import names
from perdure.protocol import Command
from perdure.session_id import WORKFLOW_ID_PREFIX, tenant_of
from perdure.telemetry.conventions import (
    COMMAND,
    COMMAND_ID,
    CONVERSATION,
    RUN,
    TENANT,
    WORKFLOW,
)
from perdure.telemetry.logs import session_named
from perdure.telemetry.setup import Telemetry
from perdure.telemetry.spans import Spans, context_of
from perdure.trace_headers import trace_payload

VERBS = frozenset(
    {
        names.RUN,
        names.APPEND,
        names.BRANCH,
        names.FORK,
        names.COMPACT,
        names.CANCEL,
        names.APPROVE,
        names.CLOSE,
    }
)


def telling(client: Client, telemetry: Telemetry) -> Client:
    """The same client, with spans for the commands that it sends."""
    config = client.config()
    config["interceptors"] = [*config["interceptors"], ClientTelemetry(telemetry)]
    return Client(**config)


class ClientTelemetry(Interceptor):
    """Tells of commands, and has the session go on with their traces."""

    def __init__(self, telemetry: Telemetry) -> None:
        self._spans = telemetry.spans

    def intercept_client(self, next: OutboundInterceptor) -> OutboundInterceptor:
        """See the SDK."""
        return _Telling(next, self._spans)


class _Telling(OutboundInterceptor):
    def __init__(self, next: OutboundInterceptor, spans: Spans) -> None:
        super().__init__(next)
        self._spans = spans

    async def start_workflow_update(
        self, input: StartWorkflowUpdateInput
    ) -> WorkflowUpdateHandle[Any]:
        with self._sending(input.update, input):
            return await super().start_workflow_update(input)

    async def signal_workflow(self, input: SignalWorkflowInput) -> None:
        with self._sending(input.signal, input):
            await super().signal_workflow(input)

    @contextmanager
    def _sending(
        self, verb: str, input: StartWorkflowUpdateInput | SignalWorkflowInput
    ) -> Iterator[None]:
        if verb not in VERBS or not input.id.startswith(WORKFLOW_ID_PREFIX):
            yield
            return
        found = {
            CONVERSATION: session_named(input.id),
            TENANT: tenant_of(input.id),
            WORKFLOW: input.id,
            COMMAND: verb,
            COMMAND_ID: _command_id(input.args),
        }
        attributes = {name: value for name, value in found.items() if value}
        if verb == names.RUN and found[COMMAND_ID]:
            attributes[RUN] = found[COMMAND_ID]
        with self._spans.span(f"send {verb}", attributes, kind=SpanKind.CLIENT) as span:
            context = context_of(span)
            if context is not None:
                header = {names.TRACE_HEADER: trace_payload(str(context))}
                input.headers = {**input.headers, **header}
            yield


def _command_id(args: Any) -> str:
    return args[0].command_id if len(args) == 1 and isinstance(args[0], Command) else ""
