"""Trace contexts in the headers of messages, as the SDK's own tracing writes them."""

from __future__ import annotations

from collections.abc import Mapping

from temporalio.api.common.v1 import Payload
from temporalio.converter import PayloadConverter

from perdure.names import TRACE_HEADER
from perdure.trace_context import TraceContext


def trace_payload(traceparent: str) -> Payload:
    """The header of a context."""
    return PayloadConverter.default.to_payloads([{"traceparent": traceparent}])[0]


def traceparent_in(headers: Mapping[str, Payload]) -> str:
    """The context in these headers; empty when there is none that can be read."""
    payload = headers.get(TRACE_HEADER)
    if payload is None:
        return ""
    try:
        [carrier] = PayloadConverter.default.from_payloads([payload])
    except Exception:  # noqa: BLE001 - whatever it is, it is none of ours, and stalls no workflow
        return ""
    given = carrier.get("traceparent") if isinstance(carrier, dict) else None
    context = TraceContext.parse(given)
    return "" if context is None else str(context)
