"""Errors on their way into workflow history: which are final, and under what name.

Only perdure's own errors carry their text into history. Of anything else the type's name goes in,
because an exception of a provider or a driver may quote a key or an address. For the same reason
they are raised `from None`: a failure takes its cause along, text, stack and all.
"""

from __future__ import annotations

from datetime import timedelta

from temporalio.exceptions import ApplicationError

from perdure.errors import ModelError, PerdureError, StoreError


def as_failure(error: PerdureError) -> ApplicationError:
    """A perdure error as a failure of its activity; the workflow and the client know it by its
    type's name.
    """
    retry_after: timedelta | None = None
    is_final = not isinstance(error, StoreError)
    if isinstance(error, ModelError):
        is_final = not error.retryable
        if error.retry_after is not None:
            retry_after = timedelta(seconds=error.retry_after)
    return ApplicationError(
        str(error),
        type=type(error).__name__,
        non_retryable=is_final,
        next_retry_delay=retry_after,
    )
