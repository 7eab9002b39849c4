"""Workers and sessions, as the tests of the engine have them, and telemetry that stays here."""

from __future__ import annotations

import pytest
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from perdure import telemetry
from perdure.telemetry.metrics import Metrics
from perdure.telemetry.setup import Telemetry
from perdure.telemetry.spans import Spans
from tests.engine.conftest import serving, store

__all__ = ["serving", "store"]


class Kept:
    """What this process has told."""

    def __init__(self) -> None:
        self.exporter = InMemorySpanExporter()
        self.reader = InMemoryMetricReader()
        traces = TracerProvider()
        traces.add_span_processor(SimpleSpanProcessor(self.exporter))
        meters = MeterProvider(metric_readers=[self.reader])
        self.telemetry = Telemetry(
            Spans(traces, "0"), Metrics(meters, "0"), (traces, meters, LoggerProvider())
        )

    def named(self, name: str) -> list[ReadableSpan]:
        """The spans of that name."""
        return [span for span in self.exporter.get_finished_spans() if span.name == name]

    def one(self, name: str) -> ReadableSpan:
        """The only span of that name."""
        [span] = self.named(name)
        return span

    def points(self, name: str) -> list[tuple[dict[str, object], object]]:
        """The points of a metric: their attributes, and their sum."""
        found = self.reader.get_metrics_data()
        return [
            (dict(point.attributes or {}), getattr(point, "sum", getattr(point, "value", None)))
            for resource in (found.resource_metrics if found is not None else [])
            for scope in resource.scope_metrics
            for metric in scope.metrics
            if metric.name == name
            for point in metric.data.data_points
        ]


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> Kept:
    """Telemetry is on, in workers and clients alike, and what it tells stays here."""
    kept = Kept()
    monkeypatch.setattr(telemetry, "_active", kept.telemetry)
    monkeypatch.setenv(telemetry.VARIABLE, "1")
    return kept
