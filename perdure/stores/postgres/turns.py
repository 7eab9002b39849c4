"""Turns by name, within one event loop."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator


class Turns:
    """One at a time for each name, in the order in which they came."""

    def __init__(self) -> None:
        self._turns: dict[str, tuple[asyncio.Lock, int]] = {}

    @contextlib.asynccontextmanager
    async def turn(self, name: str) -> AsyncIterator[None]:
        """Wait for the turn; it ends with the block."""
        lock, users = self._turns.get(name) or (asyncio.Lock(), 0)
        self._turns[name] = (lock, users + 1)
        try:
            async with lock:
                yield
        finally:
            _, users = self._turns[name]
            if users == 1:
                del self._turns[name]
            else:
                self._turns[name] = (lock, users - 1)
