"""What calls of a model share, and when it is closed."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from contextvars import ContextVar
from types import TracebackType
from typing import Self

import pytest
from pydantic_ai import messages as ai
from pydantic_ai.models.function import AgentInfo, FunctionModel

from perdure.models.pydantic_ai_clients import SharedModel

CALLER: ContextVar[str] = ContextVar("CALLER", default="nobody")


class Doors(FunctionModel):
    """A model that notes when it is opened and closed, and what it is told of its caller."""

    def __init__(self) -> None:
        super().__init__(self._reply)
        self.seen: list[str] = []
        self.closed = asyncio.Event()
        self.broken = False

    def _reply(self, messages: list[ai.ModelMessage], info: AgentInfo) -> ai.ModelResponse:
        raise NotImplementedError

    async def __aenter__(self) -> Self:
        if self.broken:
            raise OSError("no sockets left")
        self.seen.append(f"opened for {CALLER.get()}")
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.seen.append("closed")
        self.closed.set()


OPENED = "opened for nobody"


async def test_calls_at_once_and_one_after_another_open_a_model_once() -> None:
    CALLER.set("the first call")  # what outlives a call is not done in its name
    doors = Doors()
    shared = SharedModel(doors)

    async with shared.in_use(), shared.in_use():
        pass
    async with shared.in_use():
        assert doors.seen == [OPENED]
    await shared.aclose()
    assert doors.seen == [OPENED, "closed"]

    async with shared.in_use():
        pass
    await shared.aclose()
    assert doors.seen == [OPENED, "closed"] * 2


async def test_a_model_that_nobody_calls_is_closed() -> None:
    doors = Doors()
    shared = SharedModel(doors, idle=0.01)

    async with shared.in_use():
        await asyncio.sleep(0.05)
        assert doors.seen == [OPENED]
    await doors.closed.wait()
    async with shared.in_use():
        assert doors.seen == [OPENED, "closed", OPENED]
    await shared.aclose()


async def test_closing_waits_for_no_call_and_breaks_none() -> None:
    doors = Doors()
    shared = SharedModel(doors, idle=0.01)

    async with shared.in_use():
        await shared.aclose()
        assert doors.seen == [OPENED]
    await doors.closed.wait()


async def test_a_call_that_is_cancelled_closes_nothing() -> None:
    doors = Doors()
    shared = SharedModel(doors)

    async def call() -> None:
        async with shared.in_use():
            await asyncio.Event().wait()

    cancelled, other = asyncio.create_task(call()), asyncio.create_task(call())
    await asyncio.sleep(0)
    cancelled.cancel()
    with suppress(asyncio.CancelledError):
        await cancelled
    assert "closed" not in doors.seen
    other.cancel()
    with suppress(asyncio.CancelledError):
        await other
    await shared.aclose()
    assert doors.seen == [OPENED, "closed"]


async def test_a_model_that_cannot_be_opened_is_tried_again_by_the_next_call() -> None:
    doors = Doors()
    shared = SharedModel(doors)
    doors.broken = True
    with pytest.raises(OSError, match="no sockets left"):
        async with shared.in_use():
            pass

    doors.broken = False
    async with shared.in_use():
        assert doors.seen == [OPENED]
    await shared.aclose()


def test_the_end_of_an_event_loop_closes_what_is_open_on_it() -> None:
    doors = Doors()
    shared = SharedModel(doors)

    async def call() -> None:
        async with shared.in_use():
            pass

    for _ in range(2):
        asyncio.run(call())

    assert doors.seen == [OPENED, "closed"] * 2
