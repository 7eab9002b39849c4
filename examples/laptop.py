"""The same conversation in one process: an embedded Temporal server, a worker and a client."""

import asyncio
import sys

import perdure
from support import agent


async def main(question: str) -> None:
    async with perdure.local(agents=[agent], store="files:./sessions") as sessions:
        session = await sessions.open("customer-42", agent="support")
        for message in await (await session.run(question)):
            print(f"{message.role}: {message.text}")


if __name__ == "__main__":
    asyncio.run(main(" ".join(sys.argv[1:]) or "When does order 7 ship?"))
