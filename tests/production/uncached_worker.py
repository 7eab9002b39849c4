"""A worker process that keeps no workflow in memory: `-m tests.production.uncached_worker …`.

Each step of each session goes to whichever process asks first. The model tells how much of the
conversation it was sent and by which process, the tool too.
"""

from __future__ import annotations

import asyncio
import os
import sys

from temporalio.client import Client
from temporalio.worker import Worker

from perdure import Agent, Message, PerdurePlugin, tool
from perdure.models.scripted import Answer, ScriptedModel, call
from perdure.stores import open_store


@tool(idempotent=True)
async def who(number: int) -> str:
    """Say which process this is."""
    return f"tool {number} by {os.getpid()}"


def answer(messages: list[Message]) -> Answer:
    """First a tool call, then how many messages there are, and what was asked."""
    if messages[-1].role == "user":
        return call("who", number=len(messages))
    asked = [message.text for message in messages if message.role == "user"]
    return f"{len(messages)} messages, {asked[-1]}, by {os.getpid()}"


async def main(address: str, task_queue: str, place: str) -> None:
    client = await Client.connect(address)
    agent = Agent("agent", model=ScriptedModel(answer), tools=[who])
    worker = Worker(
        client,
        task_queue=task_queue,
        plugins=[PerdurePlugin(agents=[agent], store=open_store(place))],
        max_cached_workflows=0,
        # One step at a time, so that neither takes what both could do.
        max_concurrent_activities=2,
    )
    async with worker:
        print("ready", flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
