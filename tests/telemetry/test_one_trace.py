"""A run is one trace, whatever dies meanwhile, and however often its workflow continues as new."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from temporalio.client import Client

from perdure.dev_server import DevServer, dev_server
from tests.cli.test_command_line import PERDURE
from tests.telemetry.collector import Collector, Span, collecting
from tests.telemetry.shop import SECRET


@dataclass(frozen=True)
class Told:
    """What a run that went through two workers left behind."""

    collector: Collector
    run_id: str
    client: Client

    @property
    def trace(self) -> list[Span]:
        """The spans of the run's trace."""
        [run] = [span for span in self.collector.spans if span.name == "invoke_agent clerk"]
        return [span for span in self.collector.spans if span.trace_id == run.trace_id]

    def one(self, name: str) -> Span:
        """The only span of that name."""
        [span] = [span for span in self.trace if span.name == name]
        return span


@pytest.fixture(scope="module")
async def told(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Told]:
    """A run with two tool calls. Its first worker is killed in the first."""
    folder = tmp_path_factory.mktemp("traced")
    (folder / "hold").touch()
    async with dev_server() as server:
        with collecting() as collector:
            environment = _environment(server, folder) | collector.environment()
            first = _worker(folder, environment)
            client = subprocess.Popen(
                [sys.executable, "-m", "tests.telemetry.traced_client", "traced", folder / "sessions"],
                env=environment,
                stdout=subprocess.PIPE,
                text=True,
            )
            while not (folder / "journal").exists():
                await asyncio.sleep(0.05)
            first.kill()
            first.wait()
            (folder / "hold").unlink()
            second = _worker(folder, environment)
            printed, _ = await asyncio.to_thread(client.communicate, timeout=60)
            assert client.returncode == 0
            second.send_signal(signal.SIGTERM)
            assert await asyncio.to_thread(second.wait, 30) == 0
            yield Told(collector, printed.strip(), server.client)


def _environment(server: DevServer, folder: Path) -> dict[str, str]:
    own = {name: value for name, value in os.environ.items() if not name.startswith("PERDURE_")}
    return own | {
        "TEMPORAL_ADDRESS": server.address,
        "PERDURE_OTEL": "1",
        "PERDURE_TEST_FOLDER": str(folder),
    }


def _worker(folder: Path, environment: dict[str, str]) -> subprocess.Popen[bytes]:
    store = f"files:{folder / 'sessions'}"
    return subprocess.Popen(
        [PERDURE, "worker", "tests.telemetry.shop:clerk", "--store", store, "--otel"],
        env=environment,
    )


def test_dump(told: Told) -> None:
    for s in told.collector.spans:
        print(s.name, s.trace_id[:6], s.id[:6], s.parent_id[:6], (s.ended-s.began)/1e9, s.attributes, s.is_error)
    print(told.collector.metrics.keys())
    for l in told.collector.lines: print(l)
    assert 0
