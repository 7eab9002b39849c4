"""`perdure worker`."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from collections.abc import Sequence

from perdure import names
from perdure.agent_loading import load_agents
from perdure.cli.failures import INTERRUPTED
from perdure.errors import AgentError
from perdure.stores import DEFAULT_STORE, open_store
from perdure.worker import serve


def serve_agents(agents: Sequence[str], *, store: str | None, task_queue: str | None) -> int:
    """Serve until told to stop; answer with the exit status.

    Raises AgentError, StoreError or ServerError when it cannot start.
    """
    spec = ",".join(agents) or os.environ.get("PERDURE_AGENTS", "")
    if not spec:
        raise AgentError(
            "no agents to serve; name them (perdure worker support:agent) or set PERDURE_AGENTS"
        )
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    told = asyncio.run(
        serve(
            load_agents(spec),
            open_store(store or os.environ.get("PERDURE_STORE", DEFAULT_STORE)),
            task_queue=task_queue or os.environ.get("PERDURE_TASK_QUEUE", names.TASK_QUEUE),
        )
    )
    return INTERRUPTED if told == signal.SIGINT else 0
