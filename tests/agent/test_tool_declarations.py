"""What a function tells a model."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field

from perdure.tools import ToolContext, tool


class Address(BaseModel):
    street: str
    number: int


def test_a_bare_decorator_takes_everything_from_the_function() -> None:
    @tool
    async def find_order(order_id: str, limit: int = 3) -> str:
        """Look an order up."""
        return f"{order_id} {limit}"

    assert (find_order.name, find_order.description) == ("find_order", "Look an order up.")
    assert (find_order.idempotent, find_order.timeout) == (False, None)
    assert find_order.parameters == {
        "type": "object",
        "properties": {
            "order_id": {"type": "string"},
            "limit": {"type": "integer", "default": 3},
        },
        "required": ["order_id"],
        "additionalProperties": False,
    }


def test_options_are_carried() -> None:
    @tool(name="look-up", idempotent=True, timeout=30)
    def find_order(order_id: str) -> str:
        return order_id

    assert (find_order.name, find_order.idempotent, find_order.timeout) == ("look-up", True, 30.0)


def test_a_tool_without_parameters_takes_an_empty_object() -> None:
    @tool
    def now() -> str:
        return "noon"

    assert now.parameters == {"type": "object", "properties": {}, "additionalProperties": False}


def test_a_tool_is_still_the_function_for_whoever_calls_it() -> None:
    @tool
    def double(number: int) -> int:
        return number * 2

    assert double(21) == 42


def test_no_docstring_is_an_empty_description() -> None:
    @tool
    def now() -> str:
        return "noon"

    assert now.description == ""


def google(
    order_id: str, limit: int, note: Annotated[str, Field(description="said by the field")]
) -> str:
    """Look an order up.

    Only orders of this year.

    Args:
        order_id: The number
            on the receipt.
        limit (int): How many.
        note: Said by the docstring.

    Returns:
        The order's state.

    Raises:
        LookupError: No such order.
    """
    return order_id


def numpy(
    order_id: str, limit: int, note: Annotated[str, Field(description="said by the field")]
) -> str:
    """Look an order up.

    Only orders of this year.

    Parameters
    ----------
    order_id : str
        The number
        on the receipt.
    limit
        How many.
    note
        Said by the docstring.

    Returns
    -------
    str
        The order's state.
    """
    return order_id


def sphinx(
    order_id: str, limit: int, note: Annotated[str, Field(description="said by the field")]
) -> str:
    """Look an order up.

    Only orders of this year.

    :param order_id: The number
        on the receipt.
    :param int limit: How many.
    :param note: Said by the docstring.
    :returns: The order's state.
    """
    return order_id


@pytest.mark.parametrize("function", [google, numpy, sphinx])
def test_docstrings_of_three_styles_describe_the_parameters(
    function: Callable[..., str], capfd: pytest.CaptureFixture[str]
) -> None:
    described = tool(function)

    assert described.description == (
        "Look an order up.\n\nOnly orders of this year.\n\nReturns: The order's state."
    )
    properties = described.parameters["properties"]
    assert {name: field["description"] for name, field in properties.items()} == {
        "order_id": "The number on the receipt.",
        "limit": "How many.",
        "note": "said by the field",
    }
    assert capfd.readouterr() == ("", "")


def test_notes_stay_in_the_description_and_other_sections_do_not() -> None:
    @tool
    def now() -> str:
        """Say what time it is.

        Note:
            Only in
            UTC.

        Examples:
            >>> now()
        """
        return "noon"

    assert now.description == "Say what time it is.\n\nNote: Only in UTC."


def test_a_docstring_that_only_looks_like_sections_is_kept_whole() -> None:
    @tool
    def now() -> str:
        """Say what time it is.

        Example: noon. Ratio 1:2.
        """
        return "noon"

    assert now.description == "Say what time it is.\n\nExample: noon. Ratio 1:2."


def test_a_rich_signature_becomes_a_rich_schema() -> None:
    @tool
    def ship(
        to: Address, speed: Literal["slow", "fast"] = "slow", gifts: list[str] | None = None
    ) -> str:
        return to.street

    assert ship.parameters["properties"] == {
        "to": {"$ref": "#/$defs/Address"},
        "speed": {"enum": ["slow", "fast"], "type": "string", "default": "slow"},
        "gifts": {
            "anyOf": [{"items": {"type": "string"}, "type": "array"}, {"type": "null"}],
            "default": None,
        },
    }
    assert ship.parameters["required"] == ["to"]


def test_a_default_that_json_cannot_carry_is_left_out_of_the_schema() -> None:
    @tool
    def now(zone: Any = object()) -> str:  # noqa: B008 - the point of the test
        return str(zone)

    assert now.parameters["properties"] == {"zone": {}}


def test_the_context_is_hidden_from_the_model_wherever_it_stands() -> None:
    @tool
    def first(ctx: ToolContext, order_id: str) -> str:
        return order_id

    @tool
    def last(order_id: str, *, ctx: ToolContext | None = None) -> str:
        return order_id

    assert list(first.parameters["properties"]) == ["order_id"]
    assert list(last.parameters["properties"]) == ["order_id"]


def test_a_bound_method_is_a_tool() -> None:
    class Shop:
        def find_order(self, order_id: str) -> str:
            """Look an order up."""
            return order_id

    found = tool(Shop().find_order)

    assert (found.name, found.description) == ("find_order", "Look an order up.")
    assert list(found.parameters["properties"]) == ["order_id"]


def test_a_static_method_and_a_wrapped_function_are_tools() -> None:
    class Shop:
        @tool
        @staticmethod
        def find_order(order_id: str) -> str:
            """Look an order up."""
            return order_id

    @tool
    @functools.wraps(google)
    def logged(*args: Any, **kwargs: Any) -> str:
        return google(*args, **kwargs)

    assert list(Shop.find_order.parameters["properties"]) == ["order_id"]
    assert (logged.name, list(logged.parameters["properties"])) == (
        "google",
        ["order_id", "limit", "note"],
    )


def test_what_a_partial_fills_in_is_hidden_from_the_model() -> None:
    def find_order(shop: object, order_id: str, limit: int = 3) -> str:
        """Look an order up."""
        return order_id

    found = tool(functools.partial(find_order, object(), limit=5))

    assert (found.name, found.description) == ("find_order", "Look an order up.")
    assert list(found.parameters["properties"]) == ["order_id"]


def test_an_object_that_can_be_called_is_a_tool_when_it_is_given_a_name() -> None:
    class FindOrder:
        async def __call__(self, order_id: str) -> str:
            return order_id

    assert list(tool(FindOrder(), name="find_order").parameters["properties"]) == ["order_id"]


def test_an_annotation_of_the_result_need_not_exist() -> None:
    @tool
    def now() -> OnlyForTypeCheckers:  # type: ignore[name-defined]  # noqa: F821
        return "noon"

    assert now.name == "now"
