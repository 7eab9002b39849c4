"""Keys, and clients that have them."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import pytest
from temporalio.client import Client
from temporalio.converter import ExternalStorage
from temporalio.worker import Replayer

from perdure import Agent, PerdurePlugin, Sessions
from perdure.data_conversion import data_converter
from perdure.dev_server import DevServer
from perdure.encryption import Keys
from perdure.stores import MemoryStore
from perdure.stores.contract import Store
from perdure.worker import build_worker

OLD = bytes(range(32))
NEW = bytes(range(100, 132))

Connecting = Callable[..., Client]
Serving = Callable[..., AbstractAsyncContextManager[Sessions]]


@pytest.fixture
def keys() -> Keys:
    return Keys({"k1": OLD})


@pytest.fixture
def connecting(server: DevServer) -> Connecting:
    """`connecting(keys)`: a client of the server as `connect_client` would make it."""

    def connect(keys: Keys | None = None, payloads: str | ExternalStorage = "") -> Client:
        config = server.client.config()
        config["data_converter"] = data_converter(keys=keys, payloads=payloads)
        return Client(**config)

    return connect


@pytest.fixture
def secured() -> Serving:
    """`async with secured(client, store, agent) as sessions`: a worker and a client, both over this
    connection. Afterwards what happened is replayed with an empty cache.
    """

    @asynccontextmanager
    async def serve(
        client: Client, store: Store, *agents: Agent, task_queue: str = "", **options: Any
    ) -> AsyncIterator[Sessions]:
        queue = task_queue or f"test-{uuid.uuid4().hex}"
        async with build_worker(client, agents=agents, store=store, task_queue=queue, **options):
            sessions = Sessions(client, store, task_queue=queue, tenant=options.get("tenant"))
            yield sessions
        await replayed(client, sessions.task_queue)

    return serve


async def replayed(client: Client, task_queue: str) -> None:
    """Replay what happened on a task queue; raises when the workflow would decide otherwise."""
    replayer = Replayer(
        workflows=[],
        plugins=[PerdurePlugin(agents=[], store=MemoryStore())],
        data_converter=client.data_converter,
    )
    async for execution in client.list_workflows(f'TaskQueue = "{task_queue}"'):
        handle = client.get_workflow_handle(execution.id, run_id=execution.run_id)
        await replayer.replay_workflow(await handle.fetch_history())
