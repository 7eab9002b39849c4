"""Ask the support agent something; a worker answers. Ask again, and it remembers."""

import asyncio
import sys

from perdure import Sessions


async def main(question: str) -> None:
    async with Sessions.connect(store="files:./sessions") as sessions:
        session = await sessions.open("customer-42", agent="support")  # creates or resumes
        run = await session.run(question)  # durably accepted when this returns
        async for event in run:  # receipts: what you see is stored
            print(event.type, [entry.id for entry in event.entries])
        print((await run)[-1].text)


if __name__ == "__main__":
    asyncio.run(main(" ".join(sys.argv[1:]) or "When does order 7 ship?"))
