"""Google's protocol, where its package is installed."""

from __future__ import annotations

from typing import Any

import pytest

from perdure.errors import ContextOverflowError, ModelAccessError, ModelError
from perdure.messages import TextBlock
from perdure.models.protocol import ModelRequest, ToolSpec
from perdure.models.pydantic_ai import PydanticAIModel
from tests.agent.conversations import result, user
from tests.agent.provider_server import Reply, provider_server
from tests.agent.test_provider_cache import part_of

pytest.importorskip("google.genai", reason="the extra `google` is not installed")

from pydantic_ai.models.google import GoogleModel
from pydantic_ai.providers.google import GoogleProvider

KEY = "AIzaSyA1234567890abcdefghijk"
SPEC = ToolSpec("find_order", "Look an order up.", {"type": "object", "properties": {}})


def google(url: str) -> PydanticAIModel:
    provider = GoogleProvider(api_key=KEY, base_url=url)
    return PydanticAIModel(GoogleModel("gemini-3.8-flash", provider=provider))


def gemini(*parts: dict[str, Any], reason: str = "STOP") -> dict[str, Any]:
    candidate = {"content": {"role": "model", "parts": list(parts)}, "index": 0}
    return {
        "candidates": [{**candidate, **({"finishReason": reason} if reason else {})}],
        "usageMetadata": {
            "promptTokenCount": 100,
            "candidatesTokenCount": 20,
            "cachedContentTokenCount": 60,
            "totalTokenCount": 120,
        },
        "modelVersion": "gemini-3.8-flash",
        "responseId": "r1",
    }


def refusal(status: int, name: str, message: str, **detail: str) -> Reply:
    error = {"code": status, "status": name, "message": message, "details": [detail]}
    return Reply({"error": error}, status)


CALL = {"functionCall": {"name": "find_order", "args": {"n": 7}}}
THOUGHT = {"text": "It may be lost.", "thought": True}


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
async def test_a_tool_turn_signed_and_with_ids_of_our_own(streamed: bool) -> None:
    """Gemini gives calls no IDs, and wants its signatures back."""
    answers = gemini(THOUGHT, {**CALL, "thoughtSignature": "c2ln"}, CALL), gemini({"text": "Lost."})
    replies = [Reply(events=(body,)) if streamed else Reply(body) for body in answers]
    heard: list[Any] = []
    on_delta = heard.append if streamed else None
    with provider_server(*replies) as server:
        model = google(server.url)
        called = await model.respond(ModelRequest([user("Where?")], "Help.", [SPEC]), on_delta)
        results = [result(call.id, TextBlock(text="no")) for call in called.tool_calls]
        messages = [user("Where?"), called, *results]
        said = await model.respond(ModelRequest(messages, "Help.", [SPEC]), on_delta)
        await model.aclose()

    assert said.text == "Lost."
    first, second = (call.id for call in called.tool_calls)
    assert first != second
    assert all(call_id.startswith("call_") for call_id in (first, second))
    thought, *calls = server.requests[1]["contents"][1]["parts"]
    assert thought == THOUGHT
    assert [call.get("thoughtSignature") for call in calls] == ["c2ln", None]
    assert [call["functionCall"]["id"] for call in calls] == [first, second]

    before, after = (part_of(body, "contents") for body in server.bodies)
    assert after.startswith(before[:-1] + b",")
    assert len({part_of(body, "tools") for body in server.bodies}) == 1
    assert len({part_of(body, "systemInstruction") for body in server.bodies}) == 1


@pytest.mark.parametrize(
    "reply, kind, retry_after",
    [
        (refusal(429, "RESOURCE_EXHAUSTED", "slow", retryDelay="14s"), ModelError, 14),
        (refusal(503, "UNAVAILABLE", "overloaded"), ModelError, None),
        (
            refusal(400, "INVALID_ARGUMENT", f"API key not valid: {KEY}", reason="API_KEY_INVALID"),
            ModelAccessError,
            None,
        ),
        (
            refusal(400, "INVALID_ARGUMENT", "The input token count (9) exceeds the maximum"),
            ContextOverflowError,
            None,
        ),
    ],
    ids=["429", "503", "key", "overflow"],
)
async def test_failures_are_told_apart(
    reply: Reply, kind: type[ModelError], retry_after: float | None
) -> None:
    with provider_server(reply) as server:
        model = google(server.url)
        with pytest.raises(ModelError) as raised:
            await model.respond(ModelRequest([user("Where?")]))
        await model.aclose()

    assert type(raised.value) is kind
    assert (raised.value.retryable, raised.value.retry_after) == (kind is ModelError, retry_after)
    assert KEY not in str(raised.value)


async def test_half_a_stream_is_not_taken_for_a_message() -> None:
    with provider_server(Reply(events=(gemini({"text": "Half a "}, reason=""),))) as server:
        model = google(server.url)
        with pytest.raises(ModelError, match="broke off") as raised:
            await model.respond(ModelRequest([user("Where?")]), lambda delta: None)
        await model.aclose()

    assert raised.value.retryable
