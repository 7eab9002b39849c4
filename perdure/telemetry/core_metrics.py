"""The metrics of Temporal's own SDK: slots, polls, requests, latencies."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from temporalio.contrib.opentelemetry import MetricsExporter
from temporalio.runtime import MetricBuffer, MetricBufferDurationFormat, Runtime, TelemetryConfig

from perdure.telemetry.setup import Telemetry

_ROOM: Final = 20_000
"""Updates between two looks at them, a second apart; more are lost."""


class CoreMetrics:
    """A runtime to connect with, whose metrics go where all others do."""

    def __init__(self, telemetry: Telemetry) -> None:
        self._buffer = MetricBuffer(_ROOM, duration_format=MetricBufferDurationFormat.SECONDS)
        self._meters = telemetry.providers[1]
        self.runtime = Runtime(telemetry=TelemetryConfig(metrics=self._buffer))

    @asynccontextmanager
    async def exported(self) -> AsyncIterator[None]:
        """Hand the metrics on, as long as the block runs."""
        async with MetricsExporter(self._buffer, self._meters):
            yield
