"""A Temporal server that is killed and started again: the same database, the same port."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path

from temporalio.client import Client

from chaos.processes import ChildProcess
from perdure.dev_server import NAMESPACE, free_port, server_command

_START_TIMEOUT = 60.0


class TemporalServer(ChildProcess):
    """The server of a run, with its database in a file of the folder."""

    def __init__(self, folder: Path) -> None:
        port = free_port()
        self.address = f"127.0.0.1:{port}"
        self.database = folder / "temporal.db"
        super().__init__(server_command(port, None, self.database), folder / "server.log")

    async def start(self) -> None:
        """Start it, and wait until it answers."""
        await super().start()
        await self.connect()

    async def connect(self) -> Client:
        """A client of it, as soon as it answers. Raises RuntimeError when it does not for long."""
        deadline = time.monotonic() + _START_TIMEOUT
        return await connected(self.address, while_=lambda: time.monotonic() < deadline)


async def connected(
    address: str, *, identity: str = "", while_: Callable[[], bool] = lambda: True
) -> Client:
    """A client, however often the server goes down before there is one. Raises the SDK's
    RuntimeError when it may not be tried again.
    """
    while True:
        try:
            return await Client.connect(address, namespace=NAMESPACE, identity=identity or None)
        except RuntimeError:
            if not while_():
                raise
        await asyncio.sleep(0.1)
