"""The demo with a model that a provider serves, and how it chooses one."""

from __future__ import annotations

from typing import get_args

import pytest
from pydantic_ai.models import KnownModelName

from perdure.demo.model_choice import DEFAULTS, choose_model
from perdure.errors import AgentError, ModelSpecError
from tests.demo.conftest import Demo
from tests.demo.provider import provider


def test_a_real_model_is_asked_the_same_and_survives_the_same(demo: Demo) -> None:
    with provider() as served:
        outcome = demo.run(
            "--model", "openai-chat:any", OPENAI_API_KEY="none", OPENAI_BASE_URL=served.url
        )
        asked = served.requests
    assert (outcome["passed"], outcome["model"]) == (True, "openai-chat:any")
    assert {check["name"]: check["passed"] for check in outcome["checks"]} == {
        "nothing_rewritten": True,
        "nothing_lost": True,
        "nothing_twice": True,
        "calls_answered": True,
        "model_asked_once": True,
        "ran_again": True,
        "ran_once": True,
    }
    # One request was repeated, the one whose worker was killed.
    assert [asked.index(request) for request in asked] == [0, 1, 2, 3, 4, 5, 5]


def test_without_a_key_the_script_is_taken() -> None:
    assert choose_model(None, {}).is_script


def test_a_key_names_its_providers_model() -> None:
    choice = choose_model(None, {"OPENAI_API_KEY": "k"})
    assert choice.is_script or choice.spec == DEFAULTS["OPENAI_API_KEY"]


def test_a_key_whose_package_is_missing_leads_to_the_script_and_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("perdure.demo.model_choice.resolve_model", refuse)
    choice = choose_model(None, {"ANTHROPIC_API_KEY": "k"})
    assert choice.is_script
    assert "pip install 'perdure[anthropic]'" in choice.reason


def refuse(spec: str) -> None:
    raise ModelSpecError(f"{spec} lacks its package")


def test_the_script_can_be_asked_for_whatever_keys_there_are() -> None:
    assert choose_model("script", {"OPENAI_API_KEY": "k"}).is_script


@pytest.mark.parametrize("spec", ["nobody:nothing", "nonsense"])
def test_a_model_that_was_asked_for_and_cannot_be_is_an_error(spec: str) -> None:
    with pytest.raises((ModelSpecError, AgentError)):
        choose_model(spec, {})


def test_the_default_models_are_ones_that_pydantic_ai_knows() -> None:
    assert set(DEFAULTS.values()) <= set(get_args(KnownModelName.__value__))
