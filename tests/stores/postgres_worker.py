"""A worker process over PostgreSQL: `python -m tests.stores.postgres_worker ADDRESS QUEUE URL`."""

from __future__ import annotations

import asyncio
import sys

from temporalio.client import Client

from perdure.worker import build_worker
from tests.engine.stepping_worker import stepping_agent

STEPS = 12


async def main(address: str, task_queue: str, url: str) -> None:
    client = await Client.connect(address)
    agents = [stepping_agent(STEPS)]
    async with build_worker(client, agents=agents, store=url, task_queue=task_queue):
        print("ready", flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
