"""Agents for `perdure worker`, and a store of secrets that nobody may find in what is exported.

A tool that is held waits as long as there is a file `hold` in PERDURE_TEST_FOLDER.
"""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

from perdure import Agent, tool
from perdure.messages import Message
from perdure.models.protocol import ModelRequest, OnDelta
from perdure.models.scripted import ScriptedModel, call
from perdure.usage import Usage

SECRET = "sk-never-to-be-seen"


class Priced:
    """The script, as a provider would tell of it: with its name, and with tokens."""

    def __init__(self, name: str, *items: Any) -> None:
        self.name = name
        self._script = ScriptedModel(*items)

    async def respond(self, request: ModelRequest, on_delta: OnDelta | None = None) -> Message:
        message = await self._script.respond(request, on_delta)
        usage = Usage(input=100, cache_read=20, output=7)
        return message.model_copy(update={"usage": usage, "model": "claude-script-1"})


@tool(idempotent=True)
async def look_up(order: str) -> str:
    """Slow, while it is held."""
    folder = Path(os.environ["PERDURE_TEST_FOLDER"])
    with (folder / "journal").open("a") as journal:
        journal.write(f"{os.getpid()}\n")
    while (folder / "hold").exists():  # noqa: ASYNC110 - another process lets go
        await asyncio.sleep(0.02)
    return f"order {order}, key {SECRET}"


@tool
async def charge(card: str) -> str:
    """Fails, and says too much."""
    raise RuntimeError(f"no such card: {card}")


@tool(needs_approval=True)
async def refund(card: str) -> str:
    """Asks a person."""
    return f"refunded to {card}"


clerk = Agent(
    "clerk",
    model=Priced(
        "anthropic:claude-script",
        call("look_up", order=SECRET),
        call("charge", card=SECRET),
        f"All done, {SECRET}.",
    ),
    instructions=f"The key is {SECRET}.",
    tools=[look_up, charge],
)
