"""Threads for file work, in lanes: the event loop goes on, and so does everyone else's work."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from typing import Any, TypeVar

Result = TypeVar("Result")


class Lanes:
    """Runs blocking jobs in threads, those of one lane one after the other in the order given.

    A lane takes one thread at most, so that many callers who wait for one file cannot take the
    threads of those who wait for another. Up to `threads` lanes run at the same time.
    """

    def __init__(self, threads: int, name: str) -> None:
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix=name)
        self._lock = threading.Lock()
        self._waiting: dict[bytes, deque[tuple[Future[Any], Callable[[], Any]]]] = {}

    async def run(self, lane: bytes, job: Callable[[], Result]) -> Result:
        """Return what the job returns. A caller that is cancelled does not stop a running job."""
        context = copy_context()
        future: Future[Result] = Future()
        ticket = (future, lambda: context.run(job))
        with self._lock:
            is_idle = lane not in self._waiting
            self._waiting.setdefault(lane, deque()).append(ticket)
        if is_idle:
            self._pool.submit(self._drain, lane)
        return await asyncio.wrap_future(future)

    def _drain(self, lane: bytes) -> None:
        while ticket := self._next(lane):
            future, job = ticket
            if not future.set_running_or_notify_cancel():
                continue
            try:
                result = job()
            except BaseException as error:  # noqa: BLE001 - it belongs to the caller who waits
                future.set_exception(error)
            else:
                future.set_result(result)

    def _next(self, lane: bytes) -> tuple[Future[Any], Callable[[], Any]] | None:
        with self._lock:
            if self._waiting[lane]:
                return self._waiting[lane].popleft()
            del self._waiting[lane]
            return None
