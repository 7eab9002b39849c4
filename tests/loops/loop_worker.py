"""A worker process that serves loops: `python -m tests.loops.loop_worker …`.

A test kills it. Its agents: `command` runs the scripted command, `resuming` and `restarting` are
loops in Python that wait, after each message, while a file `hold` exists.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from pathlib import Path

from temporalio.client import Client

from perdure import Agent, LoopContext, Message
from perdure.loops import CommandLoop, OnCrash
from perdure.stores import FileStore
from perdure.worker import build_worker
from tests.loops.conftest import CLI


class Counting:
    """Counts to four, one message each; says in which attempt, and what was stored before it."""

    def __init__(self, on_crash: OnCrash, folder: Path) -> None:
        self.on_crash = on_crash
        self._folder = folder

    async def run(self, context: LoopContext) -> AsyncIterator[Message]:
        done = len(context.stored)
        for number in range(done + 1, 5):
            said = f"{number}, attempt {context.attempt}, after {done}"
            yield Message(role="assistant", content=said)
            with (self._folder / "said").open("a") as file:
                file.write(f"{said}\n")
            while number == 2 and (self._folder / "hold").exists():  # noqa: ASYNC110
                await asyncio.sleep(0.02)


async def main(address: str, task_queue: str, name: str) -> None:
    folder = Path(name)
    agents = [
        Agent("command", model=CommandLoop([sys.executable, CLI, folder / "cli", "-p"])),
        Agent("resuming", model=Counting("resume", folder)),
        Agent("restarting", model=Counting("restart", folder)),
    ]
    client = await Client.connect(address)
    store = FileStore(folder / "sessions")
    async with build_worker(client, agents=agents, store=store, task_queue=task_queue):
        (folder / "ready").touch()
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
