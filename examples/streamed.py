"""The answer word by word, while the model writes it."""

import asyncio
import sys

import perdure
from support import agent


async def main(question: str) -> None:
    async with perdure.local(agents=[agent], store="files:./sessions") as sessions:
        session = await sessions.open("customer-44", agent="support")
        async for event in await session.run(question, stream=True):
            if event.is_reset:  # the call broke half-way, and is made again
                print("\n(once more, from the beginning)")
            elif event.delta is not None and event.delta.kind == "text":
                print(event.delta.text, end="", flush=True)
            elif event.type == "tool_execution_start":
                print(f"({event.tool_name} …)")
            elif event.type == "turn_end":
                print()


if __name__ == "__main__":
    asyncio.run(main(" ".join(sys.argv[1:]) or "When does order 7 ship?"))
