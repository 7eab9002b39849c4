"""What an answer cost."""

from __future__ import annotations

from typing import Any

import pytest
from genai_prices import calc_price
from pydantic_ai import messages as ai
from pydantic_ai.usage import RequestUsage

from perdure.models.pydantic_ai_costs import cost_of
from perdure.usage import Cost

ADDRESSES = [
    ("claude-sonnet-5-5", "https://api.anthropic.com"),
    ("gpt-6.1-sol", "https://api.openai.com/v1/"),
    ("gemini-3.8-flash", "https://generativelanguage.googleapis.com"),
]


def answer(model: str, url: str | None, **usage: int) -> ai.ModelResponse:
    tokens: dict[str, Any] = {"input_tokens": 1000, "output_tokens": 100, **usage}
    return ai.ModelResponse([], usage=RequestUsage(**tokens), model_name=model, provider_url=url)


@pytest.mark.parametrize("tokens", [1_000, 400_000], ids=["few", "many"])
@pytest.mark.parametrize("model, url", ADDRESSES, ids=[model for model, _ in ADDRESSES])
def test_the_parts_are_those_of_the_price_list(model: str, url: str, tokens: int) -> None:
    """Also where many tokens have a price of their own."""
    response = answer(
        model,
        url,
        input_tokens=tokens,
        cache_read_tokens=tokens // 2,
        cache_write_tokens=tokens // 10,
    )
    cost = cost_of(response)

    price = calc_price(response.usage, model, provider_api_url=url)
    assert cost.total == pytest.approx(float(price.total_price))
    assert cost.output == pytest.approx(float(price.output_price))
    fresh, read = cost.input / (tokens * 0.4), cost.cache_read / (tokens // 2)
    assert 0 < read < fresh <= cost.cache_write / (tokens // 10) or cost.cache_write == 0
    assert cost.input == pytest.approx(cost_of(answer(model, url, input_tokens=tokens)).input * 0.4)


@pytest.mark.parametrize(
    "response",
    [
        answer("gpt-6.1-sol", "http://127.0.0.1:8000/v1"),
        answer("gpt-6.1-sol", None),
        answer("a-model-that-nobody-knows", "https://api.openai.com/v1/"),
        answer("gpt-6.1-sol", "https://api.openai.com/v1/", input_tokens=0, output_tokens=0),
    ],
    ids=["another server", "no address", "another model", "nothing counted"],
)
def test_what_has_no_known_price_costs_nothing(response: ai.ModelResponse) -> None:
    assert cost_of(response) == Cost()
