"""Whoever does not ask for telemetry has none of it: nothing is loaded, sent, or written."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from temporalio.client import Client

from perdure.errors import TelemetryError
from perdure.models.scripted import call
from perdure.telemetry import VARIABLE, conventions, telemetry
from tests.engine.agents import add, scripted
from tests.engine.conftest import Serving
from tests.engine.histories import histories
from tests.packaging.source import ROOT, within
from tests.telemetry.collector import collecting
from tests.telemetry.conftest import Kept

A_RUN = """
import asyncio, json, sys
import perdure
from perdure.testing import ScriptedModel

async def main():
    agent = perdure.Agent("agent", model=ScriptedModel("Hello."))
    async with perdure.local(agents=[agent]) as sessions:
        session = await sessions.open("quiet", agent="agent")
        await (await session.run("Hello?"))

asyncio.run(main())
json.dump(sorted(sys.modules), sys.stdout)
"""


def test_the_page_has_every_name_that_is_told() -> None:
    page = (ROOT / "docs/opentelemetry.md").read_text()
    told = {name: value for name, value in vars(conventions).items() if name.isupper()}
    values = [value for value in told.values() if isinstance(value, str)]
    names = [value for value in values if value.startswith(("gen_ai.", "perdure.", "temporal."))]
    assert len(names) > 30
    assert [name for name in names if f"`{name}`" not in page] == []


def environment(**own: str) -> dict[str, str]:
    ours = ("PERDURE_", "OTEL_")
    return {name: value for name, value in os.environ.items() if not name.startswith(ours)} | own


def test_nothing_is_loaded_and_nothing_is_sent_unless_it_is_asked_for() -> None:
    """Not even where OpenTelemetry's own variables are set, for something else."""
    with collecting() as collector:
        ended = subprocess.run(
            [sys.executable, "-c", A_RUN],
            env=environment(**collector.environment()),
            capture_output=True,
            text=True,
            check=True,
        )
    assert collector.requests == []
    loaded = json.loads(ended.stdout)
    sender = ("opentelemetry.sdk", "opentelemetry.exporter", "temporalio.contrib.opentelemetry")
    assert within(loaded, *sender) == []
    assert within(loaded, "perdure.telemetry") == ["perdure.telemetry"]


async def test_history_is_the_same_without_it(serving: Serving) -> None:
    async with serving(scripted(call("add", a=1, b=2), "It is 3.", tools=[add])) as sessions:
        session = await sessions.open("quiet", agent="agent")
        await (await session.run("1 + 2?"))
        written = await _written(sessions.client, "session:quiet")
    assert "_tracer-data" not in written
    assert "trace" not in written


async def test_a_traced_run_costs_a_header_at_each_step(serving: Serving, kept: Kept) -> None:
    """The update, the two model calls and the tool: what is stored, local activities, has none."""
    async with serving(scripted(call("add", a=1, b=2), "It is 3.", tools=[add])) as sessions:
        session = await sessions.open("headed", agent="agent")
        await (await session.run("1 + 2?"))
        written = await _written(sessions.client, "session:headed")
    assert written.count("_tracer-data") == 4


async def _written(client: Client, workflow_id: str) -> str:
    return "".join([str(events) async for events in histories(client, workflow_id)])


@pytest.mark.parametrize("command", [["worker", "tests.telemetry.shop:clerk"], ["run", "x", "Hi"]])
def test_a_missing_package_is_named_with_what_to_install(
    command: list[str], tmp_path: Path
) -> None:
    missing = "import sys; sys.modules['opentelemetry.sdk'] = None\n"
    started = f"from perdure.cli import main; sys.argv = {['perdure', *command, '--otel']}; main()"
    ended = subprocess.run(
        [sys.executable, "-c", missing + started],
        env=environment(PERDURE_STORE=f"files:{tmp_path}"),
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert ended.returncode == 1
    assert ended.stderr.splitlines()[-1].startswith(
        "perdure: telemetry needs the package opentelem"
    )
    assert ended.stderr.splitlines()[-1].endswith(": pip install 'perdure[otel]'")
    assert "Traceback" not in ended.stderr


@pytest.mark.parametrize(
    "setting, told",
    [
        ({VARIABLE: "perhaps"}, "PERDURE_OTEL is 'perhaps'; set it to 1 or 0"),
        (
            {VARIABLE: "1", "OTEL_TRACES_EXPORTER": "pigeon"},
            "OTEL_TRACES_EXPORTER is 'pigeon'; perdure knows otlp, console and none",
        ),
        (
            {VARIABLE: "1", "OTEL_EXPORTER_OTLP_PROTOCOL": "smoke"},
            "the OTLP protocol for traces is 'smoke'; perdure knows http/protobuf and grpc",
        ),
    ],
)
def test_a_setting_that_is_none_is_told(
    monkeypatch: pytest.MonkeyPatch, setting: dict[str, str], told: str
) -> None:
    for name, value in setting.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(TelemetryError, match=told):
        telemetry()
