"""What a failed call of a pydantic-ai model means: whether another attempt may succeed, when, and
under which name the failure is told.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
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

_NAMED: Final[tuple[tuple[type[Exception], type[ModelError]], ...]] = (
    (ai.ModelContextWindowExceededError, ContextOverflowError),
    (ai.ModelAuthenticationError, ModelAccessError),
    (ai.ModelQuotaExceededError, ModelQuotaError),
    (ai.ContentFilterError, ContentFilterError),
    (ai.ModelRequestRejectedError, ModelRequestError),
    (ai.UserError, ModelRequestError),
)
_BY_STATUS: Final[Mapping[int, type[ModelError]]] = {
    401: ModelAccessError,
    402: ModelQuotaError,
    403: ModelAccessError,
}
# What is left of these is a transport that failed, or an answer that was cut or garbled on the way.
_PASSING: Final = (
    ai.ModelAPIError,
    ai.UnexpectedModelBehavior,
    ConnectionError,
    TimeoutError,
)
_NEVER_SENT: Final = frozenset(
    {"HTTPStatusError", "InvalidURL", "LocalProtocolError", "UnsupportedProtocol"}
)
"""Errors of HTTP libraries that the next attempt meets again: an address or a key that no request
can carry, a linked file that is not there.
"""

_OVERFLOW: Final = re.compile(
    r"prompt is too long|input is too long|input length and .?max_tokens.? exceed"
    r"|request_too_large|exceeds? the maximum allowed number of bytes"
    r"|context[ _-]?(length|window|size)[^.]{0,60}(exceed|overflow|too|larger|limit)"
    r"|(exceed\w*|larger than|longer than|too large for|greater than|over)[^.]{0,80}context"
    r"|maximum (context|prompt|model|input) length|exceeded model token limit"
    r"|context_length_exceeded|exceed_context_size|model_max_prompt_tokens_exceeded"
    r"|input token count|number of tokens allowed|prompt token count of|too many tokens"
    r"|reduce the length of (the|your) (messages|prompt|input)|tokens in the (input|prompt) exceed"
    r"|tokens must be reduced in order to run",
    re.IGNORECASE,
)
"""How providers and servers word it that a conversation is longer than the model takes."""

_REDUCE: Final = re.compile(r"tokens must be reduced in order to run", re.IGNORECASE)
_TOO_LARGE: Final = 413

_QUOTED_BYTES: Final = re.compile(r"b'[^']*'|b\"[^\"]*\"")
_SECRETS: Final = re.compile(
    r"\b(?:sk|pk|rk|gsk|xai|hf|r8|csk|nvapi|tgp|fw|pplx)[-_][\w*.\-]{8,}"
    r"|\bAIza[\w\-]{16,}|\bya29\.[\w.\-]+|(?<=bearer )[^\s'\",]+"
    r"|(?<=[?&]key=)[^&\s'\"]+",
    re.IGNORECASE,
)
"""What looks like a key, whole or with stars in it."""


def model_error(error: Exception, label: str, *secrets: str) -> ModelError | None:
    """The failure as ours, or None for an error that says nothing about the call: a mistake in some
    code.

    `label` names the model in the message, in which none of the `secrets` is, nor anything that
    looks like a key.
    """
    if isinstance(error, ModelError):
        return error
    if isinstance(error, ai.FallbackExceptionGroup):
        return _all_failed(error, label, secrets)
    retryable = _retryable(error)
    if retryable is None:
        return None
    said = _said(error)
    kind = _kind(error, said)
    return kind(
        f"{label}: {_without_secrets(said, secrets)}"[:MAX_MESSAGE],
        retryable=retryable and kind is ModelError,
        retry_after=error.retry_after if isinstance(error, ai.ModelAPIError) else None,
    )


def _kind(error: Exception, said: str) -> type[ModelError]:
    if _is_overflow(error, said):
        return ContextOverflowError
    for theirs, ours in _NAMED:
        if isinstance(error, theirs):
            # A rejection that the provider says is worth another attempt is none.
            return ModelError if ours is ModelRequestError and _retryable(error) else ours
    if _retryable(error):
        return ModelError
    status = error.status_code if isinstance(error, ai.ModelHTTPError) else 0
    return _BY_STATUS.get(status, ModelRequestError)


def _is_overflow(error: Exception, said: str) -> bool:
    if isinstance(error, ai.ModelContextWindowExceededError):
        return True
    if not isinstance(error, ai.ModelHTTPError):
        # Within a stream there is no status, and no rate limit is worded like this.
        return isinstance(error, ai.ModelAPIError) and _OVERFLOW.search(said) is not None
    if error.status_code == _TOO_LARGE:
        return True
    if error.status_code == 429:
        return _REDUCE.search(said) is not None
    return error.status_code in (400, 422, 500) and _OVERFLOW.search(said) is not None


def _retryable(error: Exception) -> bool | None:
    if isinstance(error, (*(theirs for theirs, _ in _NAMED[:4]), ai.UserError)):
        return False  # also a 429 of an empty account: waiting does not fill it
    if any(type(cause).__name__ in _NEVER_SENT for cause in _causes(error)):
        return False
    if isinstance(error, ai.ModelHTTPError):
        if error.provider_retry_hint is not None:
            return error.provider_retry_hint
        return error.status_code >= 500 or error.status_code in RETRYABLE_STATUS
    if isinstance(error, (ai.ModelRequestRejectedError, NotImplementedError)):
        return False
    return True if isinstance(error, _PASSING) or _is_transport_error(error) else None


def _is_transport_error(error: Exception) -> bool:
    # By name, because a provider's package may bring either of two HTTP libraries.
    return any(kind.__name__ == "TransportError" for kind in type(error).__mro__)


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    for _ in range(10):  # as deep as any, and no circle
        if error is None:
            return
        yield error
        error = error.__cause__


def _all_failed(
    group: ai.FallbackExceptionGroup, label: str, secrets: tuple[str, ...]
) -> ModelError:
    known = [model_error(error, label, *secrets) for error in group.exceptions]
    errors = [error for error in known if error is not None]
    retryable = [error for error in errors if error.retryable]
    waits = [error.retry_after for error in retryable if error.retry_after is not None]
    kinds = {type(error) for error in errors}
    # What all of them say is told under its name.
    kind = kinds.pop() if len(kinds) == 1 else ModelError
    return kind(
        "; ".join(map(str, errors))[:MAX_MESSAGE] or f"{label}: none of the models answered",
        retryable=bool(retryable),
        retry_after=min(waits, default=None),
    )


def _said(error: Exception) -> str:
    if isinstance(error, ai.ModelHTTPError):
        return f"HTTP {error.status_code}: {_provider_message(error)}"
    never_sent = [cause for cause in _causes(error) if type(cause).__name__ in _NEVER_SENT]
    said = str(never_sent[-1] if never_sent else error) or type(error).__name__
    return _QUOTED_BYTES.sub("…", said) if never_sent else said  # a header's value, a key perhaps


def _provider_message(error: ai.ModelHTTPError) -> str:
    """What the provider said, without the JSON around it."""
    body: Any = error.body
    if isinstance(body, Mapping):
        inner = body.get("error")
        body = inner if isinstance(inner, Mapping) else body
        body = body.get("message", body)
    said = str(body) if body else "no explanation"
    return f"{said}. {error.hint}" if error.hint else said


def _without_secrets(text: str, secrets: tuple[str, ...]) -> str:
    for secret in secrets:
        if secret:
            text = text.replace(secret, "…")
    return _SECRETS.sub("…", text)
