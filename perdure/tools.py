"""Tools: functions of the application that a model may call.

`tool` reads everything a model needs from the function itself (its name, docstring and
annotations), once, when it is declared; a wrong declaration fails there and then, not in a run.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import functools
import inspect
import math
import re
import threading
from collections.abc import Callable, Mapping
from typing import Any, Final, Generic, ParamSpec, TypeVar, overload

from perdure.errors import AgentError
from perdure.messages import ContentBlock
from perdure.tool_context import ToolContext
from perdure.tool_docstring import read_docstring, with_descriptions
from perdure.tool_results import content_blocks
from perdure.tool_schema import parameters_of

__all__ = ["Tool", "ToolContext", "tool"]

P = ParamSpec("P")
R = TypeVar("R")

NAME: Final = re.compile(r"[a-zA-Z0-9_-]{1,64}")
"""The tool names that every provider takes."""


class Tool(Generic[P, R]):
    """A function that a model may call. Made by `tool`; calling it calls the function.

    `parameters` is the JSON schema of its arguments, `timeout` the seconds that one attempt may
    take (None: the worker's default), `idempotent` whether it may run again when its worker died
    half-way.
    """

    __slots__ = (
        "_function",
        "_parameters",
        "description",
        "idempotent",
        "name",
        "parameters",
        "timeout",
    )

    name: Final[str]
    description: Final[str]
    parameters: Final[dict[str, Any]]
    idempotent: Final[bool]
    timeout: Final[float | None]

    def __init__(
        self,
        function: Callable[P, R],
        *,
        name: str | None = None,
        idempotent: bool = False,
        timeout: float | None = None,
    ) -> None:
        self.name = _checked_name(function, name)
        _check_function(function, self.name)
        described: Any = function.func if isinstance(function, functools.partial) else function
        self.description, descriptions = read_docstring(described)
        self._function = function
        self._parameters = parameters_of(function, self.name)
        self.parameters = with_descriptions(self._parameters.schema, descriptions)
        self.idempotent = idempotent
        self.timeout = _checked_timeout(timeout, self.name)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the function as it is, without checks: a tool can be tested like any function."""
        return self._function(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<Tool {self.name}>"

    async def call(
        self, arguments: Mapping[str, Any], context: ToolContext
    ) -> tuple[ContentBlock, ...]:
        """Run the tool as a model asked for it.

        A function that is not async runs in a thread of its own, with the caller's context
        variables; when the call is cancelled the thread is left to end by itself.

        Raises `ToolArgumentsError` when the arguments do not fit (the function is not called),
        `ToolResultError` when its result cannot be shown to a model, and whatever the function
        raises.
        """
        args, kwargs = self._parameters.bind(arguments, context)
        function: Callable[[], Any] = functools.partial(self._function, *args, **kwargs)
        try:
            result = function() if _is_async(self._function) else await _in_thread(function)
            if inspect.isawaitable(result):
                result = await result
        except SystemExit as error:
            # Let through, it would end the worker, and with it every other session that runs there.
            raise RuntimeError(
                f"the tool tried to end the process: exit status {error.code}"
            ) from error
        return content_blocks(result)


@overload
def tool(
    function: Callable[P, R],
    /,
    *,
    name: str | None = ...,
    idempotent: bool = ...,
    timeout: float | None = ...,
) -> Tool[P, R]: ...


@overload
def tool(
    *, name: str | None = ..., idempotent: bool = ..., timeout: float | None = ...
) -> Callable[[Callable[P, R]], Tool[P, R]]: ...


def tool(
    function: Callable[P, R] | None = None,
    /,
    *,
    name: str | None = None,
    idempotent: bool = False,
    timeout: float | None = None,
) -> Tool[P, R] | Callable[[Callable[P, R]], Tool[P, R]]:
    """Make a tool of a function: `@tool`, `@tool(timeout=30)`, or `tool(shop.find_order,
    name="find_order")`.

    The name, the description and the JSON schema of the arguments come from the function's name,
    docstring and annotations. A parameter of type `ToolContext` is filled with the call's context
    and hidden from the model.

    `idempotent=True` says that the tool may run again when its worker died half-way; without it a
    tool runs at most once. `timeout` is in seconds, for one attempt.

    Raises `AgentError` when the declaration is wrong.
    """
    if function is None:
        return functools.partial(Tool, name=name, idempotent=idempotent, timeout=timeout)
    return Tool(function, name=name, idempotent=idempotent, timeout=timeout)


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


def _is_async(function: Any) -> bool:
    called = function if inspect.isroutine(function) else type(function).__call__
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(called)


async def _in_thread(function: Callable[[], Any]) -> Any:
    # A thread of its own rather than the loop's pool: tools that hang would fill the pool, and the
    # store needs it; and a daemon, so that a hanging tool does not keep a worker from ending.
    loop = asyncio.get_running_loop()
    outcome: asyncio.Future[Any] = loop.create_future()
    context = contextvars.copy_context()

    def settle(result: Any, error: BaseException | None) -> None:
        if outcome.done():
            return
        if error is None:
            outcome.set_result(result)
        elif isinstance(error, StopIteration):  # a future refuses to carry one
            outcome.set_exception(RuntimeError("the tool raised StopIteration"))
        else:
            outcome.set_exception(error)

    def run() -> None:
        result, error = None, None
        try:
            result = context.run(function)
        except BaseException as raised:  # noqa: BLE001 - handed to the caller, whatever it is
            error = raised
        with contextlib.suppress(RuntimeError):  # the loop has ended, nobody waits for the result
            loop.call_soon_threadsafe(settle, result, error)

    threading.Thread(target=run, name="perdure-tool", daemon=True).start()
    return await outcome
