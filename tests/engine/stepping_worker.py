"""A worker process for runs of many steps: `python -m tests.engine.stepping_worker …`."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from temporalio.client import Client

from perdure import Agent, Message, tool
from perdure.models.scripted import Answer, ScriptedModel, call
from perdure.stores import FileStore
from perdure.worker import build_worker


@tool(idempotent=True)
async def tick(number: int) -> str:
    """Say which step this is."""
    return f"tick {number}"


def stepping_agent(steps: int) -> Agent:
    """An agent whose every run is of so many steps, a tool call each."""

    def next_step(messages: list[Message]) -> Answer:
        taken = sum(message.role == "assistant" for message in messages)
        return call("tick", number=taken) if taken < steps else "done"

    return Agent("stepping", model=ScriptedModel(next_step), tools=[tick], max_turns=steps + 1)


async def main(address: str, task_queue: str, folder: str, steps: str) -> None:
    client = await Client.connect(address)
    agents = [stepping_agent(int(steps))]
    store = FileStore(Path(folder) / "sessions")
    async with build_worker(client, agents=agents, store=store, task_queue=task_queue):
        print("ready", flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
