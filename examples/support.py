"""A support agent with one tool. `perdure worker support:agent` serves it."""

import os

from perdure import Agent, tool

ORDERS = {"7": "walking boots, size 42: packed, ships on Friday"}


@tool(idempotent=True, timeout=30)
async def find_order(order_id: str) -> str:
    """Look an order up by its number."""
    return ORDERS.get(order_id, "there is no such order")


agent = Agent(
    "support",
    model=os.environ.get("SUPPORT_MODEL", "anthropic:claude-sonnet-5-5"),
    instructions="You help the customers of a shoe shop. Look orders up before you answer.",
    tools=[find_order],
)
