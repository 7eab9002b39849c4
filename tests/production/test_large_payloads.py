"""Payloads over the engine's limit: through a run, into the log, and not into Temporal."""

from __future__ import annotations

import os
import time
import uuid
from pathlib import Path

import pytest
from temporalio.api.common.v1 import Payload
from temporalio.client import Client
from temporalio.converter import (
    StorageDriverClaim,
    StorageDriverRetrieveContext,
    StorageDriverStoreContext,
    StorageDriverWorkflowInfo,
)

from perdure import CommandTooLargeError, StoreError, ToolContext, tool
from perdure.data_conversion import data_converter
from perdure.dev_server import DevServer
from perdure.encryption import Keys
from perdure.large_payloads import MAX_LARGE_BYTES, STEP_SECONDS, external_storage
from perdure.models.scripted import call
from perdure.payload_cleaning import clean_payloads
from perdure.payload_files import PayloadFiles
from perdure.protocol import MAX_COMMAND_BYTES
from perdure.session_id import workflow_id
from perdure.stores import FileStore
from perdure.worker import build_worker
from tests.engine.agents import echo, scripted
from tests.engine.histories import histories, until
from tests.security.conftest import OLD, Serving

LARGE = 20_000_000


@tool(idempotent=True, max_result=None)
async def read_all(ctx: ToolContext) -> str:
    """Read a large file."""
    return "x" * LARGE


def client_with(server: DevServer, folder: Path, keys: Keys | None = None) -> Client:
    config = server.client.config()
    config["data_converter"] = data_converter(keys=keys, payloads=f"files:{folder}")
    return Client(**config)


@pytest.mark.parametrize("keys", [None, Keys({"k1": OLD})], ids=["plain", "encrypted"])
async def test_a_result_of_20_mb_goes_through_a_run_and_is_in_the_log(
    server: DevServer, secured: Serving, tmp_path: Path, keys: Keys | None
) -> None:
    client = client_with(server, tmp_path / "payloads", keys)
    agent = scripted(
        [call("read_all")], lambda messages: str(len(messages[-1].text)), tools=[read_all]
    )
    async with secured(client, FileStore(tmp_path / "sessions"), agent) as sessions:
        session = await sessions.open(f"talk-{uuid.uuid4().hex}", agent="agent")
        run = await session.run("read it")
        said = await run
        assert [len(message.text) for message in said if message.role == "tool_result"] == [LARGE]
        assert said[-1].text == str(LARGE)
        size = 0
        async for events in histories(client, workflow_id(session.id)):
            size += sum(event.ByteSize() for event in events)
    assert size < 30_000
    [log] = (tmp_path / "sessions").iterdir()
    assert log.stat().st_size > LARGE
    files = [path for path in (tmp_path / "payloads").rglob("*") if path.is_file()]
    assert all(b"xxxxxxxx" not in path.read_bytes() for path in files) == (keys is not None)


async def test_an_input_of_many_megabytes_is_one_command(
    server: DevServer, secured: Serving, tmp_path: Path
) -> None:
    """Also where the workflow continues as new with it, in the middle of the run."""
    client = client_with(server, tmp_path / "payloads")
    agent = scripted(lambda messages: f"{len(messages[-1].text):,}")
    async with secured(client, FileStore(tmp_path / "sessions"), agent) as sessions:
        session = await sessions.open(f"talk-{uuid.uuid4().hex}", agent="agent")
        first, second = [await session.run("y" * 5_000_000) for _ in range(2)]
        assert [(await run)[-1].text for run in (first, second)] == ["5,000,000"] * 2
        await session.append("z" * 3_000_000)
        with pytest.raises(CommandTooLargeError, match="the engine carries 32,000,000"):
            await session.run("y" * MAX_LARGE_BYTES)


async def test_markup_is_as_quick_as_other_text_and_a_step_may_take_its_time(
    server: DevServer, secured: Serving, tmp_path: Path
) -> None:
    """Each `<` is six bytes in a log, which a workflow's thread writes, and the SDK takes a step of
    more than two seconds for a hang unless told otherwise.
    """
    markup = "<p>&amp;</p>\n" * 400_000
    client = client_with(server, tmp_path / "payloads")
    agent = scripted(lambda messages: f"{len(messages[-1].text):,}")
    store = FileStore(tmp_path / "sessions")
    async with secured(client, store, agent) as sessions:
        session = await sessions.open(f"talk-{uuid.uuid4().hex}", agent="agent")
        assert (await (await session.run(markup)))[-1].text == f"{len(markup):,}"
    for connected, seconds in ((client, STEP_SECONDS), (server.client, 2)):
        worker = build_worker(connected, agents=[agent], store=store, task_queue="unused")
        inner = worker._workflow_worker
        assert inner is not None

        async def has_so_much_time() -> bool:
            return inner._deadlock_timeout_seconds == seconds  # noqa: B023 - asked at once

        async with worker:
            await until(has_so_much_time)


async def test_without_it_the_limits_are_as_before(
    server: DevServer, secured: Serving, tmp_path: Path
) -> None:
    agent = scripted([call("read_all")], lambda messages: messages[-1].text, tools=[read_all])
    async with secured(server.client, FileStore(tmp_path / "sessions"), agent) as sessions:
        session = await sessions.open(f"talk-{uuid.uuid4().hex}", agent="agent")
        with pytest.raises(CommandTooLargeError, match="the engine carries 1,500,000"):
            await session.run("y" * 2_000_000)
        said = (await (await session.run("read it")))[-1].text
    assert said.startswith("the result is 20,0")
    assert said.endswith("ask for less than 1,000,000 bytes")


async def test_a_session_takes_large_commands_once_a_client_opened_it_that_sends_them(
    server: DevServer, secured: Serving, tmp_path: Path
) -> None:
    store, queue = FileStore(tmp_path / "sessions"), f"test-{uuid.uuid4().hex}"
    session_id = f"talk-{uuid.uuid4().hex}"
    async with secured(server.client, store, echo(), task_queue=queue) as sessions:
        await sessions.open(session_id, agent="agent")
    client = client_with(server, tmp_path / "payloads")
    async with secured(client, store, echo(), task_queue=queue) as sessions:
        session = await sessions.open(session_id)
        await session.append("z" * (MAX_COMMAND_BYTES + 1))
    assert len(await session.entries()) == 1


async def test_a_payload_that_is_gone_is_named_with_what_to_do(tmp_path: Path) -> None:
    files = PayloadFiles(tmp_path)
    [claim] = await files.store(StorageDriverStoreContext(), [Payload(data=b"x" * 10)])
    name = claim.claim_data["file"]
    (tmp_path / name).write_bytes(b"damaged")
    with pytest.raises(StoreError, match="is not what was stored"):
        await files.retrieve(StorageDriverRetrieveContext(), [claim])
    (tmp_path / name).unlink()
    with pytest.raises(StoreError, match="all workers and clients need the same folder"):
        await files.retrieve(StorageDriverRetrieveContext(), [claim])


@pytest.mark.parametrize("name", ["../outside", "/etc/passwd", "a/../../outside", ""])
async def test_no_reference_leads_out_of_the_folder(tmp_path: Path, name: str) -> None:
    (tmp_path / "outside").write_bytes(b"secret")
    files = PayloadFiles(tmp_path / "payloads")
    with pytest.raises(StoreError):
        await files.retrieve(StorageDriverRetrieveContext(), [StorageDriverClaim({"file": name})])


@pytest.mark.parametrize("workflow", ["session:a%2Fb", "../../x", "..", "x" * 900, "", "数据"])
async def test_any_workflow_has_a_folder_inside(tmp_path: Path, workflow: str) -> None:
    files = PayloadFiles(tmp_path)
    target = StorageDriverWorkflowInfo(namespace="default", id=workflow)
    [claim] = await files.store(StorageDriverStoreContext(target=target), [Payload(data=b"x")])
    assert claim.claim_data["file"].startswith("default/")
    assert [payload.data for payload in await files.retrieve(_NONE, [claim])] == [b"x"]
    assert len([path for path in tmp_path.rglob("*") if path.is_file()]) == 1


_NONE = StorageDriverRetrieveContext()


def test_a_place_is_files_or_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert external_storage() is None
    monkeypatch.setenv("PERDURE_PAYLOADS", f"files:{tmp_path}")
    storage = external_storage()
    assert storage is not None
    assert repr(storage.drivers[0]) == f"PayloadFiles('{tmp_path}')"
    with pytest.raises(StoreError, match="'s3' is no place for payloads; name it as files:DIR"):
        external_storage("s3://secret-bucket")
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match="is not a folder"):
        external_storage(f"files:{tmp_path}/file")


async def test_a_full_disk_fails_the_step_and_it_goes_on_when_there_is_room(
    server: DevServer, secured: Serving, tmp_path: Path
) -> None:
    """A folder that cannot be made stands for a disk that takes nothing."""
    payloads = tmp_path / "payloads"
    client = client_with(server, payloads)
    async with secured(client, FileStore(tmp_path / "sessions"), echo()) as sessions:
        session = await sessions.open(f"talk-{uuid.uuid4().hex}", agent="agent")
        payloads.write_text("in the way")
        with pytest.raises(StoreError, match="a payload cannot be kept in"):
            await session.append("z" * 500_000)
        payloads.unlink()
        await session.append("z" * 500_000)
    assert len(await session.entries()) == 1


async def test_what_no_history_needs_is_cleaned_up_and_the_rest_stays(
    server: DevServer, secured: Serving, tmp_path: Path
) -> None:
    payloads = tmp_path / "payloads"
    client = client_with(server, payloads)
    files = PayloadFiles(payloads)
    async with secured(client, FileStore(tmp_path / "sessions"), echo()) as sessions:
        session = await sessions.open(f"talk-{uuid.uuid4().hex}", agent="agent")
        await session.append("z" * 500_000)
        needed = {path for path in payloads.rglob("*") if path.is_file()}
        assert needed
        here = StorageDriverWorkflowInfo(namespace="default", id=workflow_id(session.id))
        gone = StorageDriverWorkflowInfo(namespace="default", id="session:long-gone")
        other = StorageDriverWorkflowInfo(namespace="elsewhere", id="session:x")
        old: list[Path] = []
        for target in (here, gone, other):
            claims = await files.store(
                StorageDriverStoreContext(target=target), [Payload(data=uuid.uuid4().bytes)]
            )
            old.append(payloads / claims[0].claim_data["file"])
            os.utime(old[-1], (time.time() - 10**6,) * 2)
        [young] = await files.store(
            StorageDriverStoreContext(target=gone), [Payload(data=b"under way")]
        )
        report = await clean_payloads(client, PayloadFiles(payloads))
        assert (report.removed, report.kept) == (2, len(needed) + 1)
        assert not old[0].exists()
        assert not old[1].exists()
        assert old[2].exists()
        assert all(path.exists() for path in needed)
        assert (payloads / young.claim_data["file"]).exists()
        assert await session.entries()
