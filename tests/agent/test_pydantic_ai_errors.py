"""Which failures of a model call are worth another attempt."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx2
import pytest
from pydantic_ai import exceptions as ai
from pydantic_ai import messages as ai_messages
from pydantic_ai.models.function import AgentInfo, FunctionModel

from perdure.errors import ModelError
from perdure.messages import Message
from perdure.models.protocol import ModelRequest
from perdure.models.pydantic_ai import PydanticAIModel

REQUEST = ModelRequest([Message(role="user", content="Where is it?")])


def failing(error: BaseException) -> PydanticAIModel:
    def reply(messages: list[ai_messages.ModelMessage], info: AgentInfo) -> Any:
        raise error

    return PydanticAIModel(FunctionModel(reply, model_name="mine"), name="mine")


def http(status: int, body: object = None, **fields: Any) -> ai.ModelHTTPError:
    return ai.ModelHTTPError(status, "mine", body, **fields)


QUOTA = ai.ModelHTTPError.for_category(
    ai.ModelQuotaExceededError, status_code=429, model_name="mine", body={"message": "no credit"}
)


@pytest.mark.parametrize(
    "error, message, retryable, retry_after",
    [
        (http(408), "mine: HTTP 408: no explanation", True, None),
        (http(409), "mine: HTTP 409: no explanation", True, None),
        (http(429, {"error": {"message": "slow down"}}), "mine: HTTP 429: slow down", True, None),
        (http(429, headers={"Retry-After": "7"}), "mine: HTTP 429: no explanation", True, 7.0),
        (
            http(429, headers={"retry-after-ms": "250"}),
            "mine: HTTP 429: no explanation",
            True,
            0.25,
        ),
        (http(500, "oops"), "mine: HTTP 500: oops", True, None),
        (http(503), "mine: HTTP 503: no explanation", True, None),
        (http(529, {"message": "overloaded"}), "mine: HTTP 529: overloaded", True, None),
        (http(400, {"message": "bad"}), "mine: HTTP 400: bad", False, None),
        (
            http(401, hint="Check the key"),
            "mine: HTTP 401: no explanation. Check the key",
            False,
            None,
        ),
        (http(404), "mine: HTTP 404: no explanation", False, None),
        (
            http(400, headers={"x-should-retry": "true"}),
            "mine: HTTP 400: no explanation",
            True,
            None,
        ),
        (
            http(500, headers={"x-should-retry": "false"}),
            "mine: HTTP 500: no explanation",
            False,
            None,
        ),
        (QUOTA, "mine: HTTP 429: no credit", False, None),
        (ai.ModelConnectionError("mine", "connection reset"), "mine: connection reset", True, None),
        (ai.ModelTimeoutError("mine", "timed out"), "mine: timed out", True, None),
        (ai.ModelAPIError("mine", "not JSON", retry_after=2), "mine: not JSON", True, 2),
        (ai.ModelContextWindowExceededError("mine", "too long"), "mine: too long", False, None),
        (ai.UnexpectedModelBehavior("no choices"), "mine: no choices", True, None),
        (ai.ContentFilterError("refused"), "mine: refused", False, None),
        (ai.UserError("no images"), "mine: no images", False, None),
        (ConnectionResetError("gone"), "mine: gone", True, None),
        (TimeoutError(), "mine: TimeoutError", True, None),
        (httpx2.ReadError("cut"), "mine: cut", True, None),
        (
            ai.FallbackExceptionGroup(
                "all failed",
                [http(429, headers={"retry-after": "9"}), http(400), ValueError("bug")],
            ),
            "mine: HTTP 429: no explanation; mine: HTTP 400: no explanation",
            True,
            9.0,
        ),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else None,
)
async def test_a_failure_says_whether_and_when_to_try_again(
    error: Exception, message: str, retryable: bool, retry_after: float | None
) -> None:
    with pytest.raises(ModelError) as raised:
        await failing(error).respond(REQUEST)

    failure = raised.value
    assert (str(failure), failure.retryable, failure.retry_after) == (
        message,
        retryable,
        retry_after,
    )
    assert failure.__cause__ is error


async def test_a_long_explanation_is_cut() -> None:
    with pytest.raises(ModelError) as raised:
        await failing(http(400, "x" * 10_000)).respond(REQUEST)

    assert len(str(raised.value)) == 500


async def test_an_error_that_is_ours_already_passes_as_it_is() -> None:
    error = ModelError("busy", retryable=True, retry_after=3)

    with pytest.raises(ModelError) as raised:
        await failing(error).respond(REQUEST)

    assert raised.value is error


@pytest.mark.parametrize("error", [ZeroDivisionError("bug"), asyncio.CancelledError()])
async def test_a_mistake_in_code_and_a_cancellation_pass_as_they_are(error: BaseException) -> None:
    with pytest.raises(type(error)):
        await failing(error).respond(REQUEST)
