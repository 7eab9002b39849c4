"""A real Temporal server for the tests, and workers on queues of their own."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest

from perdure import Agent, Sessions
from perdure.dev_server import DevServer, dev_server
from perdure.stores import FileStore
from perdure.stores.contract import Store
from perdure.worker import build_worker

Serving = Callable[..., AbstractAsyncContextManager[Sessions]]


@pytest.fixture(scope="session")
async def server() -> AsyncIterator[DevServer]:
    async with dev_server() as running:
        yield running


@pytest.fixture
def store(tmp_path: Path) -> FileStore:
    return FileStore(tmp_path / "sessions")


@pytest.fixture
def serving(server: DevServer, store: FileStore) -> Serving:
    """`async with serving(agent) as sessions`: a worker that serves the agents, and a client on
    its queue.
    """

    @asynccontextmanager
    async def serve(
        *agents: Agent, over: Store = store, task_queue: str = "", **options: int
    ) -> AsyncIterator[Sessions]:
        queue = task_queue or f"test-{uuid.uuid4().hex}"
        async with build_worker(server.client, agents=agents, store=over, task_queue=queue):
            yield Sessions(server.client, over, task_queue=queue, **options)

    return serve
