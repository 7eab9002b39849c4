"""A worker process: it serves agents until it is told to stop."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from temporalio.client import Client
from temporalio.worker import Worker, WorkerDeploymentConfig

from perdure import names
from perdure.agent import Agent
from perdure.agent_loading import load_agents
from perdure.client import connect_client
from perdure.deployments import given_deployment
from perdure.errors import AgentError, ServerError
from perdure.lifecycle import Publisher
from perdure.liveness import given_alive_file, telling_alive
from perdure.plugin import PerdurePlugin
from perdure.stores import DEFAULT_STORE, open_store
from perdure.stores.contract import Store
from perdure.telemetry import telemetry
from perdure.tenant import given_tenant, tenant_queue

if TYPE_CHECKING:
    from perdure.telemetry.core_metrics import CoreMetrics

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
    tenant: str | None = None,
    deployment: WorkerDeploymentConfig | None = None,
    grace: timedelta = GRACE,
    otel: bool | None = None,
    ui_text: bool | None = None,
) -> Worker:
    """A worker that serves the agents over the store. Run it with `async with worker` or `await
    worker.run()`.

    With a `tenant`, or PERDURE_TENANT, its sessions are that tenant's, on the tenant's own task
    queue of that name. With a `deployment` it is versioned, see `perdure.deployments`. `grace` is
    how long running steps may take when it is told to stop. `otel` and `ui_text` are as
    `PerdurePlugin` has them.
    """
    tenant = given_tenant(tenant)
    return Worker(
        client,
        task_queue=tenant_queue(task_queue, tenant),
        plugins=[
            PerdurePlugin(
                agents=agents,
                store=store,
                publisher=publisher,
                tenant=tenant,
                otel=otel,
                ui_text=ui_text,
            )
        ],
        graceful_shutdown_timeout=grace,
        deployment_config=deployment,
    )


async def serve(
    agents: Sequence[Agent],
    store: Store | str,
    *,
    task_queue: str = names.TASK_QUEUE,
    client: Client | None = None,
    tenant: str | None = None,
    deployment: WorkerDeploymentConfig | None = None,
    grace: timedelta = GRACE,
    alive_file: Path | None = None,
    payloads: str | None = None,
    otel: bool | None = None,
    ui_text: bool | None = None,
    when_serving: Callable[[], None] | None = None,
) -> signal.Signals:
    """Connect, unless a client is given, and serve until SIGTERM or SIGINT; then let running steps
    finish, and answer with the signal. A second signal ends the process at once.

    `tenant`, `deployment`, `grace` and `ui_text` are as `build_worker` has them, `payloads` is as
    `connect_client` has it. The `alive_file` is renewed as long as the worker runs and reaches the
    server, see `perdure.liveness`. With `otel`, or PERDURE_OTEL, the worker tells OpenTelemetry
    what it does; where it connects by itself, Temporal's own metrics are told, too. `when_serving`
    is called once the worker serves.

    Raises ServerError when the server cannot be reached, or refuses the worker.
    """
    core = None if client is not None else _core_metrics(otel)
    client = client or await connect_client(
        payloads=payloads, runtime=None if core is None else core.runtime
    )
    told = _next_signal()
    worker = build_worker(
        client,
        agents=agents,
        store=store,
        task_queue=task_queue,
        tenant=tenant,
        deployment=deployment,
        grace=grace,
        otel=otel,
        ui_text=ui_text,
    )
    try:
        async with (
            nullcontext() if core is None else core.exported(),
            worker,
            telling_alive(client, alive_file),
        ):
            served = ", ".join(agent.name for agent in agents) or "no agent"
            logger.info("serving %s on task queue %r%s", served, worker.task_queue, _as(deployment))
            if when_serving is not None:
                when_serving()
            stopped_by = await told
            logger.info("stopping: running steps may finish, at most %s", grace)
    except RuntimeError as error:  # the SDK's: the server refused the worker
        reason = str(error).partition(": Status {")[0]
        raise ServerError(f"cannot serve namespace {client.namespace!r}: {reason}") from error
    return stopped_by


def _core_metrics(otel: bool | None) -> CoreMetrics | None:
    found = telemetry(otel)
    if found is None:
        return None
    from perdure.telemetry.core_metrics import CoreMetrics

    return CoreMetrics(found)


def _as(deployment: WorkerDeploymentConfig | None) -> str:
    return f" as {deployment.version.to_canonical_string()}" if deployment is not None else ""


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
    await serve(
        load_agents(spec),
        store,
        task_queue=os.environ.get("PERDURE_TASK_QUEUE", names.TASK_QUEUE),
        deployment=given_deployment(),
        grace=given_grace(),
        alive_file=given_alive_file(),
    )


def given_grace(seconds: float | None = None) -> timedelta:
    """How long running steps may take: so many seconds, or as PERDURE_GRACE says, or 30. Raises
    ServerError for what is no number of seconds.
    """
    text = os.environ.get("PERDURE_GRACE", "") if seconds is None else str(seconds)
    if not text:
        return GRACE
    try:
        grace = timedelta(seconds=float(text))
    except (ValueError, OverflowError):
        grace = timedelta(seconds=-1)
    if grace < timedelta():
        raise ServerError(f"{text!r} is no time for running steps to finish; give seconds")
    return grace
