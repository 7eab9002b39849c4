"""What a worker process takes: memory for each session that is idle in it, processor for a turn,
and turns a second; the same with encryption beside it without.

Memory and processor are those of the processes as Linux tells them, so this runs on Linux only.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import statistics
import tempfile
import time
from itertools import count
from pathlib import Path

from temporalio.client import Client

from benchmarks.conversation import ANSWER, QUESTION, InstantModel, said
from benchmarks.report import Figure, Scale, run_benchmark
from benchmarks.worker_process import WorkerProcess
from perdure import Agent, Session, Sessions, text
from perdure.data_conversion import data_converter
from perdure.dev_server import dev_server
from perdure.encryption import Keys
from perdure.stores import EncryptedStore, FileStore
from perdure.stores.contract import Store
from perdure.worker import build_worker

CONCURRENT = 16
_numbers = count()


async def measure(scale: Scale) -> list[Figure]:
    """Memory, then the cost of encryption."""
    keys = Keys({"bench": secrets.token_bytes(32)})
    async with dev_server() as server:
        memory = await _memory(server.client, server.address, scale.pick(100, 800))
        plain, sealed = await _turns(server.client, keys, scale.pick(2, 8))
    appends, sealed_appends = await _appends(keys, scale.pick(50, 400))
    return [
        *memory,
        Figure("turns a second, 16 sessions, encrypted", sealed, plain),
        Figure("appends a second, 16 sessions, encrypted store", sealed_appends, appends),
    ]


async def _memory(client: Client, address: str, sessions: int) -> list[Figure]:
    with tempfile.TemporaryDirectory() as folder:
        async with WorkerProcess.start(address, folder) as worker:
            opened = Sessions(client, FileStore(folder))
            # The first ones bring along what all share.
            await _converse(opened, 20)
            before = _resident(worker.process.pid)
            await _converse(opened, sessions)
            after = _resident(worker.process.pid)
            of_worker, of_server, of_client = await _processor(opened, worker.process.pid)
            await worker.stop()
    return [
        Figure("processor time of a plain turn: worker", of_worker),
        Figure("processor time of a plain turn: server", of_server),
        Figure("processor time of a plain turn: client", of_client),
        Figure("memory of a worker", before),
        Figure("memory of an idle session in it", (after - before) / sessions),
    ]


async def _converse(sessions: Sessions, number: int) -> None:
    """Open so many sessions, and take two turns in each."""
    waiting = asyncio.Semaphore(CONCURRENT)

    async def one() -> None:
        async with waiting:
            session = await sessions.open(f"sizing-{next(_numbers)}", agent="talker")
            for _ in range(2):
                await (await session.run(QUESTION))

    await asyncio.gather(*(one() for _ in range(number)))


async def _processor(sessions: Sessions, worker: int) -> list[float]:
    """Seconds of processor for a turn: of the worker, of the server, and of this process."""
    # The server is a child of the shell that ends it with this process.
    servers = [pid for pid in _below(os.getpid()) if pid != worker]
    places = [[worker], servers, [os.getpid()]]
    opened = await _opened(sessions)
    before = [sum(map(_spent, pids)) for pids in places]
    turns = 0
    for _ in range(5):
        await _rate(opened)
        turns += 3 * len(opened)
    after = [sum(map(_spent, pids)) for pids in places]
    return [(end - start) / turns for start, end in zip(before, after, strict=True)]


def _below(pid: int) -> list[int]:
    """The processes that a process has started, and those that they have started."""
    tasks = Path(f"/proc/{pid}/task").iterdir()
    children = [int(child) for task in tasks for child in (task / "children").read_text().split()]
    return [*children, *(below for child in children for below in _below(child))]


def _spent(pid: int) -> float:
    """Seconds of processor that a process has taken."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _resident(pid: int) -> int:
    """Bytes of memory of a process."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


async def _turns(client: Client, keys: Keys, rounds: int) -> tuple[float, float]:
    """Turns a second of plain and of encrypted sessions, by turns; the median round counts."""
    config = client.config()
    config["data_converter"] = data_converter(keys=keys)
    sealed_client = Client(**config)
    agent = Agent("talker", model=InstantModel(lambda request: said(ANSWER)))
    with tempfile.TemporaryDirectory() as folder:
        files = FileStore(folder)
        sealed: Store = EncryptedStore(files, keys)
        async with (
            build_worker(client, agents=[agent], store=files, task_queue="plain"),
            build_worker(sealed_client, agents=[agent], store=sealed, task_queue="sealed"),
        ):
            plain_sessions = await _opened(Sessions(client, files, task_queue="plain"))
            sealed_sessions = await _opened(Sessions(sealed_client, sealed, task_queue="sealed"))
            rates = [
                (await _rate(plain_sessions), await _rate(sealed_sessions)) for _ in range(rounds)
            ]
    plain, encrypted = zip(*rates, strict=True)
    return statistics.median(plain), statistics.median(encrypted)


async def _opened(sessions: Sessions) -> list[Session]:
    names = [f"sizing-{next(_numbers)}" for _ in range(CONCURRENT)]
    return [await sessions.open(name, agent="talker") for name in names]


async def _rate(sessions: list[Session]) -> float:
    async def converse(session: Session) -> None:
        for _ in range(3):
            await (await session.run(QUESTION))

    began = time.perf_counter()
    await asyncio.gather(*map(converse, sessions))
    return 3 * len(sessions) / (time.perf_counter() - began)


async def _appends(keys: Keys, number: int) -> tuple[float, float]:
    """Appends a second to a store of files and to an encrypted one, by turns; medians."""
    with tempfile.TemporaryDirectory() as folder:
        files = FileStore(folder)
        sealed = EncryptedStore(files, keys)
        await _append(files, CONCURRENT)  # the first ones make files
        rates = [(await _append(files, number), await _append(sealed, number)) for _ in range(5)]
    plain, encrypted = zip(*rates, strict=True)
    return statistics.median(plain), statistics.median(encrypted)


async def _append(store: Store, number: int) -> float:
    names = [f"append-{next(_numbers)}" for _ in range(CONCURRENT)]
    for name in names:
        await store.create_session(name)

    async def fill(name: str) -> None:
        for _ in range(number // CONCURRENT + 1):
            entry = text("x" * 400).with_header(id=secrets.token_hex(8))
            await store.append_entries(name, [entry])

    began = time.perf_counter()
    await asyncio.gather(*map(fill, names))
    return CONCURRENT * (number // CONCURRENT + 1) / (time.perf_counter() - began)


if __name__ == "__main__":
    run_benchmark(measure, __doc__)
