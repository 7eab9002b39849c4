"""What is said in the benchmarks: questions and answers of a known length, agents that answer at
once, and turns as an application takes them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from perdure import Agent, Message, Session, tool
from perdure.messages import Role, StopReason, TextBlock, ToolCallBlock
from perdure.models.protocol import ModelRequest, OnDelta
from perdure.usage import Usage

QUESTION = ("Where is the order that I placed on Monday, and when will it be here? " * 3)[:200]
ANSWER = ("It left the warehouse this morning and should be at your door on Thursday. " * 6)[:400]
RECORD = ("order 4711, two items, paid by card, packed, handed to the carrier; " * 80)[:5_000]

Answer = Callable[[ModelRequest], Message]


class InstantModel:
    """A model that answers at once, or after `delay` seconds. Unlike a scripted one it remembers
    nothing and counts nothing, so it costs the same at every length of the conversation.
    """

    name = "instant"

    def __init__(self, answer: Answer, delay: float = 0.0) -> None:
        self._answer = answer
        self._delay = delay

    async def respond(self, request: ModelRequest, on_delta: OnDelta | None = None) -> Message:
        """See `LanguageModel`."""
        if self._delay:
            await asyncio.sleep(self._delay)
        return self._answer(request)


@tool(idempotent=True)
async def find_order(order_id: str) -> str:
    """Find an order."""
    return RECORD[:1_000]


@tool(idempotent=True)
async def read_file(path: str, size: int) -> str:
    """Read the beginning of a file."""
    return RECORD[:size]


def talker(name: str = "talker", delay: float = 0.0) -> Agent:
    """An agent that gives the same answer to everything."""
    return Agent(name, model=InstantModel(lambda request: said(ANSWER), delay))


def clerk() -> Agent:
    """An agent that looks something up before it answers: one tool call a turn."""

    def respond(request: ModelRequest) -> Message:
        if request.messages[-1].role == Role.TOOL_RESULT:
            return said(ANSWER)
        return _asked("find_order", f"call_{len(request.messages)}", order_id="4711")

    return Agent("clerk", model=InstantModel(respond), tools=[find_order])


def researcher(calls: int, size: int = 1_000) -> Agent:
    """An agent that calls a tool so many times, one after the other, before it answers. Each
    result has `size` characters.
    """

    def respond(request: ModelRequest) -> Message:
        done = 0
        for message in reversed(request.messages):
            if message.role == Role.USER:
                break
            done += message.role == Role.TOOL_RESULT
        if done == calls:
            return said(ANSWER)
        return _asked("read_file", f"call_{done}", path=f"src/module_{done}.py", size=size)

    return Agent("researcher", model=InstantModel(respond), tools=[read_file], max_turns=calls + 1)


def said(text: str) -> Message:
    """A message of the model."""
    return _message(TextBlock(text=text))


def _asked(name: str, call_id: str, **arguments: str | int) -> Message:
    return _message(ToolCallBlock(id=call_id, name=name, arguments=arguments))


def _message(block: TextBlock | ToolCallBlock) -> Message:
    return Message(
        role=Role.ASSISTANT,
        content=(block,),
        provider="instant",
        model="instant-1",
        usage=Usage(input=12_345, output=100),
        stop_reason=StopReason.STOP if isinstance(block, TextBlock) else StopReason.TOOL_USE,
    )


async def take_turns(session: Session, count: int) -> None:
    """Ask and wait for the answer, so many times."""
    for _ in range(count):
        await take_turn(session)


async def take_turn(session: Session) -> None:
    """Ask, and wait for the answer."""
    await (await session.run(QUESTION))
