"""Failures of activities, as the outcome of a command tells them."""

from __future__ import annotations

from temporalio.exceptions import ActivityError, ApplicationError, TimeoutError

from perdure.protocol import ErrorInfo


def reason_of(error: ActivityError) -> ErrorInfo:
    """Why an activity failed, in the words of whoever failed it."""
    cause = error.cause
    if isinstance(cause, ApplicationError):
        return ErrorInfo(type=cause.type or "PerdureError", message=cause.message)
    if isinstance(cause, TimeoutError):
        last = cause.__cause__
        if isinstance(last, ApplicationError):
            return ErrorInfo(type=last.type or "PerdureError", message=last.message)
        return ErrorInfo(
            type="RunFailedError",
            message=f"no worker finished {error.activity_type}: {cause.message}",
        )
    return ErrorInfo(type="PerdureError", message=str(cause or error))
