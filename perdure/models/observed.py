"""Who wants to know of model calls, for as long as they are made."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from typing import TypeAlias

from perdure.messages import Message

Answered: TypeAlias = Callable[[Message], None]
"""Told what the model answered."""

Observing: TypeAlias = Callable[[str], AbstractContextManager[Answered]]
"""Told the name of the model that is asked now."""

observing: ContextVar[Observing | None] = ContextVar("observing", default=None)
"""Who observes the model calls of what is done now."""


@contextmanager
def observed(model_name: str) -> Iterator[Answered]:
    """A call of the model, from its beginning to its end, for whoever observes it."""
    observer = observing.get()
    if observer is None:
        yield _nobody
        return
    with observer(model_name) as answered:
        yield answered


def _nobody(answer: Message) -> None:
    """Nobody wants to know."""
