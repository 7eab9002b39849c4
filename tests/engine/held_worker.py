"""A worker process that can be stopped at chosen points: `python -m tests.engine.held_worker …`.

Its model, its tools and its store write each step into a journal, and wait there as long as a file
`hold-<step>` exists in the same folder. A test that wants to kill the worker at a step holds it
there, reads the journal, and kills.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from temporalio.client import Client

from perdure import Agent, Entry, Message, tool
from perdure.models.protocol import Delta
from perdure.models.scripted import ScriptedModel, call
from perdure.stores import FileStore
from perdure.worker import build_worker

_folder = Path()


async def step(name: str) -> None:
    """Write the step down, then wait while it is held."""
    with (_folder / "journal").open("a") as journal:
        journal.write(f"{name} {os.getpid()}\n")
    while (_folder / f"hold-{name}").exists():  # noqa: ASYNC110 - another process lets go
        await asyncio.sleep(0.02)


class HeldModel:
    """The script, with a step before each call: `model-<assistant messages so far>`. When it is
    streamed the model says half a word first, with a step after that: `half-…`; `said-…` is when it
    is done.
    """

    name = "held"

    def __init__(self, *items: Any) -> None:
        self._script = ScriptedModel(*items)

    async def respond(self, request: Any, on_delta: Any = None) -> Message:
        said = sum(message.role == "assistant" for message in request.messages)
        await step(f"model-{said}")
        if on_delta is not None:
            on_delta(Delta("text", "Wor", 0))
            await step(f"half-{said}")
        message = await self._script.respond(request, on_delta)
        await step(f"said-{said}")
        return message


class HeldStore(FileStore):
    """The file store, with a step after each append: `stored-<role>`."""

    async def append_entries(self, session_id: str, entries: Sequence[Entry]) -> None:
        await super().append_entries(session_id, entries)
        for entry in entries[-1:]:
            await step(f"stored-{getattr(entry, 'message', Message(role='none')).role}")


@tool
async def charge(cents: int) -> str:
    """Not idempotent: twice would be once too often."""
    await step("charge")
    return f"charged {cents}"


@tool(idempotent=True)
async def look_up(word: str) -> str:
    """Idempotent: again does no harm."""
    await step("look_up")
    return f"{word} found"


AGENT = Agent(
    "held",
    model=HeldModel(
        ["Working.", call("charge", cents=5), call("look_up", word="shoe")],
        "All done.",
        "And more.",
    ),
    tools=[charge, look_up],
)


WITNESS = Agent("witness", model=HeldModel(lambda messages: f"I am {os.getpid()}."))
"""Says in which process it was asked."""


async def main(address: str, task_queue: str, folder: str) -> None:
    global _folder
    _folder = Path(folder)
    client = await Client.connect(address)
    store = HeldStore(_folder / "sessions")
    async with build_worker(client, agents=[AGENT, WITNESS], store=store, task_queue=task_queue):
        await step("ready")
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
