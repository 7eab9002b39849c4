"""Errors on their way into workflow history: which are final, and under what name.

Only perdure's own errors carry their text into history. Of anything else the type's name goes in,
because an exception of a provider or a driver may quote a key or an address. For the same reason
they are raised `from None`: a failure takes its cause along, text, stack and all.
"""

from __future__ import annotations

import logging
from datetime import timedelta

from temporalio import activity
from temporalio.exceptions import ApplicationError, ApplicationErrorCategory

from perdure.errors import McpServerError, ModelError, PerdureError, StoreError


def as_failure(error: PerdureError, *, is_final: bool | None = None) -> ApplicationError:
    """A perdure error as a failure of its activity; the workflow and the client know it by its
    type's name. Whether it is final is told by its kind, unless the caller knows better.

    To the SDK it is benign, so that it does not log a traceback for what is a plain answer; a line
    in the log says what happened.
    """
    retry_after: timedelta | None = None
    if is_final is None:
        is_final = not isinstance(error, StoreError | McpServerError)
    if isinstance(error, ModelError):
        is_final = not error.retryable
        if error.retry_after is not None:
            retry_after = timedelta(seconds=error.retry_after)
    name = type(error).__name__
    info = activity.info()
    activity.logger.log(
        logging.INFO if is_final else logging.WARNING,
        f"{info.activity_type}, attempt {info.attempt}: {name}: {error}",
    )
    return ApplicationError(
        str(error),
        type=name,
        non_retryable=is_final,
        next_retry_delay=retry_after,
        category=ApplicationErrorCategory.BENIGN,
    )
