"""`perdure worker`."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from collections.abc import Sequence
from dataclasses import dataclass

from perdure import names
from perdure.agent import Agent
from perdure.agent_loading import load_agents
from perdure.cli.failures import INTERRUPTED
from perdure.deployments import given_deployment
from perdure.errors import AgentError
from perdure.liveness import given_alive_file
from perdure.stores import DEFAULT_STORE, open_store
from perdure.tenant import given_tenant
from perdure.ui_text import given_ui_text
from perdure.worker import given_grace, serve


@dataclass(frozen=True, slots=True)
class Serving:
    """What the command line says of a worker; the environment is asked for what is missing."""

    store: str | None = None
    task_queue: str | None = None
    tenant: str | None = None
    payloads: str | None = None
    deployment: str | None = None
    build_id: str | None = None
    versioning: str | None = None
    grace: float | None = None
    otel: bool | None = None
    ui_text: bool | None = None


def serve_agents(agents: Sequence[str], given: Serving) -> int:
    """Serve until told to stop; answer with the exit status.

    Raises AgentError, StoreError, EncryptionError, TenantError or ServerError when it cannot start.
    """
    spec = ",".join(agents) or os.environ.get("PERDURE_AGENTS", "")
    if not spec:
        raise AgentError(
            "no agents to serve; name them (perdure worker support:agent) or set PERDURE_AGENTS"
        )
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    told = asyncio.run(_serve(load_agents(spec), given))
    return INTERRUPTED if told == signal.SIGINT else 0


async def _serve(agents: Sequence[Agent], given: Serving) -> signal.Signals:
    store = open_store(given.store or os.environ.get("PERDURE_STORE", DEFAULT_STORE))
    tenant = given_tenant(given.tenant)
    deployment = given_deployment(given.deployment, given.build_id, given.versioning)
    grace = given_grace(given.grace)
    return await serve(
        agents,
        store,
        task_queue=given.task_queue or os.environ.get("PERDURE_TASK_QUEUE", names.TASK_QUEUE),
        payloads=given.payloads,
        tenant=tenant,
        deployment=deployment,
        grace=grace,
        alive_file=given_alive_file(),
        otel=given.otel,
        ui_text=given_ui_text(given.ui_text),
    )
