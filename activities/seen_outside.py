"""What a worker knows of how its sessions are to be seen in the Temporal UI."""

from __future__ import annotations

import asyncio
import logging
import time
from typing import Final

from temporalio.client import Client
from temporalio.service import RPCError

from perdure.protocol import SeenOutside
from perdure.search_attributes import are_registered

logger = logging.getLogger("perdure.activities")

_ASKED_AGAIN_AFTER: Final = 60.0
"""Seconds after which the server is asked again, so that attributes which are registered while
workers run are used soon."""

_PATIENCE: Final = 2.0


class Outside:
    """Tells it for the sessions that open and the runs that start.

    Without a client there is nobody to ask, and no search attributes.
    """

    def __init__(self, *, shows_text: bool = True) -> None:
        self.client: Client | None = None
        self._shows_text = shows_text
        self._has_attributes = False
        self._asked_at = -_ASKED_AGAIN_AFTER
        self._asking: asyncio.Task[None] | None = None

    async def seen(self) -> SeenOutside:
        """What is known now. Only the first one has to wait for the server, for two seconds at
        most.
        """
        is_first = self._asked_at < 0
        if self.client is not None and self._asking is None and self._is_old():
            self._asking = asyncio.create_task(self._ask(self.client))
        if is_first and self._asking is not None:
            await asyncio.wait([self._asking], timeout=_PATIENCE)
        return SeenOutside(hides_text=not self._shows_text, has_attributes=self._has_attributes)

    async def close(self) -> None:
        """Ask no more."""
        if self._asking is not None:
            self._asking.cancel()
            await asyncio.wait([self._asking])

    def _is_old(self) -> bool:
        return time.monotonic() - self._asked_at > _ASKED_AGAIN_AFTER

    async def _ask(self, client: Client) -> None:
        try:
            self._has_attributes = await are_registered(client)
        except RPCError as error:
            # They are a convenience. What was known last stands.
            logger.info("the server does not tell its search attributes: %s", error.message)
        finally:
            self._asked_at = time.monotonic()
            self._asking = None
