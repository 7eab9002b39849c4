"""Many open sessions on one worker for long: what its memory and that of the server come to.

    python -m chaos.load --sessions 1000 --active 64 --turns 23040

Active are those that have a turn in progress at any moment. With a model that takes ten seconds
to answer, 64 of them take 23,040 turns in an hour; here the model answers at once, so that the
same turns take as long as the machine needs for them.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import secrets
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from temporalio.client import Client

from chaos.processes import ChildProcess, processor_seconds, python, resident_bytes
from chaos.server import TemporalServer
from perdure import Agent, Message, ServerError, Session, Sessions
from perdure.models.protocol import ModelRequest, OnDelta
from perdure.stores import FileStore
from perdure.usage import Usage
from perdure.worker import serve

QUESTION = ("Where is the order that I placed on Monday, and when will it be here? " * 3)[:200]
ANSWER = ("It left the warehouse this morning and should be at your door on Thursday. " * 6)[:400]
SAMPLES = 24


@dataclass(frozen=True, slots=True)
class Sample:
    """How large everything is after so many turns; sizes in MB, latency in milliseconds."""

    turns: int
    seconds: float
    worker: float
    server: float
    client: float
    logs: float
    database: float
    median_turn: float
    slowest_turn: float
    asked_again: int
    worker_processor_seconds: float


class PromptModel:
    """Answers at once, and always the same."""

    name = "prompt"

    async def respond(self, request: ModelRequest, on_delta: OnDelta | None = None) -> Message:
        """See `LanguageModel`."""
        return Message(role="assistant", content=ANSWER, usage=Usage(input=1_000, output=100))


@dataclass
class Load:
    """The sessions, and the turns that are taken in them."""

    sessions: list[Session]
    turns: int
    taken: int = 0
    late: int = 0
    done: int = 0
    progress: asyncio.Condition = field(default_factory=asyncio.Condition)
    latencies: list[float] = field(default_factory=list)

    async def take(self, active: int) -> None:
        """Take the turns, so many at a time, each in a session that has none in progress."""
        idle = list(self.sessions)
        random.Random(1).shuffle(idle)

        async def converse() -> None:
            while self.taken < self.turns:
                self.taken += 1
                session = idle.pop(0)
                began = time.perf_counter()
                await self._turn(session, secrets.token_hex(8))
                self.latencies.append(1_000 * (time.perf_counter() - began))
                idle.append(session)
                async with self.progress:
                    self.done += 1
                    self.progress.notify_all()

        await asyncio.gather(*(converse() for _ in range(active)))

    async def _turn(self, session: Session, run_id: str) -> None:
        """Ask, and wait for the answer; again, as an application does, when no worker had time
        within a minute.
        """
        while True:
            try:
                await (await session.run(QUESTION, run_id=run_id))
            except ServerError:
                self.late += 1
            else:
                return

    async def reached(self, turns: int) -> None:
        """Wait until so many turns are done."""
        async with self.progress:
            await self.progress.wait_for(lambda: self.done >= turns)

    def recent(self) -> list[float]:
        """The times of the turns since this was last asked."""
        recent, self.latencies = self.latencies, []
        return recent or [0.0]


async def measure(
    folder: Path, *, sessions: int, active: int, turns: int, tell: Callable[[Sample], None]
) -> None:
    """Open the sessions, take the turns, and tell from time to time how large the processes are."""
    server = TemporalServer(folder)
    worker = ChildProcess(
        python("chaos.load", "--worker", server.address, str(folder)), folder / "worker.log"
    )
    try:
        await server.start()
        await worker.start()
        client = await server.connect()
        opened = Sessions(client, FileStore(folder / "sessions"))
        load = Load(await _open(opened, sessions, active), turns)
        tell(await _sample(folder, load, 0.0, worker.pid, server.pid))
        began = time.monotonic()
        taking = asyncio.create_task(load.take(active))
        for number in range(1, SAMPLES + 1):
            await load.reached(turns * number // SAMPLES)
            seconds = time.monotonic() - began
            tell(await _sample(folder, load, seconds, worker.pid, server.pid))
        await taking
        await worker.terminate(40)
    finally:
        await worker.kill()
        await server.kill()


async def _open(sessions: Sessions, number: int, at_once: int) -> list[Session]:
    waiting = asyncio.Semaphore(at_once)

    async def one(place: int) -> Session:
        async with waiting:
            session = await sessions.open(f"load-{place}", agent="talker", timeout=600)
            await (await session.run(QUESTION))
            return session

    return list(await asyncio.gather(*map(one, range(number))))


async def _sample(folder: Path, load: Load, seconds: float, worker: int, server: int) -> Sample:
    recent = load.recent()
    logs = sum(file.stat().st_size for file in (folder / "sessions").iterdir())
    database = sum(file.stat().st_size for file in folder.glob("temporal.db*"))
    return Sample(
        turns=load.done,
        seconds=round(seconds, 1),
        worker=resident_bytes(worker) / 1e6,
        server=resident_bytes(server) / 1e6,
        client=resident_bytes(_own_pid()) / 1e6,
        logs=logs / 1e6,
        database=database / 1e6,
        median_turn=statistics.median(recent),
        slowest_turn=max(recent),
        asked_again=load.late,
        worker_processor_seconds=round(processor_seconds(worker), 1),
    )


def _own_pid() -> int:
    return int(Path("/proc/self").resolve().name)


_COLUMNS = (
    "turns",
    "seconds",
    "worker",
    "server",
    "client",
    "logs",
    "db",
    "median",
    "slowest",
    "again",
)


def _print(sample: Sample) -> None:
    if sample.turns == 0:
        print("".join(f"{name:>10}" for name in _COLUMNS), flush=True)
    values = list(asdict(sample).values())[: len(_COLUMNS)]
    print("".join(f"{value:>10,.0f}" for value in values), flush=True)


async def _serve(address: str, folder: Path) -> None:
    agent = Agent("talker", model=PromptModel())
    client = await Client.connect(address)
    await serve([agent], FileStore(folder / "sessions"), client=client)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run it, and print how large everything was over time."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--sessions", type=int, default=1_000, help="sessions that are open")
    parser.add_argument("--active", type=int, default=64, help="turns in progress at any moment")
    parser.add_argument("--turns", type=int, default=23_040, help="turns in all")
    parser.add_argument("--json", type=Path, help="write the samples to this file")
    parser.add_argument("--worker", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.worker:
        asyncio.run(_serve(given.worker[0], Path(given.worker[1])))
        return
    samples: list[Sample] = []

    def tell(sample: Sample) -> None:
        _print(sample)
        samples.append(sample)
        if given.json:
            given.json.write_text(json.dumps([asdict(each) for each in samples], indent=1))

    with tempfile.TemporaryDirectory(prefix="perdure-load-") as folder:
        sizes = {"sessions": given.sessions, "active": given.active, "turns": given.turns}
        asyncio.run(measure(Path(folder), **sizes, tell=tell))


if __name__ == "__main__":
    main()
