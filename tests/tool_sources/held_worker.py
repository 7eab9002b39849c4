"""The worker of tests/engine/held_worker.py, for an agent with a sub-agent and an MCP server."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

from perdure import Agent, Message, sub_agent
from perdure.models.scripted import ScriptedModel, call
from tests.engine import held_worker
from tests.tool_sources.servers import Folder


class HeldHelper:
    """A model that says one thing, with a step before: `helper`."""

    name = "helper"

    async def respond(self, request: Any, on_delta: Any = None) -> Message:
        await held_worker.step("helper")
        return Message(role="assistant", content="It is 3.")


def agent(folder: Folder) -> Agent:
    helper = sub_agent(Agent("helper", model=HeldHelper()), description="Helps with sums.")
    says: list[Any] = [
        [call("helper", task="1 + 2?")],
        [call("slow", word="once"), call("add", a=1, b=2)],
        "All done.",
    ]
    server = folder.server(idempotent=["add"], only=["slow", "add"])
    return Agent("held", model=ScriptedModel(*says), tools=[helper], mcp=[server])


if __name__ == "__main__":
    held_worker.AGENT = agent(Folder(Path(sys.argv[3])))
    asyncio.run(held_worker.main(*sys.argv[1:]))
