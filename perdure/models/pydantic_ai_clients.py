"""Calls that share what a model holds open, its connections before all."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

from pydantic_ai.models import Model

IDLE: Final = 60.0
"""Seconds after its last call for which a model is kept open."""


class SharedModel:
    """A model that is opened by the first of several calls and closed some time after the last.

    It is held open by a task of the event loop that the calls run on, so that it is opened and
    closed in one place, and closed at the latest when the loop's runner ends its tasks. Connections
    belong to a loop: a call on another one that runs at the same time opens the model for itself.
    """

    def __init__(self, model: Model[Any], *, idle: float = IDLE) -> None:
        self._model = model
        self._idle = idle
        self._holder: _Holder | None = None

    @asynccontextmanager
    async def in_use(self) -> AsyncIterator[None]:
        """Keep the model open."""
        holder = self._holder
        loop = asyncio.get_running_loop()
        if holder is not None and holder.loop is not loop and holder.loop.is_running():
            async with self._model:
                yield
            return
        if holder is None or holder.loop is not loop or holder.is_ending:
            holder = self._holder = _Holder(self._model, loop, self._idle)
        async with holder.in_use():
            yield

    async def aclose(self) -> None:
        """Close the model now, if no call uses it; a later call opens it again."""
        holder, self._holder = self._holder, None
        if holder is not None and holder.loop is asyncio.get_running_loop():
            await holder.aclose()


class _Holder:
    def __init__(self, model: Model[Any], loop: asyncio.AbstractEventLoop, idle: float) -> None:
        self.loop = loop
        self._model = model
        self._idle = idle
        self._users = 0
        self._timer: asyncio.TimerHandle | None = None
        self._end = asyncio.Event()
        self._opened: asyncio.Future[None] = loop.create_future()
        # Not within the call that happens to be the first: the holder outlives it.
        self._task = loop.create_task(
            self._hold(), name="perdure: a model held open", context=contextvars.Context()
        )

    @property
    def is_ending(self) -> bool:
        return self._end.is_set()

    @asynccontextmanager
    async def in_use(self) -> AsyncIterator[None]:
        self._users += 1
        if self._timer is not None:
            self._timer.cancel()
        try:
            await asyncio.shield(self._opened)
            yield
        finally:
            self._users -= 1
            if not self._users:
                self._timer = self.loop.call_later(self._idle, self._end.set)

    async def aclose(self) -> None:
        if not self._users:
            self._end.set()
            await asyncio.wait({self._task})

    async def _hold(self) -> None:
        try:
            async with self._model:
                self._opened.set_result(None)
                await self._end.wait()
        except Exception as error:
            if self._opened.done():
                raise
            self._opened.set_exception(error)
            self._opened.exception()  # told to whoever waits, and to nobody if nobody does
        finally:
            self._end.set()
            self._opened.cancel()
            if self._timer is not None:
                self._timer.cancel()
