"""One server, one worker and one client for perdure and for the yardstick alike, so that both meet
the same conditions.
"""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from temporalio.client import Client
from temporalio.worker import Worker

from benchmarks.bare import BareTurns, bare_activities
from perdure import Agent, Sessions
from perdure.dev_server import dev_server
from perdure.plugin import PerdurePlugin
from perdure.stores import FileStore

TASK_QUEUE = "benchmarks"


@asynccontextmanager
async def serving(*agents: Agent, **options: Any) -> AsyncIterator[Sessions]:
    """Sessions in files, on a server of their own, with a worker for the agents and the bare
    workflow. The options are those of `Sessions`.
    """
    async with dev_server(search_attributes=False) as server:
        with tempfile.TemporaryDirectory(prefix="perdure-bench-") as folder:
            store = FileStore(Path(folder))
            async with _worker(server.client, store, agents):
                yield Sessions(server.client, store, task_queue=TASK_QUEUE, **options)


def _worker(client: Client, store: FileStore, agents: Sequence[Agent]) -> Worker:
    return Worker(
        client,
        task_queue=TASK_QUEUE,
        workflows=[BareTurns],
        activities=bare_activities(store.root),
        plugins=[PerdurePlugin(agents=agents, store=store)],
    )
