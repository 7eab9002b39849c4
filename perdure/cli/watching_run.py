"""The events of a run that somebody sits in front of."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import AsyncIterator, Iterator

from perdure.errors import PerdureError
from perdure.protocol import Status
from perdure.run import Run, RunEvent
from perdure.session import Session

SILENCE = 2.0
"""Seconds without an event after which a watcher asks the session what it is about."""


class WatchedRun:
    """A run's events, one at a time, so that its watcher may do something else between two.

    While one is waited for, Ctrl-C cancels the run; a second one stops the waiting.
    """

    def __init__(self, session: Session, run: Run) -> None:
        self.run = run
        self.is_cancelling = False
        self._session = session
        self._events: AsyncIterator[RunEvent] = aiter(run)
        self._following: asyncio.Future[RunEvent] | None = None
        self._cancelling: asyncio.Task[None] | None = None

    async def next(self) -> RunEvent | None:
        """The next event; None when none came for two seconds. Raises StopAsyncIteration after the
        last one, the error that the run failed with, and KeyboardInterrupt at a second Ctrl-C.
        """
        if self._following is None:
            self._following = asyncio.ensure_future(anext(self._events))
        with self._interrupts():
            await asyncio.wait((self._following,), timeout=SILENCE)
        if not self._following.done():
            return None
        following, self._following = self._following, None
        return following.result()

    async def cancel(self) -> None:
        """Have the session stop the run, or take it from the queue."""
        self.is_cancelling = True
        # One that is over meanwhile says so itself.
        with contextlib.suppress(PerdureError):
            await self._session.cancel(self.run.id)

    async def status(self) -> Status | None:
        """How the session stands, if it tells soon."""
        with contextlib.suppress(TimeoutError, PerdureError):
            async with asyncio.timeout(SILENCE):
                return await self._session.status()
        return None

    @contextlib.contextmanager
    def _interrupts(self) -> Iterator[None]:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None
        is_given_up = False

        def interrupted() -> None:
            nonlocal is_given_up
            if not self.is_cancelling:
                self.is_cancelling = True
                self._cancelling = loop.create_task(self.cancel())
            else:
                is_given_up = True
                task.cancel()

        loop.add_signal_handler(signal.SIGINT, interrupted)
        try:
            yield
        except asyncio.CancelledError:
            if not is_given_up:
                raise
            raise KeyboardInterrupt from None
        finally:
            loop.remove_signal_handler(signal.SIGINT)
