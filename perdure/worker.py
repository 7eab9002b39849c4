"""A worker process: it serves agents until it is told to stop."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from collections.abc import Sequence
from datetime import timedelta

from temporalio.client import Client
from temporalio.worker import Worker

from perdure import names
from perdure.agent import Agent
from perdure.agent_loading import load_agents
from perdure.client import connect_client
from perdure.errors import AgentError, ServerError
from perdure.lifecycle import Publisher
from perdure.plugin import PerdurePlugin
from perdure.stores import DEFAULT_STORE, open_store
from perdure.stores.contract import Store

GRACE = timedelta(seconds=30)
"""How long activities may go on after the worker was told to stop."""

logger = logging.getLogger("perdure.worker")


def build_worker(
    client: Client,
    *,
    agents: Sequence[Agent],
    store: Store | str,
    task_queue: str = names.TASK_QUEUE,
    publisher: Publisher | None = None,
) -> Worker:
    """A worker that serves the agents over the store. Run it with `async with worker` or `await
    worker.run()`.
    """
    return Worker(
        client,
        task_queue=task_queue,
        plugins=[PerdurePlugin(agents=agents, store=store, publisher=publisher)],
        graceful_shutdown_timeout=GRACE,
    )


async def serve(
    agents: Sequence[Agent],
    store: Store | str,
    *,
    task_queue: str = names.TASK_QUEUE,
    client: Client | None = None,
) -> signal.Signals:
    """Connect, unless a client is given, and serve until SIGTERM or SIGINT; then let running steps
    finish, and answer with the signal. A second signal ends the process at once.

    Raises ServerError when the server cannot be reached, or refuses the worker.
    """
    client = client or await connect_client()
    told = _next_signal()
    try:
        async with build_worker(client, agents=agents, store=store, task_queue=task_queue):
            served = ", ".join(agent.name for agent in agents) or "no agent"
            logger.info("serving %s on task queue %r", served, task_queue)
            stopped_by = await told
            logger.info("stopping: running steps may finish, at most %s", GRACE)
    except RuntimeError as error:  # the SDK's: the server refused the worker
        reason = str(error).partition(": Status {")[0]
        raise ServerError(f"cannot serve namespace {client.namespace!r}: {reason}") from error
    return stopped_by


def _next_signal() -> asyncio.Future[signal.Signals]:
    loop = asyncio.get_running_loop()
    told: asyncio.Future[signal.Signals] = loop.create_future()

    def tell(number: signal.Signals) -> None:
        for each in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(each)
        told.set_result(number)

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, tell, number)
    return told


async def serve_from_environment() -> None:
    """Serve what PERDURE_AGENTS names (`module:attribute`, several by commas) over PERDURE_STORE.

    Raises AgentError when PERDURE_AGENTS is missing or names no agent, StoreError for a store that
    cannot be opened.
    """
    spec = os.environ.get("PERDURE_AGENTS", "")
    if not spec:
        raise AgentError("no agents: set PERDURE_AGENTS, for example PERDURE_AGENTS=support:agent")
    store = open_store(os.environ.get("PERDURE_STORE", DEFAULT_STORE))
    task_queue = os.environ.get("PERDURE_TASK_QUEUE", names.TASK_QUEUE)
    await serve(load_agents(spec), store, task_queue=task_queue)
