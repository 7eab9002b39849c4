"""Lifecycle events: to the application's publisher, and on the stream for whoever subscribes."""

from __future__ import annotations

from temporalio import workflow

from perdure import names
from perdure.protocol import ErrorInfo, LifecycleEvent, SessionState
from perdure.workflows.failures import ActivityFailure, reason_of
from perdure.workflows.session_stream import SessionStream
from perdure.workflows.timing import PUBLISHING


class Lifecycle:
    """Tells of an effect once it has succeeded. What goes wrong in the telling never undoes it."""

    def __init__(self, state: SessionState, stream: SessionStream) -> None:
        self._state = state
        self._stream = stream

    async def publish(self, event: LifecycleEvent) -> None:
        """Deliver an event: a bounded number of tries, then it is reported and life goes on."""
        self._stream.publish_lifecycle(event)
        try:
            await workflow.execute_local_activity(
                names.PUBLISH, event, summary=f"publish {event.type}", **PUBLISHING
            )
        except ActivityFailure as failure:
            error = reason_of(failure)
            message = f"{event.type} was not delivered: {error.message}"
            self._state.last_error = ErrorInfo(type=error.type, message=message)
            workflow.logger.warning(message)

    def note_failure(self, command_id: str, verb: str, error: ErrorInfo) -> None:
        """A command that came by signal could not be done: nobody waits, so it is left where
        people look.
        """
        # Without arguments, as wherever the SDK's loggers are used: they add the workflow's ID to
        # the format, and that may have percent signs.
        workflow.logger.warning(f"{verb} refused: {error.message}")
        self._state.last_error = error
        self._stream.publish_lifecycle(
            LifecycleEvent(
                type="command_failed",
                session_id=self._state.session_id,
                leaf_id=self._state.leaf_id,
                command_id=command_id,
                verb=verb,
                error=error,
            )
        )
