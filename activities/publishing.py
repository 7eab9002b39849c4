"""Lifecycle events on their way to the application's publisher."""

from __future__ import annotations

import asyncio
import inspect

from temporalio import activity
from temporalio.exceptions import ApplicationError

from perdure import names
from perdure.lifecycle import Publisher, SessionEvent, publish_to
from perdure.protocol import LifecycleEvent

_ATTEMPT = 10.0
"""Seconds that the publisher has for one event."""


class PublishActivities:
    """Hands events to the publisher, if there is one."""

    def __init__(self, publisher: Publisher | None) -> None:
        self._publish = None if publisher is None else publish_to(publisher)

    @activity.defn(name=names.PUBLISH)
    async def publish(self, event: LifecycleEvent) -> None:
        """Deliver an event. One that cannot be delivered is tried again, a bounded number of
        times.
        """
        if self._publish is None:
            return
        told = SessionEvent.of(event)
        try:
            async with asyncio.timeout(_ATTEMPT):
                if inspect.iscoroutinefunction(self._publish):
                    await self._publish(told)
                else:
                    answer = await asyncio.to_thread(self._publish, told)
                    if inspect.isawaitable(answer):
                        await answer
        except Exception as error:  # noqa: BLE001 - it is told by its kind
            activity.logger.exception(f"the publisher raised on {event.type}")
            raise ApplicationError(
                f"the publisher raised {type(error).__name__}; see the worker's log",
                type="PublisherError",
            ) from None
