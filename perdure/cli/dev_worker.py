"""The worker process of `perdure dev`: `python -m perdure.cli.dev_worker`. What it serves, the
environment says.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import sys
import threading
import traceback
from collections.abc import Sequence
from typing import Any

from perdure.agent import Agent
from perdure.agent_loading import load_agents
from perdure.cli.dev import REPORT_VARIABLE
from perdure.cli.failures import FAILED
from perdure.cli.place import TASK_QUEUE_VARIABLE
from perdure.errors import PerdureError
from perdure.names import TASK_QUEUE
from perdure.process_end import leave
from perdure.stores import DEFAULT_STORE, open_store
from perdure.worker import given_grace, serve


def main() -> int:
    """Serve until told to stop, or until the one who started us is gone; the exit status."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    for name in ("perdure.worker", "temporalio"):
        logging.getLogger(name).setLevel(logging.WARNING)  # `perdure dev` says how a worker fares
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        agents = load_agents(os.environ["PERDURE_AGENTS"])
        asyncio.run(_serve(agents))
    except PerdureError as error:
        _report({"error": _told(error)})
        return FAILED
    return 0


async def _serve(agents: Sequence[Agent]) -> None:
    await serve(
        agents,
        open_store(os.environ.get("PERDURE_STORE", DEFAULT_STORE)),
        task_queue=os.environ.get(TASK_QUEUE_VARIABLE, TASK_QUEUE),
        grace=given_grace(),
        when_serving=lambda: _report({"agents": [agent.name for agent in agents]}),
    )


def _report(said: dict[str, Any]) -> None:
    with os.fdopen(int(os.environ[REPORT_VARIABLE]), "w") as report:
        report.write(json.dumps(said) + "\n")


def _told(error: PerdureError) -> str:
    """The error; of a source that cannot be imported, where in it, too."""
    cause = error.__cause__
    if cause is None:
        return str(error)
    frames = traceback.extract_tb(cause.__traceback__)
    own = [frame for frame in frames if not _is_machinery(frame.filename)]
    where = "".join(traceback.format_list(own)) if own else ""
    what = "".join(traceback.format_exception_only(cause))
    return f"{error}\n{where}{what}".rstrip()


def _is_machinery(filename: str) -> bool:
    from perdure import agent_loading

    return filename.startswith("<frozen importlib") or filename in (
        agent_loading.__file__,
        sys.modules["importlib"].__file__,
    )


def _end_with_parent() -> None:
    while os.read(0, 4096):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    leave(main())
