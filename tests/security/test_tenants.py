"""Tenants in one namespace and one store see nothing of each other."""

from __future__ import annotations

import uuid
from itertools import count
from pathlib import Path

import pytest

from perdure import (
    InvalidSessionIdError,
    SessionExistsError,
    SessionNotFoundError,
    Sessions,
    TenantError,
    text,
)
from perdure.dev_server import DevServer
from perdure.session_id import session_id_of, tenant_of, workflow_id
from perdure.stores import FileStore, MemoryStore, TenantStore, in_tenant
from perdure.testing import check_store
from perdure.worker import build_worker
from tests.engine.agents import echo, texts
from tests.security.conftest import Serving

CRAFTED = [
    "globex:x",
    "../globex/x",
    "%3Aglobex",
    ":x",
    "x@b",
    "session:globex:x",
    "acme:x",
    "acme%3Ax",
]


async def test_a_tenants_part_of_a_store_keeps_the_contract(tmp_path: Path) -> None:
    await check_store(lambda: TenantStore(MemoryStore(), "acme"))
    number = count()
    await check_store(lambda: TenantStore(FileStore(tmp_path / str(next(number))), "acme"))


@pytest.mark.parametrize("crafted", CRAFTED)
async def test_no_id_leads_into_another_tenants_part(crafted: str, tmp_path: Path) -> None:
    shared = FileStore(tmp_path)
    acme, globex = TenantStore(shared, "acme"), TenantStore(shared, "globex")
    await globex.create_session("x")
    await globex.append_entries("x", [text("secret").with_header(id="e1")])
    await acme.create_session(crafted)
    assert await acme.load_entries(crafted) == []
    with pytest.raises(SessionNotFoundError, match=r"session 'x'"):
        await acme.load_entries("x")
    assert workflow_id(crafted, tenant="acme") not in {
        workflow_id("x", tenant="globex"),
        workflow_id(crafted),
        workflow_id("x"),
    }


@pytest.mark.parametrize("session_id", ["x", "a:b", "acme:x", "org/team@example.com", "数据", ".."])
@pytest.mark.parametrize("instance", ["", "b", "acme:b"])
def test_a_workflow_id_tells_tenant_and_session(session_id: str, instance: str) -> None:
    plain = workflow_id(session_id, instance)
    owned = workflow_id(session_id, instance, tenant="acme")
    assert owned == plain.replace("session:", "session:acme:", 1)
    assert (tenant_of(plain), tenant_of(owned)) == ("", "acme")
    assert session_id_of(plain) == session_id_of(owned, tenant="acme") == session_id
    for name, tenant in ((owned, ""), (plain, "acme"), (owned, "ac"), (owned, "globex")):
        with pytest.raises(InvalidSessionIdError):
            session_id_of(name, tenant=tenant)


@pytest.mark.parametrize("name", ["A", "a:b", "a/b", "-a", ".", "a b", "a\n", "é", "a" * 64])
def test_what_cannot_name_a_tenant_is_refused(name: str) -> None:
    with pytest.raises(TenantError, match="cannot name a tenant"):
        TenantStore(MemoryStore(), name)


async def test_records_and_errors_are_in_the_tenants_words(tmp_path: Path) -> None:
    shared = FileStore(tmp_path)
    acme = TenantStore(shared, "acme")
    await acme.create_session("x")
    await acme.create_session("y", "x")
    record = await acme.load_session("y")
    assert (record.id, record.parent_id) == ("y", "x")
    assert (await shared.load_session("acme:y")).parent_id == "acme:x"
    with pytest.raises(SessionExistsError, match="session 'y' exists"):
        await acme.create_session("y")
    with pytest.raises(InvalidSessionIdError, match=r"session ID 'xxx.*too long, with the tenant"):
        await acme.create_session("x" * 248)


def test_a_store_is_one_tenants_part_only() -> None:
    store = MemoryStore()
    acme = in_tenant(store, "acme")
    assert in_tenant(store, "") is store
    assert in_tenant(acme, "acme") is acme
    with pytest.raises(TenantError, match="that of tenant 'acme', not 'globex'"):
        in_tenant(acme, "globex")


async def test_two_tenants_have_sessions_of_one_id_side_by_side(
    server: DevServer, secured: Serving, tmp_path: Path
) -> None:
    shared, queue = FileStore(tmp_path), f"test-{uuid.uuid4().hex}"
    session_id = f"talk-{uuid.uuid4().hex}"
    async with (
        secured(server.client, shared, echo(), task_queue=queue, tenant="acme") as acme,
        secured(server.client, shared, echo(), task_queue=queue, tenant="globex") as globex,
    ):
        assert (acme.task_queue, globex.task_queue) == (f"acme:{queue}", f"globex:{queue}")
        for sessions, said in ((acme, "from acme"), (globex, "from globex")):
            session = await sessions.open(session_id, agent="agent")
            await (await session.run(said))
            assert session.id == (await session.status()).session_id == session_id
            fork = await session.fork(f"{session_id}-fork")
            assert fork.id == f"{session_id}-fork"
            assert texts(await fork.entries())[0] == said
            await (await fork.run("again"))
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {
        f"{tenant}:{session_id}{suffix}.jsonl"
        for tenant in ("acme", "globex")
        for suffix in ("", "-fork")
    }


async def test_a_worker_refuses_the_sessions_of_another_tenant(
    server: DevServer, tmp_path: Path
) -> None:
    queue = f"test-{uuid.uuid4().hex}"
    worker = build_worker(
        server.client, agents=[echo()], store=FileStore(tmp_path), task_queue=queue, tenant="acme"
    )
    async with worker:
        stray = Sessions(server.client, FileStore(tmp_path), task_queue=f"acme:{queue}", tenant="")
        with pytest.raises(TenantError, match="of no tenant came to a worker of tenant 'acme'"):
            await stray.open(f"talk-{uuid.uuid4().hex}", agent="agent")
    assert not list(tmp_path.iterdir())


async def test_the_environment_names_the_tenant(
    server: DevServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PERDURE_TENANT", "acme")
    sessions = Sessions(server.client, "memory:", task_queue="q")
    assert (sessions.tenant, sessions.task_queue) == ("acme", "acme:q")
    assert isinstance(sessions.store, TenantStore)
    assert Sessions(server.client, "memory:", tenant="").tenant == ""
    monkeypatch.setenv("PERDURE_TENANT", "Acme Corp")
    with pytest.raises(TenantError):
        Sessions(server.client, "memory:")
