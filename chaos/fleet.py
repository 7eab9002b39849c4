"""The processes of a run: one server, workers, clients; whichever dies is started again."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from chaos.client import Assignment
from chaos.clock import MovableClock, build_clock
from chaos.journal import Journal
from chaos.processes import ChildProcess, python
from chaos.server import TemporalServer

_PATIENCE = 60.0
"""Seconds that a process may take to be there."""


class Place:
    """A process that has to be there: when it ends, another takes its place after a while."""

    def __init__(self, name: str, journal: Journal) -> None:
        self.name = name
        self.pause = 0.5
        """Seconds until another is started."""
        self.struck = asyncio.Lock()
        """Held by what happens to it at the moment."""
        self.process: ChildProcess | None = None
        self.starts = 0
        self._journal = journal
        self._is_present = asyncio.Event()
        self._keeping: asyncio.Task[None] | None = None

    @property
    def is_there(self) -> bool:
        """Whether the process runs, or is frozen."""
        return self.process is not None and self.process.is_alive

    @property
    def there(self) -> ChildProcess:
        """The process that was there last."""
        assert self.process is not None
        return self.process

    async def keep(self, start: Callable[[int], Awaitable[ChildProcess]]) -> None:
        """Start it, and from now on whenever it ends."""
        self.process = await start(self.starts)
        self._is_present.set()
        self._keeping = asyncio.create_task(self._keep(start))

    async def _keep(self, start: Callable[[int], Awaitable[ChildProcess]]) -> None:
        while self.process is not None:
            await self.process.ended()
            self._is_present.clear()
            await asyncio.sleep(self.pause)
            self.pause = 0.5
            self.starts += 1
            self.process = await start(self.starts)
            self._is_present.set()
            self._journal.note("started again", place=self.name, times=self.starts)

    async def release(self) -> ChildProcess:
        """It may end from now on. Returns the one that is there, as soon as there is one again."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._is_present.wait(), _PATIENCE)
        if self._keeping is not None:
            self._keeping.cancel()
        return self.there


@dataclass(frozen=True, slots=True)
class Size:
    """How many of what."""

    workers: int
    clients: int
    sessions: int


class Fleet:
    """All of them, in a folder."""

    def __init__(self, folder: Path, size: Size, seed: int, journal: Journal) -> None:
        self.size = size
        self._folder = folder
        self._seed = seed
        self.session_ids = [f"chaos-{number}" for number in range(size.sessions)]
        self.server = Place("server", journal)
        self.workers = [Place(f"worker-{number}", journal) for number in range(size.workers)]
        self.clients = [Place(f"client-{number}", journal) for number in range(size.clients)]
        library = build_clock(folder)
        self.clocks = [
            MovableClock(library, folder / f"clock-{number}") if library else None
            for number in range(size.clients)
        ]
        self._temporal = TemporalServer(folder)
        self.pause = 0.6
        self.deadline = 60.0

    @property
    def temporal(self) -> TemporalServer:
        """The server."""
        return self._temporal

    async def start(self) -> None:
        """Start everything."""
        await self.server.keep(self._start_server)
        for number, worker in enumerate(self.workers):
            await worker.keep(partial(self._start_worker, number))
        for number, client in enumerate(self.clients):
            await client.keep(partial(self._start_client, number))

    async def end_clients(self) -> bool:
        """Let the clients hear the end of what they began. Whether all did in time."""
        clients = [await client.release() for client in self.clients]
        for client in self.clients:
            # One that has just been started does not listen before it has its journal.
            journal = self._folder / "journals" / f"{client.name}.{client.starts}.jsonl"
            await _appears(journal)
        await asyncio.gather(*(client.terminate(5 * self.deadline) for client in clients))
        return all(client.exit_status == 0 for client in clients)

    async def end(self) -> None:
        """End everything that is left."""
        for place in (*self.clients, *self.workers, self.server):
            if place.process is not None:
                await (await place.release()).kill()

    async def _start_server(self, times: int) -> ChildProcess:
        await self._temporal.start()
        return self._temporal

    async def _start_worker(self, number: int, times: int) -> ChildProcess:
        who = f"worker-{number}.{times}"
        command = python("chaos.worker", self._temporal.address, str(self._folder), who)
        return await _started(ChildProcess(command, self._folder / f"worker-{number}.log"))

    async def _start_client(self, number: int, times: int) -> ChildProcess:
        owned = self.session_ids[number :: self.size.clients]
        visited = self.session_ids[number + 1 :: self.size.clients][:: self.size.clients]
        task = Assignment(
            address=self._temporal.address,
            folder=str(self._folder),
            who=f"client-{number}.{times}",
            number=number,
            incarnation=times,
            seed=self._seed,
            owned=owned,
            visited=[other for other in visited if other not in owned],
            pause=self.pause,
            deadline=self.deadline,
        )
        clock = self.clocks[number]
        return await _started(
            ChildProcess(
                python("chaos.client", task.to_json()),
                self._folder / f"client-{number}.log",
                environment=clock.environment() if clock else None,
            )
        )


async def _appears(file: Path) -> None:
    deadline = time.monotonic() + _PATIENCE
    while not file.exists() and time.monotonic() < deadline:  # noqa: ASYNC110 - another's file
        await asyncio.sleep(0.05)


async def _started(process: ChildProcess) -> ChildProcess:
    await process.start()
    return process
