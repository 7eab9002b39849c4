"""A run is one trace, whatever dies meanwhile, and however often its workflow continues as new."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest
from temporalio.client import Client

from perdure.dev_server import DevServer, dev_server
from tests.cli.test_command_line import PERDURE
from tests.engine.histories import until
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
        with collecting() as collector, ExitStack() as started:
            environment = _environment(server, folder) | collector.environment()
            store = folder / "sessions"
            worker = [str(PERDURE), "worker", "tests.telemetry.shop:clerk", "--otel"]
            worker += ["--store", f"files:{store}"]
            first = _started(started, worker, environment)
            client = _started(
                started,
                [sys.executable, "-m", "tests.telemetry.traced_client", "traced", str(store)],
                environment,
            )
            # Whatever a worker has not sent yet dies with it.
            await until(lambda: _first_has_told(collector, folder))
            first.kill()
            (folder / "hold").unlink()
            second = _started(started, worker, environment)
            printed, _ = await asyncio.to_thread(client.communicate, timeout=60)
            assert client.returncode == 0
            second.send_signal(signal.SIGTERM)
            assert await asyncio.to_thread(second.wait, 30) == 0
            yield Told(collector, printed.strip(), server.client)


def _started(
    stack: ExitStack, command: list[str], environment: dict[str, str]
) -> subprocess.Popen[str]:
    """A process that does not outlive the tests, whatever happens in them."""
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
    stack.enter_context(process)
    stack.callback(process.kill)
    return process


async def _first_has_told(collector: Collector, folder: Path) -> bool:
    names = [span.name for span in collector.spans]
    return (
        (folder / "journal").exists()
        and {"send run", "start_run", "chat claude-script"} <= set(names)
        and names.count("append_entries") == 2
        and "perdure.inbox.wait" in collector.metrics
    )


def _environment(server: DevServer, folder: Path) -> dict[str, str]:
    own = {name: value for name, value in os.environ.items() if not name.startswith("PERDURE_")}
    return own | {
        "TEMPORAL_ADDRESS": server.address,
        "PERDURE_OTEL": "1",
        "PERDURE_TEST_FOLDER": str(folder),
    }


def test_it_is_one_connected_trace(told: Told) -> None:
    """Of a client, two workers, and a workflow that continued as new at each turn."""
    ids = {span.id for span in told.trace}
    assert len(ids) == len(told.trace)
    assert {span.parent_id for span in told.trace} <= ids | {""}
    [root] = [span for span in told.trace if not span.parent_id]
    assert root.name == "send run"
    run = told.one("invoke_agent clerk")
    assert run.parent_id == root.id
    steps = [span.name for span in told.trace if span.parent_id == run.id]
    assert [name for name in steps if not name.endswith("_entries")] == [
        "start_run",
        "chat claude-script",
        "execute_tool look_up",
        "chat claude-script",
        "execute_tool charge",
        "chat claude-script",
    ]
    assert {span.resource["service.name"] for span in told.trace} == {"perdure"}


async def test_the_workflow_continued_as_new_in_the_run(told: Told) -> None:
    runs = [run async for run in told.client.list_workflows('WorkflowId = "session:traced"')]
    assert len(runs) >= 3


def test_the_spans_say_what_happened_and_how_long_it_took(told: Told) -> None:
    run, looked_up, charged = (
        told.one(f"{name}")
        for name in ("invoke_agent clerk", "execute_tool look_up", "execute_tool charge")
    )
    assert run.attributes["gen_ai.conversation.id"] == "traced"
    assert run.attributes["perdure.run.id"] == told.run_id
    assert run.attributes["gen_ai.usage.input_tokens"] == 360
    assert run.attributes["gen_ai.usage.output_tokens"] == 21
    # The first attempt died with its worker, which could not tell of it any more.
    assert looked_up.attributes["perdure.attempt"] == 2
    assert (charged.is_error, charged.attributes["error.type"]) == (True, "tool_error")
    steps = [span for span in told.trace if span.parent_id == run.id]
    assert run.began <= min(span.began for span in steps)
    assert max(span.began for span in steps) <= run.ended


def test_metrics_arrive(told: Told) -> None:
    metrics = told.collector.metrics
    assert {
        "gen_ai.client.operation.duration",
        "gen_ai.client.token.usage",
        "gen_ai.execute_tool.duration",
        "gen_ai.invoke_agent.duration",
        "perdure.inbox.depth",
        "perdure.inbox.wait",
        "perdure.store.duration",
        "perdure.tool.errors",
        "perdure.turn.duration",
    } <= metrics.keys()
    assert {"temporal_worker_task_slots_available", "temporal_request_latency"} <= metrics.keys()
    assert not any("traced" in map(str, about.values()) for about in metrics["perdure.inbox.depth"])


def test_log_lines_arrive_with_the_session_and_the_run(told: Told) -> None:
    about = {"gen_ai.conversation.id": "traced", "perdure.run.id": told.run_id}
    trace_id = told.one("invoke_agent clerk").trace_id
    lines = [line for line in told.collector.lines if about.items() <= line.attributes.items()]
    assert {line.trace_id for line in lines} == {trace_id}
    raised, ended = lines
    assert raised.body.startswith("the tool charge raised")
    assert raised.attributes["exception.type"] == "RuntimeError"
    assert ended.body == f"run {told.run_id} of session traced done, turns: 3"


def test_no_secret_of_a_prompt_an_answer_or_an_error_is_in_what_was_sent(told: Told) -> None:
    assert b"look_up" in told.collector.everything
    assert SECRET.encode() not in told.collector.everything
