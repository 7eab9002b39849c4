"""What a failed call of a pydantic-ai model means: whether another attempt may succeed, and
when.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from pydantic_ai import exceptions as ai

from perdure.errors import (
    ContentFilterError,
    ContextOverflowError,
    ModelAccessError,
    ModelError,
    ModelQuotaError,
    ModelRequestError,
)

RETRYABLE_STATUS: Final = frozenset({408, 409, 425, 429})
"""HTTP statuses below 500 that pass: timeout, conflict (a lock at the provider), too early, too
many requests.
"""

MAX_MESSAGE: Final = 500


def model_error(error: Exception, label: str) -> ModelError | None:
    """The failure as ours, or None for an error that says nothing about the call: a mistake in some
    code.

    `label` names the model in the message.
    """
    if isinstance(error, ModelError):
        return error
    if isinstance(error, ai.FallbackExceptionGroup):
        return _all_failed(error, label)
    kind = _kind(error)
    if isinstance(error, ai.ModelHTTPError):
        return kind(
            f"{label}: HTTP {error.status_code}: {_provider_message(error)}"[:MAX_MESSAGE],
            retryable=_http_retryable(error),
            retry_after=error.retry_after,
        )
    retryable = _retryable(error)
    if retryable is None:
        return None
    message = f"{label}: {str(error) or type(error).__name__}"[:MAX_MESSAGE]
    retry_after = error.retry_after if isinstance(error, ai.ModelAPIError) else None
    return kind(message, retryable=retryable, retry_after=retry_after)


_NAMED: Final[tuple[tuple[type[Exception], type[ModelError]], ...]] = (
    (ai.ModelContextWindowExceededError, ContextOverflowError),
    (ai.ModelAuthenticationError, ModelAccessError),
    (ai.ModelQuotaExceededError, ModelQuotaError),
    (ai.ContentFilterError, ContentFilterError),
    (ai.ModelRequestRejectedError, ModelRequestError),
)


def _kind(error: Exception) -> type[ModelError]:
    return next((ours for theirs, ours in _NAMED if isinstance(error, theirs)), ModelError)


def _http_retryable(error: ai.ModelHTTPError) -> bool:
    if isinstance(error, ai.ModelQuotaExceededError):
        return False  # often a 429, but waiting does not fill an account
    if error.provider_retry_hint is not None:
        return error.provider_retry_hint
    return error.status_code >= 500 or error.status_code in RETRYABLE_STATUS


_FINAL: Final = (
    ai.ContentFilterError,
    ai.ModelQuotaExceededError,
    ai.ModelRequestRejectedError,
    ai.UserError,
)
# What is left of these is a transport that failed, or an answer that was cut or garbled on the way.
_PASSING: Final = (
    ai.ModelAPIError,
    ai.UnexpectedModelBehavior,
    ConnectionError,
    TimeoutError,
)


def _retryable(error: Exception) -> bool | None:
    if isinstance(error, _FINAL):
        return False
    return True if isinstance(error, _PASSING) or _is_transport_error(error) else None


def _is_transport_error(error: Exception) -> bool:
    # By name, because a provider's package may bring either of two HTTP libraries.
    return any(kind.__name__ == "TransportError" for kind in type(error).__mro__)


def _all_failed(group: ai.FallbackExceptionGroup, label: str) -> ModelError:
    known = [model_error(error, label) for error in group.exceptions]
    errors = [error for error in known if error is not None]
    waits = [
        error.retry_after for error in errors if error.retryable and error.retry_after is not None
    ]
    return ModelError(
        "; ".join(map(str, errors))[:MAX_MESSAGE] or f"{label}: {group}",
        retryable=any(error.retryable for error in errors),
        retry_after=min(waits, default=None),
    )


def _provider_message(error: ai.ModelHTTPError) -> str:
    """What the provider said, without the JSON around it."""
    body: Any = error.body
    if isinstance(body, Mapping):
        inner = body.get("error")
        body = inner if isinstance(inner, Mapping) else body
        body = body.get("message", body)
    said = str(body) if body else "no explanation"
    return f"{said}. {error.hint}" if error.hint else said
