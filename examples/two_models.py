"""One conversation, two models: what the first found out, the second goes on with."""

import asyncio
import sys

import perdure
from perdure import Agent
from support import find_order

MODELS = ["anthropic:claude-sonnet-5-5", "openai:gpt-6.1-sol"]
QUESTIONS = ["When does order 7 ship?", "And which size is it?"]


async def main(models: list[str]) -> None:
    agents = [
        Agent(f"support-{number}", model=model, instructions="Be brief.", tools=[find_order])
        for number, model in enumerate(models, start=1)
    ]
    async with perdure.local(agents=agents, store="files:./sessions") as sessions:
        for agent, question in zip(agents, QUESTIONS, strict=True):
            session = await sessions.open("customer-43", agent=agent.name)  # serves it from now on
            for message in await (await session.run(question)):
                print(f"{message.model or message.role}: {message.text}")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:] or MODELS))
