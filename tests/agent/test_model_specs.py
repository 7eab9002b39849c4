"""Naming a model by its spec."""

from __future__ import annotations

import sys

import pytest

from perdure.errors import ModelSpecError
from perdure.models import resolve_model
from perdure.models.scripted import ScriptedModel


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

    with pytest.raises(ModelSpecError, match=f"model '{spec}' cannot be used: .*{variable}"):
        resolve_model(spec)


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "groq", None)

    with pytest.raises(ModelSpecError, match=r'pip install "pydantic-ai-slim\[groq\]"'):
        resolve_model("groq:llama-4")
