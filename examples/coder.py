"""A command-line agent in a durable session: an embedded server, a worker and a client in one
process.

    python coder.py "What does this folder hold?"

Say it again with another question, and the conversation goes on; kill it in between, and it does,
too. `CODER_COMMAND` names another command that speaks stream-json.
"""

import asyncio
import os
import shlex
import sys

import perdure
from perdure import Agent, CommandLoop

command = shlex.split(os.environ.get("CODER_COMMAND", "claude -p --permission-mode acceptEdits"))
agent = Agent("coder", model=CommandLoop(command, timeout=900), max_turns=500)


async def main(question: str) -> None:
    async with perdure.local(agents=[agent], store="files:./sessions") as sessions:
        session = await sessions.open("coder", agent="coder")
        async for event in await session.run(question):
            if event.type == "tool_execution_start":
                print(f"  {event.tool_name} {event.arguments}")
            elif event.type == "message_end" and event.message and event.message.text:
                print(f"{event.message.role}: {event.message.text}")


if __name__ == "__main__":
    asyncio.run(main(" ".join(sys.argv[1:]) or "What does this folder hold?"))
