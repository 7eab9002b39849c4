"""How the demo ends: by itself, by a signal, by a key, or because something went wrong."""

from __future__ import annotations

import asyncio
import select
import signal
import sys
from collections.abc import Coroutine
from datetime import timedelta
from typing import Any, TypeVar

from temporalio.client import Client
from temporalio.service import RPCError

from perdure.demo.crew import Crew
from perdure.demo.telling import Telling
from perdure.errors import DemoError

T = TypeVar("T")

_TIME_LIMIT = 600.0
"""Seconds for the whole story; a script takes half a minute."""

_CHECK_EVERY = 2.0
_SILENCES = 3


async def guarded(story: Coroutine[Any, Any, T], crew: Crew, client: Client) -> T:
    """The story, unless a worker or the server ends that nobody ended, or nothing comes to an end.

    Raises DemoError then.
    """
    telling = asyncio.ensure_future(story)
    guards = [asyncio.ensure_future(crew.guard()), asyncio.ensure_future(_server_guard(client))]
    try:
        done, _ = await asyncio.wait(
            (telling, *guards), timeout=_TIME_LIMIT, return_when=asyncio.FIRST_COMPLETED
        )
        for guard in guards:
            if guard in done:
                guard.result()
        if telling not in done:
            raise DemoError(
                f"the demo did not end within {_TIME_LIMIT:.0f} seconds; start it again"
            )
        return telling.result()
    finally:
        for task in (telling, *guards):
            task.cancel()
        await asyncio.gather(telling, *guards, return_exceptions=True)


async def _server_guard(client: Client) -> None:
    """Raise DemoError when the server does not answer any more. Clients would wait for it."""
    silences = 0
    while silences < _SILENCES:
        await asyncio.sleep(_CHECK_EVERY)
        try:
            await client.service_client.check_health(timeout=timedelta(seconds=_CHECK_EVERY))
            silences = 0
        except RPCError:
            silences += 1
    raise DemoError("the Temporal server has ended; start the demo again, and it goes on")


async def until_told(telling: Telling) -> None:
    """Wait for Enter, Ctrl-C or SIGTERM; without a terminal, for the signals alone."""
    loop = asyncio.get_running_loop()
    told = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, told.set)
    has_terminal = sys.stdin is not None and sys.stdin.isatty()
    if has_terminal:
        loop.add_reader(sys.stdin, told.set)
    telling.remark(
        "The server and a worker stay up until "
        + ("Enter or Ctrl-C." if has_terminal else "SIGINT or SIGTERM."),
        style="bold",
    )
    await told.wait()
    if has_terminal and select.select([sys.stdin], [], [], 0)[0]:
        sys.stdin.readline()  # the Enter, which is not for the shell


async def until_terminated(show: Coroutine[Any, Any, T]) -> T:
    """Run to the end, or until SIGTERM, which ends it in good order with status 143."""
    task = asyncio.current_task()
    assert task is not None
    was_told = False

    def end() -> None:
        nonlocal was_told
        was_told = True
        task.cancel()

    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, end)
    try:
        return await show
    except asyncio.CancelledError:
        if was_told:
            raise SystemExit(128 + signal.SIGTERM) from None
        raise
