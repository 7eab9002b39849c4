"""`perdure worker` with all of it at once, and a client that has the same environment."""

from __future__ import annotations

import asyncio
import base64
import os
import shutil
import signal
import subprocess
import uuid
from pathlib import Path

import pytest

from perdure import Sessions
from perdure.dev_server import DevServer
from tests.cli.test_command_line import PERDURE
from tests.cli.test_worker import EXAMPLES
from tests.production.test_deploys import make_current
from tests.security.conftest import OLD

pytestmark = pytest.mark.usefixtures("_environment")


@pytest.fixture
def _environment(server: DevServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "keys").write_text(f"k1:{base64.b64encode(OLD).decode()}")
    monkeypatch.setenv("TEMPORAL_ADDRESS", server.address)
    monkeypatch.setenv("PERDURE_KEYS_FILE", str(tmp_path / "keys"))
    monkeypatch.setenv("PERDURE_TENANT", "acme")
    monkeypatch.setenv("SUPPORT_MODEL", "test")
    shutil.copy(EXAMPLES / "support.py", tmp_path)


async def test_a_worker_of_a_tenant_encrypted_versioned_and_with_large_payloads(
    server: DevServer, tmp_path: Path
) -> None:
    queue, deployment = f"test-{uuid.uuid4().hex}", f"shop-{uuid.uuid4().hex}"
    store, payloads = f"encrypted:files:{tmp_path}/sessions", f"files:{tmp_path}/payloads"
    process = subprocess.Popen(
        [
            *(PERDURE, "worker", "support:agent", "--store", store, "--task-queue", queue),
            *("--payloads", payloads, "--deployment", deployment, "--build-id", "7"),
        ],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    line = await asyncio.to_thread(process.stderr.readline)
    assert line.rstrip().endswith(f"on task queue 'acme:{queue}' as {deployment}.7")
    await make_current(server.client, deployment, 7)
    async with Sessions.connect(store=store, task_queue=queue, payloads=payloads) as sessions:
        session = await sessions.open("customer/42", agent="support")
        said = await (await session.run("Where is order 7? " + "x" * 2_000_000))
        assert said[-1].role == "assistant"
        assert len(await session.entries()) == 4
    process.send_signal(signal.SIGTERM)
    _, errors = await asyncio.to_thread(process.communicate, timeout=40)
    assert (process.returncode, "Traceback" in errors) == (0, False)

    assert [path.name for path in (tmp_path / "sessions").iterdir()] == [
        "acme%3Acustomer%2F42.jsonl"
    ]
    kept = [path for path in tmp_path.rglob("*") if path.is_file() and path.suffix != ".py"]
    assert len(kept) > 3
    assert all(b"order 7" not in path.read_bytes() for path in kept)


async def test_payloads_are_cleaned_by_a_command(tmp_path: Path) -> None:
    garbage = tmp_path / "payloads" / "default" / "session:long-gone"
    garbage.mkdir(parents=True)
    (garbage / ("0" * 64)).write_bytes(b"x" * 100)
    os.utime(garbage / ("0" * 64), (1, 1))
    command: list[str | Path] = [
        PERDURE,
        "clean-payloads",
        "--payloads",
        f"files:{tmp_path}/payloads",
    ]
    for options, said in (
        (["--only-look"], "would remove 1 files, 100 bytes; 0 are needed\n"),
        (["--json"], '{"removed": 1, "bytes": 100, "kept": 0}\n'),
        ([], "removed 0 files, 0 bytes; 0 are needed\n"),
    ):
        assert await ended(*command, *options) == (0, said, "")
    reason = "perdure: 's3' is no place for payloads; name it as files:DIR or postgresql://…\n"
    assert await ended(*command[:3], "s3://x") == (1, "", reason)
    status, said, reason = await ended(*command[:2])
    assert (status, said) == (1, "")
    assert reason.startswith("perdure: name the place of payloads as files:DIR or postgresql://…")


async def ended(*command: str | Path) -> tuple[int | None, str, str]:
    process = await asyncio.create_subprocess_exec(
        *command, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    said, errors = await process.communicate()
    return process.returncode, said.decode(), errors.decode()
