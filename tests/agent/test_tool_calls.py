"""What happens when a model calls a tool."""

from __future__ import annotations

import asyncio
import contextvars
import functools
import threading
from datetime import date
from decimal import Decimal
from enum import Enum
from typing import Any

import pytest
from pydantic import BaseModel

from perdure.errors import ToolArgumentsError
from perdure.messages import TextBlock
from perdure.tools import ToolContext, tool

CONTEXT = ToolContext(session_id="s1", run_id="r1", tool_call_id="c1", attempt=2)


class Colour(Enum):
    RED = "red"


class Item(BaseModel):
    name: str
    price: Decimal


async def test_arguments_reach_the_function_as_its_annotations_say() -> None:
    seen: list[Any] = []

    @tool
    def order(item: Item, day: date, colour: Colour, tags: set[str], count: int = 1) -> None:
        seen.extend([item, day, colour, tags, count])

    await order.call(
        {
            "item": {"name": "shoe", "price": "9.50"},
            "day": "2026-11-29",
            "colour": "red",
            "tags": ["a", "b", "a"],
            "count": "2",
        },
        CONTEXT,
    )

    assert seen == [
        Item(name="shoe", price=Decimal("9.50")),
        date(2026, 11, 29),
        Colour.RED,
        {"a", "b"},
        2,
    ]


async def test_the_context_is_passed_in_wherever_it_stands() -> None:
    @tool
    def first(ctx: ToolContext, word: str) -> str:
        return f"{ctx.tool_call_id} {ctx.attempt} {word}"

    @tool
    async def last(word: str, *, ctx: ToolContext) -> str:
        return f"{ctx.session_id} {ctx.run_id} {word}"

    assert await first.call({"word": "hi"}, CONTEXT) == (TextBlock(text="c1 2 hi"),)
    assert await last.call({"word": "hi"}, CONTEXT) == (TextBlock(text="s1 r1 hi"),)


async def test_parameters_that_are_positional_only_are_filled() -> None:
    @tool
    def join(ctx: ToolContext, left: str, /, right: str = "b") -> str:
        return f"{ctx.run_id} {left}{right}"

    assert await join.call({"left": "a"}, CONTEXT) == (TextBlock(text="r1 ab"),)


async def test_partials_methods_and_callable_objects_are_called() -> None:
    class Shop:
        def __init__(self, name: str) -> None:
            self.name = name

        async def find(self, order_id: str) -> str:
            return f"{self.name} {order_id}"

        async def __call__(self, order_id: str) -> str:
            return f"called {order_id}"

    def add(left: int, right: int) -> int:
        return left + right

    arguments = {"order_id": "7"}
    assert await tool(Shop("A").find).call(arguments, CONTEXT) == (TextBlock(text="A 7"),)
    assert await tool(Shop("A"), name="shop").call(arguments, CONTEXT) == (
        TextBlock(text="called 7"),
    )
    assert await tool(functools.partial(add, right=2)).call({"left": 1}, CONTEXT) == (
        TextBlock(text="3"),
    )
    assert await tool(functools.partial(Shop("B").find)).call(arguments, CONTEXT) == (
        TextBlock(text="B 7"),
    )


@tool
def search(query: str, limit: int = 3, tags: list[str] | None = None) -> str:
    return query


@pytest.mark.parametrize(
    "arguments, refusal",
    [
        ({}, "the arguments do not fit search:\n- query: missing, expected string"),
        (
            {"query": "shoes", "limit": "many"},
            "the arguments do not fit search:\n- limit: Input should be a valid integer, "
            "unable to parse string as an integer (got 'many')",
        ),
        (
            {"query": "shoes", "colour": "red"},
            "the arguments do not fit search:\n- colour: there is no such argument; "
            "search takes query, limit, tags",
        ),
        (
            {"query": "shoes", "tags": ["a", 7]},
            "the arguments do not fit search:\n- tags.1: Input should be a valid string (got 7)",
        ),
        (
            {"query": 7, "limit": None},
            "the arguments do not fit search:\n- query: Input should be a valid string (got 7)\n"
            "- limit: Input should be a valid integer (got None)",
        ),
        (
            {"INVALID_JSON": '{"query": '},
            "the arguments for search are not a JSON object; send them again as one. "
            'They were: {"query": ',
        ),
    ],
)
async def test_arguments_that_do_not_fit_are_refused_in_words_for_the_model(
    arguments: dict[str, Any], refusal: str
) -> None:
    with pytest.raises(ToolArgumentsError) as raised:
        await search.call(arguments, CONTEXT)

    assert str(raised.value) == refusal


async def test_a_refusal_stays_short_whatever_was_sent() -> None:
    with pytest.raises(ToolArgumentsError) as raised:
        await search.call({"query": ["x" * 10_000], **{f"a{n}": n for n in range(1000)}}, CONTEXT)

    lines = str(raised.value).split("\n")
    assert len(lines) == 22
    assert lines[-1] == "- and 981 more"
    assert max(map(len, lines)) < 200


async def test_the_context_cannot_be_given_by_the_model() -> None:
    @tool
    def whoami(ctx: ToolContext) -> str:
        return ctx.session_id

    with pytest.raises(ToolArgumentsError, match="ctx: there is no such argument; whoami takes no"):
        await whoami.call({"ctx": {"session_id": "other"}}, CONTEXT)


async def test_a_sync_function_runs_off_the_event_loop_with_the_context_variables() -> None:
    customer: contextvars.ContextVar[str] = contextvars.ContextVar("customer")
    customer.set("ada")
    may_end = threading.Event()

    @tool
    def who() -> str:
        assert may_end.wait(10), "the event loop did not run meanwhile"
        return f"{customer.get()} {threading.current_thread() is not threading.main_thread()}"

    answer = asyncio.create_task(who.call({}, CONTEXT))
    await asyncio.sleep(0)
    may_end.set()

    assert await answer == (TextBlock(text="ada True"),)


async def test_any_number_of_tools_may_block_at_once() -> None:
    everyone = threading.Barrier(64)

    @tool
    def meet() -> str:
        everyone.wait(30)
        return "met"

    answers = await asyncio.gather(*(meet.call({}, CONTEXT) for _ in range(64)))

    assert answers == [(TextBlock(text="met"),)] * 64


async def test_cancelling_the_call_cancels_an_async_tool() -> None:
    started, stopped = asyncio.Event(), asyncio.Event()

    @tool
    async def endless() -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    running = asyncio.create_task(endless.call({}, CONTEXT))
    await started.wait()
    running.cancel()

    with pytest.raises(asyncio.CancelledError):
        await running
    assert stopped.is_set()


async def test_cancelling_the_call_does_not_wait_for_a_thread() -> None:
    started, may_end = threading.Event(), threading.Event()

    @tool
    def stubborn() -> None:
        started.set()
        may_end.wait(10)

    running = asyncio.create_task(stubborn.call({}, CONTEXT))
    await asyncio.to_thread(started.wait, 10)
    running.cancel()

    with pytest.raises(asyncio.CancelledError):
        await running
    may_end.set()


@pytest.mark.parametrize(
    "raised, seen",
    [
        (LookupError("no such order"), LookupError),
        (StopIteration("done"), RuntimeError),
        (SystemExit(3), RuntimeError),
    ],
)
async def test_what_a_tool_raises_reaches_the_caller_and_never_ends_the_process(
    raised: BaseException, seen: type[Exception]
) -> None:
    @tool
    def in_a_thread() -> None:
        raise raised

    @tool
    async def on_the_loop() -> None:
        raise raised

    with pytest.raises(seen):
        await in_a_thread.call({}, CONTEXT)
    with pytest.raises(seen):
        await on_the_loop.call({}, CONTEXT)
