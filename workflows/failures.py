"""Failures of activities, as the outcome of a command tells them."""

from __future__ import annotations

from typing import Final

from temporalio.exceptions import (
    ActivityError,
    ApplicationError,
    CancelledError,
    FailureError,
    TimeoutError,
)

from perdure.protocol import ErrorInfo

ActivityFailure: Final = (ActivityError, ApplicationError)
"""What a failed activity raises in the workflow: a local one its own error, another one wrapped."""


WORKFLOW_CANCELLED: Final = ErrorInfo(
    type="SessionClosedError", message="the session's workflow was cancelled"
)


def reason_of(error: FailureError) -> ErrorInfo:
    """Why an activity failed, in the words of whoever failed it."""
    cause = error.cause if isinstance(error, ActivityError) else error
    if isinstance(cause, ApplicationError):
        return ErrorInfo(type=cause.type or "PerdureError", message=cause.message)
    if isinstance(cause, CancelledError):
        return WORKFLOW_CANCELLED
    if isinstance(cause, TimeoutError):
        last = cause.__cause__
        if isinstance(last, ApplicationError):
            return ErrorInfo(type=last.type or "PerdureError", message=last.message)
        return ErrorInfo(
            type="RunFailedError", message=f"no worker finished the call: {cause.message}"
        )
    return ErrorInfo(type="PerdureError", message=str(cause or error))


class CommandFailed(Exception):
    """A command cannot be done, and has changed nothing."""

    def __init__(self, error: ErrorInfo) -> None:
        super().__init__(error.message)
        self.error = error
