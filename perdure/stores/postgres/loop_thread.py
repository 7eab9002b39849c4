"""An event loop in a thread of its own.

Connections belong to the loop that opened them. In a loop of its own a store has one pool for all
loops of the process, however they come and go, and an application that blocks its loop holds up
nobody's appends.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

Result = TypeVar("Result")

_ENDING = 5.0
"""Seconds that the thread has to end."""


class StoppedError(Exception):
    """The thread was stopped, or is that of another process."""


class LoopThread:
    """Runs jobs in its loop; the thread starts with the first of them."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._is_stopped = False

    async def run(self, job: Callable[[], Awaitable[Result]]) -> Result:
        """Return what the job returns; it is cancelled with its caller.

        Raises:
            StoppedError: the thread was stopped before, or meanwhile.
        """

        async def running() -> Result:
            return await job()

        # Under the lock, since a loop that was told to stop would never get to it.
        with self._lock:
            loop = self._started()
            future = asyncio.run_coroutine_threadsafe(running(), loop)
        try:
            return await asyncio.wrap_future(future)
        except asyncio.CancelledError:
            if self._is_stopped:
                raise StoppedError from None
            raise

    def stop(self, last: Callable[[], Any]) -> None:
        """Cancel what runs, do something last in the thread, and end it. Blocks for a moment."""
        with self._lock:
            loop, thread = self._loop, self._thread
            was_stopped, self._is_stopped = self._is_stopped, True
        if was_stopped or loop is None or thread is None or not thread.is_alive():
            return
        loop.call_soon_threadsafe(last)
        loop.call_soon_threadsafe(loop.stop)
        if thread is not threading.current_thread():
            thread.join(_ENDING)

    def _started(self) -> asyncio.AbstractEventLoop:
        # After a fork the thread is the other process's, and so are the connections.
        if self._is_stopped or (self._thread is not None and not self._thread.is_alive()):
            raise StoppedError
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            self._thread = threading.Thread(
                target=_serve, args=(self._loop,), name=self._name, daemon=True
            )
            self._thread.start()
        return self._loop


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
    finally:
        tasks = asyncio.all_tasks(loop)
        for task in tasks:
            task.cancel()
        if tasks:
            loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
        # Connections are closed in the next rounds.
        loop.run_until_complete(asyncio.sleep(0))
        loop.run_until_complete(loop.shutdown_default_executor())
        loop.close()
