"""An object out of a text: an answer that is not one goes back to the model."""

import asyncio
import os
import sys

from pydantic import BaseModel, Field

import perdure
from perdure import Agent


class Item(BaseModel):
    name: str
    cents: int = Field(ge=0)


class Receipt(BaseModel):
    shop: str
    items: list[Item]


agent = Agent(
    "reader",
    model=os.environ.get("RECEIPT_MODEL", "anthropic:claude-sonnet-5-5"),
    instructions="You read receipts.",
)


async def main(text: str) -> None:
    async with perdure.local(agents=[agent], store="files:./sessions") as sessions:
        session = await sessions.open("receipts", agent="reader")
        run = await session.run(text, output=Receipt)
        receipt = await run.output()  # a Receipt
        for item in receipt.items:
            print(f"{receipt.shop}: {item.name}, {item.cents / 100:.2f}")


if __name__ == "__main__":
    asyncio.run(main(" ".join(sys.argv[1:]) or "Chez Paul, 2 croissants 3.20, 1 coffee 2.10"))
