"""A collector of OpenTelemetry: a real HTTP server that takes OTLP, and keeps it."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue


@dataclass(frozen=True)
class Span:
    """A span as it arrived; IDs in hexadecimal, times in nanoseconds."""

    name: str
    trace_id: str
    id: str
    parent_id: str
    links: tuple[str, ...]
    began: int
    ended: int
    is_error: bool
    attributes: dict[str, Any]
    resource: dict[str, Any]


@dataclass(frozen=True)
class Line:
    """A log record as it arrived."""

    body: str
    trace_id: str
    attributes: dict[str, Any]


@dataclass
class Collector:
    """What has arrived."""

    url: str = ""
    requests: list[tuple[str, bytes]] = field(default_factory=list)

    @property
    def everything(self) -> bytes:
        """All that has arrived, unpacked."""
        return b"".join(body for _, body in list(self.requests))

    @property
    def spans(self) -> list[Span]:
        """The spans, in the order in which they began."""
        found = []
        for body in self._bodies("/v1/traces"):
            for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
                about = _attributes(resource.resource.attributes)
                for scope in resource.scope_spans:
                    found += [_span(span, about) for span in scope.spans]
        return sorted(found, key=lambda span: span.began)

    @property
    def metrics(self) -> dict[str, list[dict[str, Any]]]:
        """The attributes of the points of each metric."""
        found: dict[str, list[dict[str, Any]]] = {}
        for body in self._bodies("/v1/metrics"):
            for resource in ExportMetricsServiceRequest.FromString(body).resource_metrics:
                for scope in resource.scope_metrics:
                    for metric in scope.metrics:
                        points = getattr(metric, str(metric.WhichOneof("data"))).data_points
                        seen = found.setdefault(metric.name, [])
                        seen += [_attributes(point.attributes) for point in points]
        return found

    @property
    def lines(self) -> list[Line]:
        """The log records."""
        found = []
        for body in self._bodies("/v1/logs"):
            for resource in ExportLogsServiceRequest.FromString(body).resource_logs:
                for scope in resource.scope_logs:
                    found += [
                        Line(
                            record.body.string_value,
                            record.trace_id.hex(),
                            _attributes(record.attributes),
                        )
                        for record in scope.log_records
                    ]
        return found

    def _bodies(self, path: str) -> list[bytes]:
        return [body for sent_to, body in list(self.requests) if sent_to == path]

    def environment(self) -> dict[str, str]:
        """What a process needs to send here, soon."""
        return {
            "OTEL_EXPORTER_OTLP_ENDPOINT": self.url,
            "OTEL_BSP_SCHEDULE_DELAY": "50",
            "OTEL_BLRP_SCHEDULE_DELAY": "50",
            "OTEL_METRIC_EXPORT_INTERVAL": "200",
        }


@contextmanager
def collecting() -> Iterator[Collector]:
    """A collector, as long as the block runs."""
    collector = Collector()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers.get("Content-Encoding") == "gzip":
                body = gzip.decompress(body)
            collector.requests.append((self.path, body))
            self.send_response(200)
            self.send_header("Content-Type", "application/x-protobuf")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            """Nothing: the tests look at what arrived."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    collector.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield collector
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _span(span: Any, resource: dict[str, Any]) -> Span:
    return Span(
        name=span.name,
        trace_id=span.trace_id.hex(),
        id=span.span_id.hex(),
        parent_id=span.parent_span_id.hex(),
        links=tuple(link.span_id.hex() for link in span.links),
        began=span.start_time_unix_nano,
        ended=span.end_time_unix_nano,
        is_error=span.status.code == 2,
        attributes=_attributes(span.attributes),
        resource=resource,
    )


def _attributes(found: Any) -> dict[str, Any]:
    return {each.key: _value(each.value) for each in found}


def _value(value: AnyValue) -> Any:
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [_value(each) for each in value.array_value.values]
    return None if kind is None else getattr(value, kind)
