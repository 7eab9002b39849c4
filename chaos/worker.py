"""A worker process that is to be killed: `python -m chaos.worker ADDRESS FOLDER WHO`."""

from __future__ import annotations

import asyncio
import logging
import sys
from datetime import timedelta
from pathlib import Path

from chaos.journal import Journal
from chaos.model import NotedModel
from chaos.server import connected
from chaos.store import FailingStore, spoil_the_disk
from chaos.tools import make_tools
from chaos.weather import Forecast
from perdure.agent import Agent
from perdure.process_end import leave
from perdure.stores import FileStore
from perdure.worker import serve

AGENT = "noted"
QUEUE = "chaos"


async def _serve(address: str, folder: Path, who: str) -> None:
    journal = Journal(folder / "journals", who)
    forecast = Forecast(folder)
    spoil_the_disk(forecast, journal)
    store = FailingStore(FileStore(folder / "sessions"), forecast, journal)
    agent = Agent(
        AGENT,
        model=NotedModel(forecast, journal),
        tools=make_tools(journal),
        compact_at_tokens=400,
    )
    client = await connected(address, identity=who)
    journal.note("worker serves")
    await serve([agent], store, client=client, task_queue=QUEUE, grace=timedelta(seconds=3))
    journal.note("worker ends")


def main() -> None:
    """Serve until told to stop, or killed."""
    address, folder, who = sys.argv[1:]
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(message)s")
    asyncio.run(_serve(address, Path(folder), who))
    leave(0)


if __name__ == "__main__":
    main()
