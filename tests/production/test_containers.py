"""The Dockerfile and docker-compose.yml, as far as they can be checked without an engine."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import zipfile
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.docs.commands import _variables
from tests.packaging.source import ROOT, modules

COMPOSE: Any = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
SERVICES: dict[str, Any] = COMPOSE["services"]
OURS = [name for name, service in SERVICES.items() if service.get("image") == "perdure"]


def instructions() -> list[tuple[str, str]]:
    """The Dockerfile, instruction by instruction."""
    text = (ROOT / "Dockerfile").read_text()
    text = re.sub(r"^#.*\n", "", text, flags=re.MULTILINE).replace("\\\n", " ")
    found = [line.partition(" ") for line in text.splitlines() if line.strip()]
    return [(name, " ".join(rest.split())) for name, _, rest in found]


def values(name: str) -> list[str]:
    return [rest for instruction, rest in instructions() if instruction == name]


def test_the_image_runs_as_nobody_in_particular_and_gets_its_signals() -> None:
    last = instructions()[[name for name, _ in instructions()].index("USER") :]
    assert dict(last) == {
        "USER": "10001:10001",
        "STOPSIGNAL": "SIGTERM",
        "HEALTHCHECK": "--interval=15s --timeout=10s --start-period=60s --retries=3 "
        'CMD ["python", "-m", "perdure.liveness"]',
        # Not through a shell, which would keep the signal to itself.
        "ENTRYPOINT": '["perdure"]',
        "CMD": '["worker"]',
    }
    assert all("slim" in image for image in values("FROM"))
    assert "ADD" not in dict(instructions())


def test_images_have_versions_and_no_registry() -> None:
    images = [service["image"] for service in SERVICES.values()] + values("FROM")
    names = [image.split()[0] for image in images if image != "perdure"]
    assert all(re.search(r":\$\{\w+(:-[\d.]+)?\}(-slim)?$", name) for name in names), names
    assert [name for name in names if "." in name.partition(":")[0]] == []
    assert "ARG PYTHON_VERSION=3.13" in (ROOT / "Dockerfile").read_text()


def test_what_the_dockerfile_copies_is_a_package_that_is_whole(tmp_path: Path) -> None:
    """Its build, with pip's own steps, of what it copies and nothing else."""
    ignored = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if line]
    kept = {line[1:] for line in ignored if line.startswith("!")}
    context = tmp_path / "src"
    context.mkdir()
    for copied in values("COPY"):
        if copied.startswith("--from"):
            continue
        *sources, _ = copied.split()
        for source in sources:
            assert any(fnmatch(source, pattern) for pattern in kept), f"{source} is ignored"
            if (ROOT / source).is_dir():
                shutil.copytree(ROOT / source, context / source, symlinks=True)
            else:
                shutil.copy(ROOT / source, context)
    command = [
        sys.executable,
        "-m",
        "build",
        "--wheel",
        "--no-isolation",
        "-o",
        str(tmp_path),
        str(context),
    ]
    subprocess.run(command, check=True, capture_output=True, cwd=tmp_path)
    [wheel] = tmp_path.glob("*.whl")
    inside = set(zipfile.ZipFile(wheel).namelist())
    missing = [
        name
        for name in modules()
        if f"{name.replace('.', '/')}.py" not in inside
        and f"{name.replace('.', '/')}/__init__.py" not in inside
    ]
    assert missing == []


def test_services_start_when_what_they_need_is_ready() -> None:
    needs = {name: service.get("depends_on", {}) for name, service in SERVICES.items()}
    for name, others in needs.items():
        for other, how in others.items():
            if how["condition"] == "service_healthy":
                assert "test" in SERVICES[other]["healthcheck"], f"{name} needs {other}"
            else:
                assert how["condition"] == "service_completed_successfully"
                assert SERVICES[other]["restart"].startswith("on-failure")

    def all_needs(name: str) -> set[str]:
        return {name}.union(*(all_needs(other) for other in needs[name]))

    assert all_needs("worker") >= {
        *("postgresql", "temporal-schema", "temporal", "temporal-namespace", "perdure-schema")
    }


def test_there_are_two_workers_which_have_the_time_to_finish() -> None:
    worker = SERVICES["worker"]
    assert worker["deploy"]["replicas"] == 2
    grace = int(worker["environment"]["PERDURE_GRACE"])
    assert int(worker["stop_grace_period"].removesuffix("s")) >= grace + 10


@pytest.mark.parametrize("name", OURS)
def test_a_service_of_ours_sets_variables_that_are_read(name: str) -> None:
    known = _variables() | {"SUPPORT_MODEL", "ANTHROPIC_API_KEY", "OPENAI_API_KEY"}
    assert set(SERVICES[name]["environment"]) <= known


def test_nothing_listens_to_the_network_and_no_password_is_written_down() -> None:
    ports = [port for service in SERVICES.values() for port in service.get("ports", [])]
    assert len(ports) == 3
    assert all(port.startswith("127.0.0.1:") for port in ports)
    for service in SERVICES.values():
        for variable, value in service.get("environment", {}).items():
            if re.search("PASSWORD|PWD|KEY|TOKEN$|STORE", variable):
                assert "${" in value, variable


@pytest.mark.parametrize("name", ["temporal-schema", "temporal-namespace"])
def test_scripts_are_sound_shell(name: str, tmp_path: Path) -> None:
    [script] = SERVICES[name]["command"]
    script = script.replace("$$", "$")
    subprocess.run(["sh", "-n", "-c", script], check=True)
    if name == "temporal-schema":
        tool = tmp_path / "temporal-sql-tool"
        tool.write_text('#!/bin/sh\necho "$@"\n')
        tool.chmod(0o755)
        ran = subprocess.run(
            ["sh", "-euc", script],
            env={"PATH": f"{tmp_path}:{os.environ['PATH']}"},
            check=True,
            capture_output=True,
            text=True,
        )
        assert [shlex.split(line)[8:] for line in ran.stdout.splitlines()] == [
            line
            for database, part in (("temporal", "temporal"), ("temporal_visibility", "visibility"))
            for line in (
                ["--db", database, "create"],
                ["--db", database, "setup-schema", "-v", "0.0"],
                ["--db", database, "update-schema", "-d", _VERSIONED.format(part)],
            )
        ]


_VERSIONED = "/etc/temporal/schema/postgresql/v12/{}/versioned"


@pytest.mark.skipif(
    shutil.which("docker") is None
    or subprocess.run(["docker", "compose", "version"], capture_output=True, check=False).returncode
    != 0,
    reason="the client of Docker Compose is not here",
)
def test_docker_compose_takes_it() -> None:
    environment = {**os.environ, "POSTGRES_PASSWORD": "x"}
    command = ["docker", "compose", "--profile", "codec", "config", "--quiet"]
    subprocess.run(command, cwd=ROOT, env=environment, check=True)


def test_settings_of_the_server_are_yaml() -> None:
    settings = yaml.safe_load((ROOT / "deploy/dynamic-config.yaml").read_text())
    assert settings == {"history.maxInFlightUpdates": [{"value": 1000}]}
