"""Agents and readings that several tests use."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from perdure import Agent, Entry, Message, MessageEntry, PerdureError, Run, RunEvent, tool
from perdure.models.scripted import ScriptedModel


def scripted(*items: Any, tools: Iterable[Any] = (), **options: Any) -> Agent:
    """An agent called `agent` whose model says what it is told."""
    max_turns = options.pop("max_turns", 50)
    return Agent("agent", model=ScriptedModel(*items, **options), tools=tools, max_turns=max_turns)


def echo() -> Agent:
    """An agent that repeats the last thing that was said."""
    return Agent("agent", model=Echo())


class Echo:
    """A model of one's own: the protocol is two members."""

    name = "echo"

    async def respond(self, request: Any, on_delta: Any = None) -> Message:
        return Message(role="assistant", content=f"You said {request.messages[-1].text!r}")


@tool
async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def texts(entries: Iterable[Entry]) -> list[str]:
    """What was said, in order."""
    return [entry.message.text for entry in entries if isinstance(entry, MessageEntry)]


def shape(events: Iterable[RunEvent]) -> list[str]:
    """Event types, with an asterisk where the event is a receipt."""
    return [event.type + ("*" if event.entries else "") for event in events]


async def watched(run: Run) -> tuple[list[RunEvent], PerdureError | None]:
    """The events of a run, and the error with which it ended."""
    events: list[RunEvent] = []
    try:
        async for event in run:
            events.append(event)  # noqa: PERF401 - those before the error count
    except PerdureError as error:
        return events, error
    return events, None
