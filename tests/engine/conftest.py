"""Workers on queues of their own, and the replay of what happened there."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from temporalio.api.enums.v1.event_type_pb2 import EVENT_TYPE_WORKFLOW_TASK_COMPLETED
from temporalio.client import Client
from temporalio.service import RPCError
from temporalio.worker import Replayer

from perdure import Agent, PerdurePlugin, Sessions
from perdure.dev_server import DevServer
from perdure.stores import FileStore, MemoryStore
from perdure.stores.contract import Store
from perdure.worker import build_worker

Serving = Callable[..., AbstractAsyncContextManager[Sessions]]


async def replay_all(client: Client, task_queue: str) -> None:
    """Replay what happened on a task queue; raises when the workflow would decide otherwise."""
    replayer = Replayer(workflows=[], plugins=[PerdurePlugin(agents=[], store=MemoryStore())])
    async for execution in client.list_workflows(f'TaskQueue = "{task_queue}"'):
        handle = client.get_workflow_handle(execution.id, run_id=execution.run_id)
        history = await handle.fetch_history()
        if any(event.event_type == EVENT_TYPE_WORKFLOW_TASK_COMPLETED for event in history.events):
            await replayer.replay_workflow(history)  # which waits for ever for a first step


async def terminate_all(client: Client, task_queue: str) -> None:
    """End the sessions of a task queue that nobody serves any more."""
    query = f'TaskQueue = "{task_queue}" AND ExecutionStatus = "Running"'
    async for execution in client.list_workflows(query):
        with contextlib.suppress(RPCError):  # it has ended meanwhile
            await client.get_workflow_handle(execution.id).terminate()


@pytest.fixture
def store(tmp_path: Path) -> FileStore:
    return FileStore(tmp_path / "sessions")


@pytest.fixture
def serving(server: DevServer, store: FileStore) -> Serving:
    """`async with serving(agent) as sessions`: a worker that serves the agents, and a client.

    Afterwards every history that came about is replayed with an empty cache.
    """

    @asynccontextmanager
    async def serve(
        *agents: Agent,
        over: Store = store,
        task_queue: str = "",
        ui_text: bool | None = None,
        **options: Any,
    ) -> AsyncIterator[Sessions]:
        queue = task_queue or f"test-{uuid.uuid4().hex}"
        async with build_worker(
            server.client, agents=agents, store=over, task_queue=queue, ui_text=ui_text
        ):
            yield Sessions(server.client, over, task_queue=queue, **options)
        await replay_all(server.client, queue)
        if not task_queue:  # a test that names the queue may serve it again
            await terminate_all(server.client, queue)  # another test may use their IDs

    return serve
