"""What an answer cost, by the price list that pydantic-ai brings: an estimate in US dollars.

The list is of the day on which the package `genai-prices` was made, and knows providers by their
address. A server of one's own has no price, whatever the name of its model.
"""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

from genai_prices import calc_price
from genai_prices.types import PriceCalculation
from pydantic_ai.messages import ModelResponse
from pydantic_ai.usage import RequestUsage

from perdure.usage import Cost


def cost_of(response: ModelResponse) -> Cost:
    """The cost of an answer; nothing where no price is known.

    What tools cost that the provider ran is with the output, audio and reasoning are with what
    they are part of.
    """
    usage = response.usage
    whole = _price(response, usage)
    uncached = _price(response, replace(usage, cache_read_tokens=0, cache_write_tokens=0))
    read = _price(response, replace(usage, cache_write_tokens=0))
    if whole is None or uncached is None or read is None:
        return Cost()
    # The same tokens in all, so that each is the price of the same tier.
    price = uncached.input_price / usage.input_tokens if usage.input_tokens else Decimal(0)
    cached = usage.cache_read_tokens + usage.cache_write_tokens
    fresh = price * max(usage.input_tokens - cached, 0)
    cache_read = read.input_price - price * max(usage.input_tokens - usage.cache_read_tokens, 0)
    return Cost(
        input=_amount(fresh),
        output=_amount(whole.total_price - whole.input_price),
        cache_read=_amount(cache_read),
        cache_write=_amount(whole.input_price - fresh - cache_read),
    )


def _price(response: ModelResponse, usage: RequestUsage) -> PriceCalculation | None:
    if not response.provider_url or not response.model_name or not usage.has_values():
        return None
    try:
        return calc_price(
            usage,
            response.model_name,
            provider_api_url=response.provider_url,
            genai_request_timestamp=response.timestamp,
        )
    except (LookupError, ValueError):
        return None


def _amount(price: Decimal) -> float:
    return round(float(price), 12)
