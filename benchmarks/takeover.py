"""Another worker takes over: after a kill in a model call, and after a change of workers.

The killed worker's run is finished by one that stood by; the time is from the kill to the answer,
less that of the model call that is made again. A session of 200 turns goes to a new worker, which
has to replay its history first; the yardstick is the first turn of a new session there.
"""

from __future__ import annotations

import asyncio
import statistics
import tempfile
import time

from benchmarks.conversation import QUESTION, take_turn, take_turns
from benchmarks.report import Figure, Scale, run_benchmark
from benchmarks.worker_process import WorkerProcess
from perdure import Session, Sessions
from perdure.dev_server import DevServer, dev_server
from perdure.stores import FileStore

CALL_SECONDS = 1.5


async def measure(scale: Scale) -> list[Figure]:
    """Both, on one server."""
    turns = scale.pick(40, 200)
    async with dev_server() as server:
        with tempfile.TemporaryDirectory(prefix="perdure-bench-") as folder:
            killed = [
                await _after_a_kill(server, folder, f"killed-{number}")
                for number in range(scale.pick(1, 3))
            ]
            picked_up, fresh = await _after_a_change(
                server, folder, sessions=scale.pick(4, 12), turns=turns
            )
    note = f"{turns} turns" if scale is Scale.QUICK else ""
    what = "200 turns, on a new worker: first turn"
    usual = statistics.median(fresh)
    return [
        Figure("worker killed in a model call: time lost", statistics.median(killed)),
        Figure("worker killed in a model call: time lost, worst", max(killed)),
        Figure(what, statistics.median(picked_up), usual, note),
        Figure(f"{what}, worst", max(picked_up), usual, note),
    ]


async def _after_a_kill(server: DevServer, folder: str, session_id: str) -> float:
    """Seconds that are lost."""
    sessions = Sessions(server.client, FileStore(folder))
    serve = WorkerProcess.start
    # The call has to last until the second worker stands by.
    async with serve(server.address, folder, call_seconds=60) as first:
        session = await sessions.open(session_id, agent="talker")
        run = await session.run(QUESTION)
        await first.says("calling")
        async with serve(server.address, folder, call_seconds=CALL_SECONDS):
            killed_at = time.perf_counter()
            await first.kill()
            await run
            return time.perf_counter() - killed_at - CALL_SECONDS


async def _after_a_change(
    server: DevServer, folder: str, *, sessions: int, turns: int
) -> tuple[list[float], list[float]]:
    """Seconds of first turns on a new worker: of old sessions, and of new ones."""
    client = Sessions(server.client, FileStore(folder))
    async with WorkerProcess.start(server.address, folder) as earlier:
        old = [await client.open(f"old-{number}", agent="talker") for number in range(sessions)]
        # Each a turn longer than the one before: what is replayed depends on the turns since the
        # workflow last continued as new.
        await asyncio.gather(
            *(take_turns(session, turns + extra) for extra, session in enumerate(old))
        )
        await earlier.stop()
    picked_up: list[float] = []
    fresh: list[float] = []
    async with WorkerProcess.start(server.address, folder):
        await take_turn(await client.open("warm-up", agent="talker"))
        for session in old:
            picked_up.append(await _seconds(session))
            fresh.append(await _seconds(await client.open(agent="talker")))
    return picked_up, fresh


async def _seconds(session: Session) -> float:
    started = time.perf_counter()
    await take_turn(session)
    return time.perf_counter() - started


if __name__ == "__main__":
    run_benchmark(measure, __doc__)
