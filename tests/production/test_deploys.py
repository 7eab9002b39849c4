"""A new version of the workers takes over while sessions are alive."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import textwrap
import uuid
from pathlib import Path

import pytest
from temporalio.api.workflowservice.v1 import SetWorkerDeploymentCurrentVersionRequest
from temporalio.client import Client
from temporalio.service import RPCError
from temporalio.worker import WorkerDeploymentConfig

from perdure import Agent, ServerError, Session, Sessions
from perdure.deployments import given_deployment
from perdure.dev_server import DevServer
from perdure.liveness import is_alive
from perdure.models.scripted import ScriptedModel
from perdure.session_id import workflow_id
from perdure.stores import FileStore
from perdure.worker import build_worker, given_grace
from tests.cli.test_command_line import PERDURE
from tests.engine.conftest import replay_all
from tests.engine.histories import until


def version(number: int) -> Agent:
    return Agent("agent", model=ScriptedModel(lambda messages: f"version {number}"))


def build(name: str, number: int, versioning: str) -> WorkerDeploymentConfig:
    deployment = given_deployment(name, str(number), versioning)
    assert deployment is not None
    return deployment


async def make_current(client: Client, name: str, number: int) -> None:
    """Let that build serve, as `temporal worker deployment set-current-version` does."""
    request = SetWorkerDeploymentCurrentVersionRequest(
        namespace=client.namespace, deployment_name=name, build_id=str(number)
    )

    async def took() -> bool:
        try:
            await client.workflow_service.set_worker_deployment_current_version(request)
        except RPCError:  # the server has not heard of the build yet
            return False
        return True

    await until(took)


async def answer(session: Session) -> str:
    return (await (await session.run("Which one are you?")))[-1].text


@pytest.mark.parametrize("versioning", ["auto-upgrade", "pinned"])
async def test_a_session_moves_to_the_new_build_and_the_old_one_can_go(
    server: DevServer, tmp_path: Path, versioning: str
) -> None:
    client, store = server.client, FileStore(tmp_path)
    queue, name = f"test-{uuid.uuid4().hex}", f"shop-{uuid.uuid4().hex}"
    sessions = Sessions(client, store, task_queue=queue)
    old = build_worker(
        client, agents=[version(1)], store=store, task_queue=queue,
        deployment=build(name, 1, versioning),
    )  # fmt: skip
    new = build_worker(
        client, agents=[version(2)], store=store, task_queue=queue,
        deployment=build(name, 2, versioning),
    )  # fmt: skip
    async with new:
        async with old:
            await make_current(client, name, 1)
            session = await sessions.open(f"talk-{uuid.uuid4().hex}", agent="agent")
            assert await answer(session) == "version 1"
            first = await run_id(client, session)
            await make_current(client, name, 2)

            async def has_moved() -> bool:
                return await answer(session) == "version 2"

            await until(has_moved)
        assert await answer(session) == "version 2"
        # Pinned, it moved where its workflow continued as new, between two steps.
        assert (await run_id(client, session) == first) == (versioning == "auto-upgrade")
    assert len(await session.leaves()) == 1
    await replay_all(client, queue)


async def run_id(client: Client, session: Session) -> str:
    described = await client.get_workflow_handle(workflow_id(session.id)).describe()
    return described.run_id


def test_the_environment_names_the_version(monkeypatch: pytest.MonkeyPatch) -> None:
    assert given_deployment() is None
    with pytest.raises(ServerError, match="has both a deployment and a build ID"):
        given_deployment(versioning="pinned")
    monkeypatch.setenv("PERDURE_VERSIONING", "pinned")
    assert given_deployment() is None
    monkeypatch.delenv("PERDURE_VERSIONING")
    monkeypatch.setenv("TEMPORAL_DEPLOYMENT_NAME", "shop")
    with pytest.raises(ServerError, match="has both a deployment and a build ID"):
        given_deployment()
    monkeypatch.setenv("TEMPORAL_WORKER_BUILD_ID", "7")
    deployment = given_deployment()
    assert deployment is not None
    assert deployment.version.to_canonical_string() == "shop.7"
    assert deployment.default_versioning_behavior.name == "AUTO_UPGRADE"
    monkeypatch.setenv("PERDURE_VERSIONING", "pinned")
    pinned = given_deployment(build_id="8")
    assert pinned is not None
    assert pinned.version.build_id == "8"
    assert pinned.default_versioning_behavior.name == "PINNED"
    with pytest.raises(ServerError, match="take auto-upgrade or pinned"):
        given_deployment(versioning="sometimes")
    with pytest.raises(ServerError, match=r"holds a '\.'"):
        given_deployment("a.b")


@pytest.mark.parametrize("text", ["-1", "soon", "nan", "1e400"])
def test_a_grace_is_a_number_of_seconds(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PERDURE_GRACE", text)
    with pytest.raises(ServerError, match="is no time for running steps"):
        given_grace()
    assert given_grace(2.5).total_seconds() == 2.5


SLOW = '''
"""An agent whose model takes as long as a file is there."""
import asyncio, os
from perdure import Agent, Message

class Slow:
    name = "slow"

    async def respond(self, request, on_delta=None):
        open("asked", "a").write(f"{os.getpid()}\\n")
        while os.path.exists("hold"):
            await asyncio.sleep(0.02)
        return Message(role="assistant", content="finished")

agent = Agent("agent", model=Slow())
'''


def worker(folder: Path, server: DevServer, queue: str, **variables: str) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [PERDURE, "worker", "slow:agent", "--task-queue", queue, "--grace", "30"],
        cwd=folder,
        env={**os.environ, "TEMPORAL_ADDRESS": server.address, **variables},
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    assert "serving agent" in process.stderr.readline()
    return process


async def test_a_worker_that_is_told_to_stop_finishes_its_model_call(
    server: DevServer, tmp_path: Path
) -> None:
    (tmp_path / "slow.py").write_text(textwrap.dedent(SLOW))
    (tmp_path / "hold").touch()
    queue, asked = f"test-{uuid.uuid4().hex}", tmp_path / "asked"
    sessions = Sessions(server.client, f"files:{tmp_path}/sessions", task_queue=queue)
    first = worker(tmp_path, server, queue)
    session = await sessions.open(f"talk-{uuid.uuid4().hex}", agent="agent")
    run = await session.run("Take your time.")
    await until_true(asked.exists)
    first.send_signal(signal.SIGTERM)
    assert first.stderr is not None
    stopping = await asyncio.to_thread(first.stderr.readline)
    assert "running steps may finish, at most 0:00:30" in stopping
    second = worker(tmp_path, server, queue)
    (tmp_path / "hold").unlink()
    _, errors = await asyncio.to_thread(first.communicate, timeout=40)
    assert (first.returncode, "Traceback" in errors) == (0, False)
    assert [message.text for message in await run] == ["finished"]
    # The call was made once, by the worker that stopped; the rest of the run was the other's.
    assert asked.read_text().split() == [str(first.pid)]
    second.send_signal(signal.SIGTERM)
    await asyncio.to_thread(second.communicate, timeout=40)


async def until_true(holds: object) -> None:
    async def told() -> bool:
        return bool(holds())  # type: ignore[operator]

    await until(told)


async def test_a_worker_tells_that_it_is_alive(server: DevServer, tmp_path: Path) -> None:
    """And the check of a container's health hears it: run here as the Dockerfile has it."""
    (tmp_path / "slow.py").write_text(textwrap.dedent(SLOW))
    alive = tmp_path / "alive"
    variables = {"PERDURE_ALIVE_FILE": str(alive)}
    check = [sys.executable, "-m", "perdure.liveness"]

    def status() -> int:
        environment = {**os.environ, **variables}
        return subprocess.run(check, env=environment, capture_output=True, check=False).returncode

    assert status() == 1
    process = worker(tmp_path, server, f"test-{uuid.uuid4().hex}", **variables)
    await until_true(alive.exists)
    assert status() == 0
    process.send_signal(signal.SIGSTOP)  # a worker that hangs does not renew it
    os.utime(alive, (1, 1))
    assert not is_alive(alive)
    assert status() == 1
    process.send_signal(signal.SIGCONT)
    await until_true(lambda: is_alive(alive))
    process.send_signal(signal.SIGTERM)
    await asyncio.to_thread(process.communicate, timeout=40)
    assert not alive.exists()
    variables.clear()
    assert status() == 2
