"""What model calls consumed, in tokens, and what that cost."""

from __future__ import annotations

from typing import ClassVar, Self

from perdure.wire_model import Amount, Count, WireModel


class Cost(WireModel):
    """The cost of a usage by what was counted, in the currency that the provider bills in."""

    always_written: ClassVar[frozenset[str]] = frozenset()

    input: Amount = 0.0
    output: Amount = 0.0
    cache_read: Amount = 0.0
    cache_write: Amount = 0.0
    reasoning: Amount = 0.0
    input_audio: Amount = 0.0
    output_audio: Amount = 0.0

    @property
    def total(self) -> float:
        """The sum of all."""
        return sum(float(getattr(self, name)) for name in type(self).model_fields)

    def __add__(self, other: Self) -> Self:
        """The sums of what both counted; keys that are not known are not summed up, but dropped."""
        names = type(self).model_fields
        return type(self)(**{name: getattr(self, name) + getattr(other, name) for name in names})


class Usage(WireModel):
    """Tokens that one or more model calls consumed."""

    always_written: ClassVar[frozenset[str]] = frozenset()

    input: Count = 0
    output: Count = 0
    cache_read: Count = 0
    cache_write: Count = 0
    reasoning: Count = 0
    input_audio: Count = 0
    output_audio: Count = 0
    cost: Cost = Cost()

    def __add__(self, other: Self) -> Self:
        """The sums of what both counted; keys that are not known are not summed up, but dropped."""
        names = type(self).model_fields
        return type(self)(**{name: getattr(self, name) + getattr(other, name) for name in names})
