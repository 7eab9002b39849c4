"""A model that writes down everything that it is sent and everything that it says."""

from __future__ import annotations

import asyncio
import random

from chaos.journal import Journal
from chaos.schedule import Kind
from chaos.weather import Forecast
from chaos.words import order_of, unique_word
from perdure.errors import ModelError
from perdure.messages import Message, Role, StopReason, TextBlock, ToolCallBlock
from perdure.models.protocol import Delta, ModelRequest, OnDelta
from perdure.usage import Usage


class NotedModel:
    """Calls the tools that a question names, then answers. The IDs of its calls are unique, as a
    provider's are.
    """

    name = "noted"

    def __init__(self, forecast: Forecast, journal: Journal) -> None:
        self._forecast = forecast
        self._journal = journal
        self._chance = random.Random()

    async def respond(self, request: ModelRequest, on_delta: OnDelta | None = None) -> Message:
        """See `LanguageModel`."""
        word = unique_word()
        sent = [message.model_dump(mode="json", by_alias=True) for message in request.messages]
        self._journal.note("model asked", session=request.cache_key, word=word, messages=sent)
        if self._chance.random() < self._forecast.now().model_error:
            self._journal.note("fault", fault=Kind.MODEL_ERROR)
            raise ModelError("chaos: the model is overloaded", retryable=True, retry_after=0.3)
        calls = [
            ToolCallBlock(id=f"call_{unique_word()}", name=name, arguments={})
            for name in _next_calls(request)
        ]
        text = f"say {word} and some more words to make it a sentence"
        self._journal.note(
            "model said",
            session=request.cache_key,
            word=word,
            text=text,
            calls=[{"id": call.id, "name": call.name} for call in calls],
        )
        await self._speak(text, on_delta)
        return Message(
            role=Role.ASSISTANT,
            content=(TextBlock(text=text), *calls),
            usage=Usage(input=10 * len(sent), output=10),
            stop_reason=StopReason.TOOL_USE if calls else StopReason.STOP,
        )

    async def _speak(self, text: str, on_delta: OnDelta | None) -> None:
        seconds = min(self._chance.expovariate(6), 2.0)
        if on_delta is None:
            await asyncio.sleep(seconds)
            return
        head, *rest = text.split(" and ")
        pieces = [head, *(f" and {piece}" for piece in rest)]
        for piece in pieces:
            on_delta(Delta("text", piece, 0))
            await asyncio.sleep(seconds / len(pieces))


def _next_calls(request: ModelRequest) -> list[str]:
    """What is still to be called of what the last question names."""
    known = {tool.name for tool in request.tools}
    rounds_done = 0
    for message in reversed(request.messages):
        if message.role == Role.USER:
            tools, rounds = order_of(message.text)
            return [name for name in tools if name in known] if rounds_done < rounds else []
        rounds_done += bool(message.tool_calls)
    return []
