"""A worker in a process of its own, to be killed: perdure's worker with its default settings.

It says `ready` when it serves, and `calling` whenever its model is called, one line each.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from temporalio.client import Client

from benchmarks.conversation import ANSWER, InstantModel, said
from perdure import Agent, Message
from perdure.models.protocol import ModelRequest, OnDelta
from perdure.stores import FileStore
from perdure.worker import build_worker


@dataclass(frozen=True, slots=True)
class WorkerProcess:
    """A running worker process."""

    process: asyncio.subprocess.Process

    @classmethod
    @asynccontextmanager
    async def start(
        cls, address: str, folder: str, *, call_seconds: float = 0.0
    ) -> AsyncIterator[WorkerProcess]:
        """A worker that serves, with a model that takes so many seconds. It is killed at the end
        of the block, if it still runs.
        """
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "benchmarks.worker_process"),
            *(address, folder, str(call_seconds)),
            stdout=asyncio.subprocess.PIPE,
        )
        worker = cls(process)
        try:
            await worker.says("ready")
            yield worker
        finally:
            if process.returncode is None:
                await worker.kill()

    async def says(self, word: str) -> None:
        """Wait until it says so."""
        assert self.process.stdout is not None
        while (line := await self.process.stdout.readline()).decode().strip() != word:
            if not line:
                raise RuntimeError(f"a worker process ended before it said {word!r}")

    async def kill(self) -> None:
        """End it as a power cut would."""
        self.process.kill()
        await self.process.wait()

    async def stop(self) -> None:
        """Ask it to end, and wait until it has."""
        self.process.terminate()
        await self.process.wait()


class AnnouncingModel(InstantModel):
    """Says on standard output that it is called."""

    async def respond(self, request: ModelRequest, on_delta: OnDelta | None = None) -> Message:
        """See `LanguageModel`."""
        print("calling", flush=True)
        return await super().respond(request, on_delta)


async def _serve(address: str, folder: str, call_seconds: float) -> None:
    model = AnnouncingModel(lambda request: said(ANSWER), call_seconds)
    client = await Client.connect(address)
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    async with build_worker(client, agents=[Agent("talker", model=model)], store=FileStore(folder)):
        print("ready", flush=True)
        await stop.wait()


if __name__ == "__main__":
    asyncio.run(_serve(sys.argv[1], sys.argv[2], float(sys.argv[3])))
