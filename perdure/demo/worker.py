"""A worker process of the demo: `python -m perdure.demo.worker FOLDER NUMBER MODEL ADDRESS`.

It ends when it is told to, and when its standard input closes, so it never outlives the demo.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import threading
from pathlib import Path

from temporalio.client import Client

from perdure.demo.agent import demo_agent
from perdure.demo.folder import Folder
from perdure.dev_server import NAMESPACE
from perdure.process_end import leave
from perdure.stores.files import FileStore
from perdure.worker import serve


async def _serve(folder: Folder, number: int, model: str, address: str) -> None:
    agent = demo_agent(folder, model=model, worker=number)
    client = await Client.connect(address, namespace=NAMESPACE, identity=f"demo worker {number}")
    await serve([agent], FileStore(folder.sessions), client=client, tenant="")


def _end_with_the_demo() -> None:
    # Not a shutdown in good order: the server has ended as well, and what was being done is done
    # again by another worker, as after any other death.
    sys.stdin.buffer.read()
    os._exit(1)


def main() -> None:
    """Serve the demo's agent until told to stop."""
    place, number, model, address = sys.argv[1:]
    threading.Thread(target=_end_with_the_demo, name="demo-watch", daemon=True).start()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    asyncio.run(_serve(Folder(Path(place)), int(number), model, address))
    leave(0)


if __name__ == "__main__":
    main()
