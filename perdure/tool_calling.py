"""Calling a function of the application, whatever it may do."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import inspect
import threading
from collections.abc import Callable
from typing import Any


async def called(function: Callable[[], Any], *, is_async: bool) -> Any:
    """What the function returns. One that is not async runs in a thread of its own, with the
    caller's context variables; when the call is cancelled the thread is left to end by itself.

    Raises what the function raises, if that is an `Exception`. Anything else that it raises by
    itself becomes a RuntimeError: let through, it would end the worker, and with it every other
    session that runs there, or would look as if the call had been cancelled.
    """
    task = asyncio.current_task()
    cancellations = task.cancelling() if task is not None else 0
    try:
        result = function() if is_async else await _in_thread(function)
        return await result if inspect.isawaitable(result) else result
    except (Exception, GeneratorExit):
        raise
    except asyncio.CancelledError as error:
        if task is not None and task.cancelling() > cancellations:
            raise
        raise RuntimeError("the tool was cancelled from inside") from error
    except SystemExit as error:
        raise RuntimeError(
            f"the tool tried to end the process: exit status {error.code}"
        ) from error
    except BaseException as error:
        raise RuntimeError(f"the tool raised {type(error).__name__}") from error


def is_async(function: Any) -> bool:
    """Whether calling the function only makes a coroutine."""
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
        elif isinstance(error, StopIteration | GeneratorExit):  # a future, or its task, refuses it
            outcome.set_exception(RuntimeError(f"the tool raised {type(error).__name__}"))
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
