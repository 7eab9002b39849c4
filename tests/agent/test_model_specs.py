"""Naming a model by its spec."""

from __future__ import annotations

import sys

import pytest

from perdure.errors import ModelSpecError
from perdure.models import resolve_model
from perdure.models.protocol import ModelRequest
from perdure.models.pydantic_ai import PydanticAIModel
from perdure.models.scripted import ScriptedModel
from tests.agent.conversations import user
from tests.agent.provider_server import provider_server
from tests.agent.wire import CHAT, Text


def test_what_is_a_model_already_stays_what_it_is() -> None:
    model = ScriptedModel("Hello.")

    assert resolve_model(model) is model
    assert resolve_model(None) is None


@pytest.mark.parametrize(
    "spec, variable",
    [
        ("anthropic:claude-sonnet-5-5", "ANTHROPIC_API_KEY"),
        ("openai:gpt-6.1-sol", "OPENAI_API_KEY"),
    ],
)
def test_a_missing_key_is_named(monkeypatch: pytest.MonkeyPatch, spec: str, variable: str) -> None:
    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)

    with pytest.raises(
        ModelSpecError, match=f"model '{spec}' cannot be used: .*{variable}"
    ) as told:
        resolve_model(spec)
    assert "Agent('test')" not in str(told.value)


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "groq", None)

    with pytest.raises(ModelSpecError, match=r'pip install "pydantic-ai-slim\[groq\]"'):
        resolve_model("groq:llama-4")


def test_a_provider_that_nobody_knows_is_named() -> None:
    with pytest.raises(ModelSpecError, match="model 'nobody:x' cannot be used: no such provider"):
        resolve_model("nobody:x")


@pytest.mark.parametrize("provider", ["vllm", "ollama"])
def test_a_missing_address_of_a_server_is_named(
    monkeypatch: pytest.MonkeyPatch, provider: str
) -> None:
    variable = f"{provider.upper()}_BASE_URL"
    monkeypatch.delenv(variable, raising=False)

    with pytest.raises(ModelSpecError, match=variable):
        resolve_model(f"{provider}:qwen3")


def test_a_missing_pydantic_ai_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "perdure.models.pydantic_ai", None)

    with pytest.raises(ModelSpecError, match="pip install pydantic-ai-slim"):
        resolve_model("openai:gpt-6.1-sol")


@pytest.mark.parametrize(
    "spec, variable",
    [
        ("openai-chat:qwen3", "OPENAI_BASE_URL"),
        ("vllm:qwen3", "VLLM_BASE_URL"),
        ("ollama:qwen3", "OLLAMA_BASE_URL"),
    ],
)
async def test_a_server_of_ones_own_is_found_by_its_address(
    monkeypatch: pytest.MonkeyPatch, spec: str, variable: str
) -> None:
    with provider_server(CHAT.whole(Text("Hello."))) as server:
        for provider in ("OPENAI", "VLLM", "OLLAMA"):
            monkeypatch.setenv(f"{provider}_API_KEY", "not-a-key")
        monkeypatch.setenv(variable, f"{server.url}/v1")
        model = resolve_model(spec)
        assert isinstance(model, PydanticAIModel)
        said = await model.respond(ModelRequest([user("Hi.")], cache_key="customer-42"))
        await model.aclose()

    assert (model.name, said.text) == (spec, "Hello.")
    assert set(server.requests[0]) <= {"messages", "model", "stream"}
