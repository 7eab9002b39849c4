"""An answer that has to fit a JSON schema: how each provider's model is asked for it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from pydantic_ai.profiles import ModelProfile
from pydantic_ai.profiles.google import GoogleModelProfile

from perdure.messages import Message
from perdure.models import ModelRequest, ToolSpec, output_instruction, resolve_model
from perdure.models.pydantic_ai_output import instructed
from tests.agent.provider_server import Reply, provider_server
from tests.agent.test_providers import completion

SCHEMA: dict[str, Any] = {
    "title": "Town[x]",
    "type": "object",
    "properties": {"name": {"type": "string"}},
    "required": ["name"],
    "additionalProperties": False,
}
TOOL = ToolSpec("look", "Look.", {"type": "object", "properties": {}})
REQUEST = ModelRequest(
    [Message(role="user", content="Where?")], "Be brief.", [TOOL], output_schema=SCHEMA
)
ANSWER = '{"name": "Lyon"}'


async def test_openai_is_held_to_the_schema_with_tools_beside_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with provider_server(Reply(completion({"role": "assistant", "content": ANSWER}, "stop"))) as (
        server
    ):
        monkeypatch.setenv("OPENAI_API_KEY", "not-a-key")
        monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
        model = resolve_model("openai-chat:gpt-5")
        assert model is not None
        answer = await model.respond(REQUEST)
    [sent] = server.requests
    assert answer.text == ANSWER
    assert sent["response_format"]["type"] == "json_schema"
    assert sent["response_format"]["json_schema"]["name"] == "Town_x"
    assert sent["response_format"]["json_schema"]["schema"]["required"] == ["name"]
    assert [tool["function"]["name"] for tool in sent["tools"]] == ["look"]
    assert sent.get("tool_choice", "auto") == "auto"
    assert "JSON" not in str(sent["messages"])


async def test_a_model_that_cannot_be_held_to_it_is_instructed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    message = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-3-5-haiku-latest",
        "content": [{"type": "text", "text": ANSWER}],
        "stop_reason": "end_turn",
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }
    with provider_server(Reply(message)) as server:
        monkeypatch.setenv("ANTHROPIC_API_KEY", "not-a-key")
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
        model = resolve_model("anthropic:claude-3-5-haiku-latest")
        assert model is not None
        answer = await model.respond(REQUEST)
    [sent] = server.requests
    assert answer.text == ANSWER
    assert "output_format" not in sent
    assert "output_config" not in sent
    system = sent["system"] if isinstance(sent["system"], str) else sent["system"][0]["text"]
    assert system == f"Be brief.\n\n{output_instruction(SCHEMA)}"


@pytest.mark.parametrize("combines", [True, False])
@pytest.mark.parametrize("has_tools", [True, False])
def test_gemini_takes_a_schema_beside_tools_from_version_3_on(
    combines: bool, has_tools: bool
) -> None:
    profile: ModelProfile = GoogleModelProfile(
        supports_json_schema_output=True, google_supports_tool_combination=combines
    )
    request = instructed(REQUEST, profile, "google-generative-ai", has_tools=has_tools)
    if combines or not has_tools:
        assert request == REQUEST
    else:
        told = f"Be brief.\n\n{output_instruction(SCHEMA)}"
        assert request == replace(REQUEST, instructions=told, output_schema=None)
