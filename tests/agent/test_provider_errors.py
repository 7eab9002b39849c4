"""What goes wrong at a provider: retried or final, under which name, and never half a message."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest
from pydantic_ai.models.fallback import FallbackModel
from temporalio.testing import ActivityEnvironment

from perdure.activities.failures import as_failure
from perdure.errors import (
    ContentFilterError,
    ContextOverflowError,
    ModelAccessError,
    ModelError,
    ModelQuotaError,
    ModelRequestError,
    restored,
)
from perdure.messages import Message
from perdure.models.protocol import Delta, ModelRequest
from perdure.models.pydantic_ai import PydanticAIModel
from tests.agent import wire
from tests.agent.provider_server import Reply, provider_server
from tests.agent.wire import ANTHROPIC, CHAT, KEY, PROTOCOLS, RESPONSES, Protocol, Text

REQUEST = ModelRequest([Message(role="user", content="Where is order 7?")])

each_protocol = pytest.mark.parametrize("protocol", PROTOCOLS, ids=str)


def refusal(
    status: int, message: str, headers: dict[str, str] | None = None, **error: Any
) -> Reply:
    """An error as all three protocols tell it."""
    return Reply({"type": "error", "error": {"message": message, **error}}, status, headers or {})


async def failure(
    protocol: Protocol, reply: Reply, *, streamed: bool = False, **settings: Any
) -> ModelError:
    """What comes of a call that is answered like this: an error, after one attempt."""
    heard: list[Delta] = []
    with provider_server(reply) as server:
        model = protocol.model(server.url, **settings)
        with pytest.raises(ModelError) as raised:
            await model.respond(REQUEST, heard.append if streamed else None)
        await model.aclose()
    assert len(server.requests) == 1
    return raised.value


@pytest.mark.parametrize(
    "reply, retry_after",
    [
        (refusal(429, "slow down", type="rate_limit_error"), None),
        (refusal(429, "slow down", {"retry-after": "7"}), 7),
        (refusal(429, "slow down", {"retry-after": "soon"}), None),
        (refusal(500, "oops"), None),
        (refusal(503, "busy", {"retry-after": "2"}), 2),
        (refusal(529, "overloaded", type="overloaded_error"), None),
    ],
    ids=lambda value: str(value.status) if isinstance(value, Reply) else str(value),
)
@each_protocol
async def test_what_passes_is_worth_another_attempt(
    protocol: Protocol, reply: Reply, retry_after: float | None
) -> None:
    error = await failure(protocol, reply)

    assert type(error) is ModelError
    assert (error.retryable, error.retry_after) == (True, retry_after)


@each_protocol
async def test_a_provider_may_name_the_time_at_which_to_try_again(protocol: Protocol) -> None:
    later = datetime.now(UTC) + timedelta(hours=1)
    error = await failure(
        protocol, refusal(429, "slow", {"retry-after": format_datetime(later, usegmt=True)})
    )

    assert error.retry_after is not None
    assert 0 < error.retry_after <= 3600


@pytest.mark.parametrize(
    "reply",
    [
        Reply(cut=True),
        Reply(hangs=True),
        Reply(b"<html>gateway</html>"),
        Reply(b'{"id": "x", '),
        Reply({}),
        Reply([]),
        Reply({"choices": [], "output": None, "content": 7}),
    ],
    ids=["dropped", "no answer", "not JSON", "half JSON", "no fields", "a list", "wrong fields"],
)
@each_protocol
async def test_an_answer_that_does_not_come_or_cannot_be_read_is_worth_another_attempt(
    protocol: Protocol, reply: Reply
) -> None:
    error = await failure(protocol, reply, timeout=0.5)

    assert type(error) is ModelError
    assert error.retryable


@pytest.mark.parametrize("ending", ["cut", "hangs", "ends"])
@each_protocol
async def test_half_a_stream_is_never_taken_for_a_message(protocol: Protocol, ending: str) -> None:
    reply = Reply(events=protocol.half("Half a "), cut=ending == "cut", hangs=ending == "hangs")
    error = await failure(protocol, reply, streamed=True, timeout=0.5)

    assert type(error) is ModelError
    assert error.retryable


@pytest.mark.parametrize(
    "protocol, event",
    [
        (ANTHROPIC, {"type": "error", "error": {"type": "overloaded_error", "message": "busy"}}),
        (CHAT, {"error": {"code": "server_error", "message": "busy"}}),
        (
            RESPONSES,
            {
                "type": "response.failed",
                "sequence_number": 5,
                "response": wire.response(
                    status="failed", error={"code": "server_error", "message": "busy"}, usage=None
                ),
            },
        ),
        (
            RESPONSES,
            {"type": "error", "code": "server_error", "message": "busy", "sequence_number": 5},
        ),
    ],
    ids=["anthropic", "chat", "responses", "responses error"],
)
async def test_an_error_within_a_stream_is_worth_another_attempt(
    protocol: Protocol, event: object
) -> None:
    reply = Reply(events=(*protocol.half("Half a "), event))
    error = await failure(protocol, reply, streamed=True)

    assert type(error) is ModelError
    assert error.retryable


@pytest.mark.parametrize(
    "reply, kind",
    [
        (refusal(400, "messages: field required", type="invalid_request_error"), ModelRequestError),
        (refusal(404, "model: not found", type="not_found_error"), ModelRequestError),
        (refusal(422, "cannot be processed"), ModelRequestError),
        (refusal(401, "invalid x-api-key", type="authentication_error"), ModelAccessError),
        (refusal(403, "no access to this model", type="permission_error"), ModelAccessError),
        (refusal(402, "payment required"), ModelQuotaError),
    ],
    ids=lambda value: str(value.status) if isinstance(value, Reply) else value.__name__,
)
@each_protocol
async def test_what_stays_wrong_is_final_and_named(
    protocol: Protocol, reply: Reply, kind: type[ModelError]
) -> None:
    error = await failure(protocol, reply)

    assert type(error) is kind
    assert not error.retryable


@pytest.mark.parametrize(
    "protocol, reply",
    [
        (ANTHROPIC, refusal(400, "Your credit balance is too low", type="invalid_request_error")),
        (CHAT, refusal(429, "You exceeded your quota", code="insufficient_quota")),
        (RESPONSES, refusal(429, "You exceeded your quota", code="insufficient_quota")),
    ],
    ids=["anthropic", "chat", "responses"],
)
async def test_an_empty_account_is_not_a_rate_limit(protocol: Protocol, reply: Reply) -> None:
    error = await failure(protocol, reply)

    assert type(error) is ModelQuotaError
    assert not error.retryable


OVERFLOWS: list[tuple[Protocol, int, dict[str, Any], str]] = [
    (ANTHROPIC, 400, {"type": "invalid_request_error"}, "prompt is too long: 210000 > 200000"),
    (
        ANTHROPIC,
        400,
        {"type": "invalid_request_error"},
        "input length and `max_tokens` exceed context limit: 199000 + 8192 > 200000",
    ),
    (ANTHROPIC, 413, {"type": "request_too_large"}, "Request exceeds the maximum size"),
    (
        CHAT,
        400,
        {"code": "context_length_exceeded"},
        "This model's maximum context length is 128000 tokens.",
    ),
    (
        RESPONSES,
        400,
        {"code": "context_length_exceeded"},
        "Your input exceeds the context window of this model.",
    ),
    (CHAT, 429, {"code": "rate_limit_exceeded"}, "Requested 40000. The input or output tokens "
     "must be reduced in order to run successfully."),
    # Servers that speak OpenAI's protocol, in their own words.
    (CHAT, 400, {}, "This model's maximum context length is 4096 tokens. However, you requested"),
    (CHAT, 400, {"type": "exceed_context_size_error"}, "the request exceeds the available context "
     "size, try increasing it"),
    (CHAT, 500, {}, "Context size has been exceeded."),
    (CHAT, 400, {}, "This model's maximum prompt length is 131072 but the request has 537812"),
    (CHAT, 400, {}, "Please reduce the length of the messages or completion."),
    (CHAT, 400, {}, "Your request exceeded model token limit: 131072 (requested: 140000)"),
    (CHAT, 400, {}, "Prompt contains 40000 tokens, too large for model with 32768 maximum context "
     "length"),
    (CHAT, 400, {}, "The number of tokens to keep from the prompt is greater than the context "
     "length"),
    (CHAT, 413, {}, "Payload Too Large"),
]  # fmt: skip


@pytest.mark.parametrize("protocol, status, fields, message", OVERFLOWS)
async def test_a_conversation_that_is_too_long_is_recognized(
    protocol: Protocol, status: int, fields: dict[str, Any], message: str
) -> None:
    error = await failure(protocol, refusal(status, message, **fields))

    assert type(error) is ContextOverflowError
    assert not error.retryable


@pytest.mark.parametrize(
    "protocol, event",
    [
        (
            ANTHROPIC,
            {
                "type": "error",
                "error": {"type": "invalid_request_error", "message": "prompt is too long"},
            },
        ),
        (CHAT, {"error": {"code": "context_length_exceeded", "message": "too long"}}),
        (
            RESPONSES,
            {
                "type": "response.failed",
                "sequence_number": 5,
                "response": wire.response(
                    status="failed",
                    error={"code": "context_length_exceeded", "message": "too long"},
                    usage=None,
                ),
            },
        ),
    ],
    ids=["anthropic", "chat", "responses"],
)
async def test_it_is_recognized_within_a_stream(protocol: Protocol, event: object) -> None:
    reply = Reply(events=(*protocol.half(""), event))

    assert type(await failure(protocol, reply, streamed=True)) is ContextOverflowError


@pytest.mark.parametrize(
    "message", ["the context menu is limited", "max_tokens is too large", "image too large"]
)
async def test_a_bad_request_is_not_taken_for_a_long_conversation(message: str) -> None:
    assert type(await failure(CHAT, refusal(400, message))) is ModelRequestError


@pytest.mark.parametrize(
    "protocol, reply",
    [
        (ANTHROPIC, wire.messages_stream({"type": "text", "text": "I "}, stop="refusal")),
        (CHAT, Reply(wire.completion({"role": "assistant", "content": "I "}, "content_filter"))),
        (
            CHAT,
            Reply(
                wire.completion(
                    {"role": "assistant", "content": None, "refusal": "I cannot."}, "stop"
                )
            ),
        ),
        (
            RESPONSES,
            Reply(
                wire.response(status="incomplete", incomplete_details={"reason": "content_filter"})
            ),
        ),
        (
            RESPONSES,
            Reply(
                wire.response(
                    {
                        "type": "message",
                        "id": "msg_1",
                        "role": "assistant",
                        "status": "completed",
                        "content": [{"type": "refusal", "refusal": "I cannot."}],
                    }
                )
            ),
        ),
    ],
)
async def test_a_content_filter_is_final_and_named(protocol: Protocol, reply: Reply) -> None:
    error = await failure(protocol, reply)

    assert type(error) is ContentFilterError
    assert not error.retryable


@pytest.mark.parametrize(
    "said",
    [
        f"Incorrect API key provided: {KEY}.",
        f"Received API Key = {KEY[:10]}****{KEY[-4:]} for Bearer {KEY}",
        "see https://example.com/v1?key=abc123def for AIzaSyA1234567890abcdefghijk",
    ],
)
@each_protocol
async def test_no_key_is_told(protocol: Protocol, said: str) -> None:
    error = await failure(protocol, refusal(401, said))

    assert type(error) is ModelAccessError
    assert not any(piece in str(error) for piece in (KEY[8:], KEY[-4:], "abc123def", "AIza"))
    assert "HTTP 401" in str(error)


@pytest.mark.parametrize("key", ["a-secret-of-mine\n", "a-secret-of-mine\r\nx: y"])
@each_protocol
async def test_a_key_with_a_line_break_is_final_and_not_told(protocol: Protocol, key: str) -> None:
    with provider_server() as server:
        model = protocol.model(server.url)
        model.model.client.api_key = key  # type: ignore[attr-defined]
        with pytest.raises(ModelRequestError, match="header value") as raised:
            await model.respond(REQUEST)
        await model.aclose()

    assert server.requests == []
    assert not raised.value.retryable
    assert "secret" not in str(raised.value)


@each_protocol
async def test_an_address_that_is_none_is_final(protocol: Protocol) -> None:
    model = protocol.model("localhost:1")
    with pytest.raises(ModelRequestError) as raised:
        await model.respond(REQUEST)
    await model.aclose()

    assert not raised.value.retryable


@pytest.mark.parametrize(
    "kind",
    [
        ModelError,
        ContextOverflowError,
        ContentFilterError,
        ModelAccessError,
        ModelQuotaError,
        ModelRequestError,
    ],
)
def test_the_name_and_the_wish_go_through_workflow_history(kind: type[ModelError]) -> None:
    tell = ActivityEnvironment().run
    told = tell(as_failure, kind("mine: no", retryable=True, retry_after=7))
    assert (told.type, told.non_retryable, told.next_retry_delay) == (
        kind.__name__,
        False,
        timedelta(seconds=7),
    )

    again = restored(told.type or "", told.message)
    assert (type(again), str(again)) == (kind, "mine: no")
    assert tell(as_failure, kind("mine: no")).non_retryable


@pytest.mark.parametrize("spare", [ANTHROPIC, RESPONSES], ids=str)
async def test_a_spare_model_answers_when_the_first_fails_and_never_with_half_a_message(
    spare: Protocol,
) -> None:
    half = Reply(events=spare.half("Half a "))
    replies = spare.streamed(Text("Done.")), half
    with provider_server(*[refusal(503, "busy")] * 2) as first, provider_server(*replies) as second:
        both = FallbackModel(CHAT.model(first.url).model, spare.model(second.url).model)
        model = PydanticAIModel(both)
        said = await model.respond(REQUEST, lambda delta: None)
        with pytest.raises(ModelError) as raised:
            await model.respond(REQUEST, lambda delta: None)
        await model.aclose()

    assert said.text == "Done."
    assert raised.value.retryable
    assert (len(first.requests), len(second.requests)) == (2, 2)
