"""Tools: functions of the application that a model may call.

`tool` reads everything a model needs from the function itself (its name, docstring and
annotations), once, when it is declared; a wrong declaration fails there and then, not in a run.
"""

from __future__ import annotations

import functools
import inspect
import math
import re
from collections.abc import Callable, Mapping
from typing import Any, Final, Generic, ParamSpec, TypeVar, overload

from perdure.errors import AgentError, ToolArgumentsError
from perdure.messages import ContentBlock
from perdure.tool_calling import called, is_async
from perdure.tool_condition import NeedsApproval, checked_condition, holds
from perdure.tool_context import ToolContext
from perdure.tool_docstring import read_docstring, with_descriptions
from perdure.tool_results import content_blocks
from perdure.tool_schema import parameters_of

__all__ = ["MAX_RESULT", "NeedsApproval", "Tool", "ToolContext", "tool"]

P = ParamSpec("P")
R = TypeVar("R")

MAX_RESULT: Final = 100_000
"""The characters of a result that a model is sent, unless the tool says otherwise."""

NAME: Final = re.compile(r"[a-zA-Z0-9_-]{1,64}")
"""The tool names that every provider takes."""


class Tool(Generic[P, R]):
    """A function that a model may call. Made by `tool`; calling it calls the function.

    `parameters` is the JSON schema of its arguments, `timeout` the seconds that one attempt may
    take (None: the worker's default), `idempotent` whether it may run again when its worker died
    half-way, `parallel` whether beside other calls, `max_result` how many characters of its result
    a model is sent (None: all).
    """

    __slots__ = (
        "_function",
        "_needs_approval",
        "_parameters",
        "description",
        "idempotent",
        "max_result",
        "name",
        "parallel",
        "parameters",
        "timeout",
    )

    name: Final[str]
    description: Final[str]
    parameters: Final[dict[str, Any]]
    idempotent: Final[bool]
    timeout: Final[float | None]
    parallel: Final[bool]
    max_result: Final[int | None]

    def __init__(
        self,
        function: Callable[P, R],
        *,
        name: str | None = None,
        idempotent: bool = False,
        timeout: float | None = None,
        needs_approval: NeedsApproval = False,
        parallel: bool = True,
        max_result: int | None = MAX_RESULT,
    ) -> None:
        self.name = _checked_name(function, name)
        _check_function(function, self.name)
        described: Any = function.func if isinstance(function, functools.partial) else function
        self.description, descriptions = read_docstring(described)
        self._function = function
        self._parameters = parameters_of(function, self.name)
        self.parameters = with_descriptions(self._parameters.schema, descriptions)
        self.idempotent = _checked_flag(idempotent, "idempotent", self.name)
        self.timeout = _checked_timeout(timeout, self.name)
        self._needs_approval = checked_condition(needs_approval, self.name)
        self.parallel = _checked_flag(parallel, "parallel", self.name)
        self.max_result = _checked_length(max_result, self.name)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the function as it is, without checks: a tool can be tested like any function."""
        return self._function(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<Tool {self.name}>"

    def check(self, arguments: Mapping[str, Any]) -> None:
        """Raise `ToolArgumentsError` when the function could not be called with these arguments."""
        self._parameters.validated(arguments)

    async def wants_approval(self, arguments: Mapping[str, Any]) -> bool:
        """Whether a person has to agree before the tool is called with these arguments.

        Arguments that do not fit need none: the function is not called with them. A predicate that
        raises, or does not answer in time, has not said that none is needed.
        """
        if isinstance(self._needs_approval, bool):
            return self._needs_approval
        try:
            validated = self._parameters.validated(arguments)
        except ToolArgumentsError:
            return False
        return await holds(self._needs_approval, validated, self.name)

    async def call(
        self, arguments: Mapping[str, Any], context: ToolContext
    ) -> tuple[ContentBlock, ...]:
        """Run the tool as a model asked for it.

        A function that is not async runs in a thread of its own, with the caller's context
        variables; when the call is cancelled the thread is left to end by itself.

        Raises `ToolArgumentsError` when the arguments do not fit (the function is not called),
        `ToolResultError` when its result cannot be shown to a model, and whatever the function
        raises; what would end the process, or look like the call's own cancellation, as a
        RuntimeError.
        """
        args, kwargs = self._parameters.bind(arguments, context)
        function: Callable[[], Any] = functools.partial(self._function, *args, **kwargs)
        return content_blocks(await called(function, is_async=is_async(self._function)))


@overload
def tool(
    function: Callable[P, R],
    /,
    *,
    name: str | None = ...,
    idempotent: bool = ...,
    timeout: float | None = ...,
    needs_approval: NeedsApproval = ...,
    parallel: bool = ...,
    max_result: int | None = ...,
) -> Tool[P, R]: ...


@overload
def tool(
    *,
    name: str | None = ...,
    idempotent: bool = ...,
    timeout: float | None = ...,
    needs_approval: NeedsApproval = ...,
    parallel: bool = ...,
    max_result: int | None = ...,
) -> Callable[[Callable[P, R]], Tool[P, R]]: ...


def tool(
    function: Callable[P, R] | None = None,
    /,
    *,
    name: str | None = None,
    idempotent: bool = False,
    timeout: float | None = None,
    needs_approval: NeedsApproval = False,
    parallel: bool = True,
    max_result: int | None = MAX_RESULT,
) -> Tool[P, R] | Callable[[Callable[P, R]], Tool[P, R]]:
    """Make a tool of a function: `@tool`, `@tool(timeout=30)`, or `tool(shop.find_order,
    name="find_order")`.

    The name, the description and the JSON schema of the arguments come from the function's name,
    docstring and annotations. A parameter of type `ToolContext` is filled with the call's context
    and hidden from the model.

    `idempotent=True` says that the tool may run again when its worker died half-way; without it a
    tool runs at most once. `timeout` is in seconds, for one attempt.

    With `needs_approval` a call waits for a person: each, or those for which a predicate holds. It
    gets the validated arguments, in one dictionary. `parallel=False` keeps a call from running at
    the same time as any other of its message. A text longer than `max_result` characters is cut.

    Raises `AgentError` when the declaration is wrong.
    """
    if function is None:
        return functools.partial(
            Tool,
            name=name,
            idempotent=idempotent,
            timeout=timeout,
            needs_approval=needs_approval,
            parallel=parallel,
            max_result=max_result,
        )
    return Tool(
        function,
        name=name,
        idempotent=idempotent,
        timeout=timeout,
        needs_approval=needs_approval,
        parallel=parallel,
        max_result=max_result,
    )


def _checked_name(function: Any, name: str | None) -> str:
    if name is None:
        named = function.func if isinstance(function, functools.partial) else function
        name = getattr(named, "__name__", None)
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise AgentError(
            f"tool name {name!r} is not one that every provider takes; "
            "give one of 1 to 64 letters, digits, _ and -: tool(name=...)"
        )
    return name


def _check_function(function: Any, name: str) -> None:
    if isinstance(function, Tool):
        raise AgentError(f"{name!r} is a tool already; make a tool of the function itself")
    if isinstance(function, type) or not callable(function):
        raise AgentError(f"tool {name!r} must be a function, not {function!r}")
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise AgentError(f"tool {name!r} yields; return one value instead, a list for example")


def _checked_timeout(timeout: float | None, name: str) -> float | None:
    if timeout is None:
        return None
    if isinstance(timeout, bool) or not isinstance(timeout, (int, float)):
        raise AgentError(
            f"the timeout of tool {name!r} must be a number of seconds, not {timeout!r}"
        )
    if not (math.isfinite(timeout) and timeout > 0):
        raise AgentError(f"the timeout of tool {name!r} must be above 0 seconds, not {timeout!r}")
    return float(timeout)


def _checked_flag(flag: bool, what: str, name: str) -> bool:
    if not isinstance(flag, bool):
        raise AgentError(f"{what} of tool {name!r} must be True or False, not {flag!r}")
    return flag


def _checked_length(length: int | None, name: str) -> int | None:
    if length is not None and (type(length) is not int or length < 1):
        raise AgentError(
            f"max_result of tool {name!r} must be a number of characters above 0, or None, "
            f"not {length!r}"
        )
    return length
