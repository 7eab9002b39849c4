"""Which functions cannot be tools."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

from perdure.errors import AgentError
from perdure.tools import Tool, ToolContext, tool


def find_order(order_id: str) -> str:
    return order_id


def no_annotation(order_id) -> str:  # type: ignore[no-untyped-def]
    return str(order_id)


def takes_args(*orders: str) -> str:
    return ""


def takes_kwargs(**orders: str) -> str:
    return ""


def two_contexts(one: ToolContext, two: ToolContext) -> str:
    return ""


def unknown_type(order: Missing) -> str:  # type: ignore[name-defined]  # noqa: F821
    return ""


def not_json(callback: Callable[[], None]) -> str:
    return ""


class Unknown:
    pass


def no_schema(thing: Unknown) -> str:
    return ""


def yields() -> Iterator[str]:
    yield ""


async def yields_later() -> AsyncIterator[str]:
    yield ""


class Shop:
    def find_order(self, order_id: str) -> str:
        return order_id


@pytest.mark.parametrize(
    "function, reason",
    [
        (no_annotation, "parameter 'order_id' of tool 'no_annotation' has no annotation"),
        (Shop.find_order, "make the tool from the bound method instead: tool(instance.find_order)"),
        (takes_args, "tool 'takes_args' takes *orders, which a model cannot fill"),
        (takes_kwargs, "tool 'takes_kwargs' takes **orders, which a model cannot fill"),
        (two_contexts, "tool 'two_contexts' takes the ToolContext twice"),
        (unknown_type, "an annotation of tool 'unknown_type' cannot be resolved: name 'Missing'"),
        (not_json, "a parameter of tool 'not_json' has a type that JSON cannot carry"),
        (no_schema, "a parameter of tool 'no_schema' has a type that JSON cannot carry"),
        (yields, "tool 'yields' yields; return one value instead"),
        (yields_later, "tool 'yields_later' yields; return one value instead"),
        (Shop, "tool 'Shop' must be a function, not <class"),
        (len, "parameter 'obj' of tool 'len' has no annotation"),
        (lambda: "", "tool name '<lambda>' is not one that every provider takes"),
        ("find_order", "tool name None is not one that every provider takes"),
        (tool(find_order), "'find_order' is a tool already"),
    ],
)
def test_a_function_that_no_model_could_call_is_refused_at_once(function: Any, reason: str) -> None:
    with pytest.raises(AgentError) as raised:
        tool(function, name=function.name if isinstance(function, Tool) else None)

    assert reason in str(raised.value)


@pytest.mark.parametrize("name", ["", "find order", "a.b", "größe", "x" * 65, 7])
def test_a_name_that_some_provider_refuses_is_refused(name: Any) -> None:
    with pytest.raises(AgentError, match="letters, digits, _ and -"):
        tool(find_order, name=name)


@pytest.mark.parametrize("timeout", [0, -1, float("nan"), float("inf"), True, "30"])
def test_a_timeout_that_is_no_number_of_seconds_is_refused(timeout: Any) -> None:
    with pytest.raises(AgentError, match="the timeout of tool 'find_order' must be"):
        tool(timeout=timeout)(find_order)
