"""How a process sends its telemetry: as OpenTelemetry's own variables say, over OTLP unless they
say otherwise.
"""

from __future__ import annotations

import atexit
import importlib
import logging
import os
import threading
import time
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any, Final

from opentelemetry import _logs, metrics, trace
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.resources import SERVICE_NAME, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

from perdure.errors import TelemetryError
from perdure.telemetry.logs import LogBridge
from perdure.telemetry.metrics import Metrics
from perdure.telemetry.spans import Spans

LAST_WORDS: Final = 5.0
"""Seconds that what has not been sent yet has for it, at the end of the process."""

_NOT_SET_UP: Final = ("ProxyTracerProvider", "_ProxyMeterProvider", "ProxyLoggerProvider")
"""What the API has for a provider where there is none; it has no public name for two of them."""

_OTLP: Final = {
    "http/protobuf": "opentelemetry.exporter.otlp.proto.http",
    "grpc": "opentelemetry.exporter.otlp.proto.grpc",
}
_KINDS: Final = {
    "traces": ("trace_exporter", "OTLPSpanExporter"),
    "metrics": ("metric_exporter", "OTLPMetricExporter"),
    "logs": ("_log_exporter", "OTLPLogExporter"),
}
_CONSOLE: Final = {
    "traces": ("opentelemetry.sdk.trace.export", "ConsoleSpanExporter"),
    "metrics": ("opentelemetry.sdk.metrics.export", "ConsoleMetricExporter"),
    "logs": ("opentelemetry.sdk._logs.export", "ConsoleLogRecordExporter"),
}


@dataclass(frozen=True, slots=True)
class Telemetry:
    """What a process tells, and through what."""

    spans: Spans
    metrics: Metrics
    providers: tuple[Any, Any, Any]

    def close(self) -> None:
        """Send what has not been sent yet. Takes five seconds at most: a collector that is not
        there keeps no process from its end, however patient its exporter is.
        """
        flushing = [
            threading.Thread(target=provider.force_flush, daemon=True)
            for provider in self.providers
            if hasattr(provider, "force_flush")
        ]
        for thread in flushing:
            thread.start()
        deadline = time.monotonic() + LAST_WORDS
        for thread in flushing:
            thread.join(max(0.0, deadline - time.monotonic()))


def set_up() -> Telemetry:
    """Begin to send. Providers that the application has set up already are used as they are;
    others are made, and set up for all else in the process that has something to tell.

    Raises TelemetryError for an exporter or a protocol that there is none of, ImportError when a
    package is missing.
    """
    traces, meters, logs = _providers()
    own = version("perdure")
    bridge = LogBridge(logs, own)
    for name in ("perdure", "temporalio"):
        logging.getLogger(name).addHandler(bridge)
    telemetry = Telemetry(Spans(traces, own), Metrics(meters, own), (traces, meters, logs))
    atexit.register(telemetry.close)
    return telemetry


def _providers() -> tuple[Any, Any, Any]:
    traces: Any = trace.get_tracer_provider()
    meters: Any = metrics.get_meter_provider()
    logs: Any = _logs.get_logger_provider()
    # All exporters before any provider is set up, so that a mistake leaves nothing behind.
    missing = {
        kind: _exporter(kind)
        for kind, provider in (("traces", traces), ("metrics", meters), ("logs", logs))
        if type(provider).__name__ in _NOT_SET_UP
    }
    resource = _resource()
    if "traces" in missing:
        traces = TracerProvider(resource=resource, shutdown_on_exit=False)
        if (spans_to := missing["traces"]) is not None:
            traces.add_span_processor(BatchSpanProcessor(spans_to))
        trace.set_tracer_provider(traces)
    if "metrics" in missing:
        points_to = missing["metrics"]
        readers = [] if points_to is None else [PeriodicExportingMetricReader(points_to)]
        meters = MeterProvider(metric_readers=readers, resource=resource, shutdown_on_exit=False)
        metrics.set_meter_provider(meters)
    if "logs" in missing:
        logs = LoggerProvider(resource=resource, shutdown_on_exit=False)
        if (lines_to := missing["logs"]) is not None:
            logs.add_log_record_processor(BatchLogRecordProcessor(lines_to))
        _logs.set_logger_provider(logs)
    return traces, meters, logs


def _resource() -> Resource:
    found = Resource.create()
    if str(found.attributes.get(SERVICE_NAME, "")).startswith("unknown_service"):
        return found.merge(Resource({SERVICE_NAME: "perdure"}))
    return found


def _exporter(kind: str) -> Any:
    name = os.environ.get(f"OTEL_{kind.upper()}_EXPORTER", "").strip() or "otlp"
    if name == "none":
        return None
    if name == "console":
        return _made(*_CONSOLE[kind])
    if name != "otlp":
        raise TelemetryError(
            f"OTEL_{kind.upper()}_EXPORTER is {name!r}; perdure knows otlp, console and none"
        )
    protocol = (
        os.environ.get(f"OTEL_EXPORTER_OTLP_{kind.upper()}_PROTOCOL")
        or os.environ.get("OTEL_EXPORTER_OTLP_PROTOCOL")
        or "http/protobuf"
    ).strip()
    if protocol not in _OTLP:
        raise TelemetryError(
            f"the OTLP protocol for {kind} is {protocol!r}; perdure knows {' and '.join(_OTLP)}"
        )
    module, class_name = _KINDS[kind]
    return _made(f"{_OTLP[protocol]}.{module}", class_name)


def _made(module: str, class_name: str) -> Any:
    try:
        return getattr(importlib.import_module(module), class_name)()
    except ValueError as error:
        raise TelemetryError(f"telemetry cannot be set up: {error}") from error
