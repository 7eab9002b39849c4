"""A tool that needs a person's yes: the run waits, and somebody answers. No API key needed.

Stop it while it asks and start it again: the run in progress belongs to the embedded server and is
gone with it, but with a Temporal server and a worker of your own it would go on waiting.
"""

import asyncio
import sys

import perdure
from perdure import Agent, PendingApproval, ToolContext, tool
from perdure.testing import ScriptedModel, call


@tool(needs_approval=lambda arguments: arguments["cents"] > 1_000, parallel=False)
async def refund(ctx: ToolContext, order_id: str, cents: int) -> str:
    """Refund an order."""
    ctx.progress("asking the bank", fraction=0.5)
    return f"refunded {cents / 100:.2f} for order {order_id}"


agent = Agent(
    "support",
    model=ScriptedModel(
        [call("refund", order_id="7", cents=900), call("refund", order_id="8", cents=9_900)],
        lambda messages: f"Done: {messages[-1].text}",
    ),
    instructions="You help the customers of a shoe shop.",
    tools=[refund],
)


def ask(approval: PendingApproval) -> bool:
    """Ask whoever sits at the terminal; without one, say no."""
    question = f"{approval.tool_name}({approval.arguments})? [y/N] "
    if not sys.stdin.isatty():
        print(f"{question}n")
        return False
    return input(question).strip().lower().startswith("y")


async def main() -> None:
    async with perdure.local(agents=[agent]) as sessions:
        session = await sessions.open("customer-42", agent="support")
        run = await session.run("Both orders are broken.", stream=True)
        async for event in run:
            if event.approval is not None:
                agrees = await asyncio.to_thread(ask, event.approval)
                await session.approve(event.approval, agrees, reason="the owner was asked")
        for message in await run:
            print(f"{message.role}: {message.text}")


if __name__ == "__main__":
    asyncio.run(main())
