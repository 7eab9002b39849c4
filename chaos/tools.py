"""Tools with side effects: each execution is in a journal, when it starts and when it ends."""

from __future__ import annotations

import asyncio
import random
from typing import Any

from chaos.journal import Journal
from chaos.words import unique_word
from perdure.tools import Tool, ToolContext, tool

CHARGE = "charge"
LOOK_UP = "look_up"
REFUND = "refund"
BREAK = "break_down"
TOOLS = (CHARGE, LOOK_UP, REFUND, BREAK)
IDEMPOTENT = frozenset({LOOK_UP})


def make_tools(journal: Journal) -> list[Tool[..., Any]]:
    """One that must not run twice, one that may, one that a person has to approve, one that
    fails.
    """
    chance = random.Random()

    async def work(name: str, ctx: ToolContext) -> str:
        did = unique_word()
        about: dict[str, Any] = {
            "tool": name,
            "session": ctx.session_id,
            "run": ctx.run_id,
            "call": ctx.tool_call_id,
            "attempt": ctx.attempt,
            "did": did,
        }
        journal.note("tool started", **about)
        await asyncio.sleep(chance.expovariate(4))
        journal.note("tool ended", **about)
        return f"did {did}"

    @tool
    async def charge(ctx: ToolContext) -> str:
        """Charge a card: at most once."""
        return await work(CHARGE, ctx)

    @tool(idempotent=True)
    async def look_up(ctx: ToolContext) -> str:
        """Look something up: as often as need be."""
        return await work(LOOK_UP, ctx)

    @tool(needs_approval=True)
    async def refund(ctx: ToolContext) -> str:
        """Refund an order: at most once, and only when a person agrees."""
        return await work(REFUND, ctx)

    @tool
    async def break_down(ctx: ToolContext) -> str:
        """Fail."""
        raise RuntimeError(await work(BREAK, ctx))

    return [charge, look_up, refund, break_down]
