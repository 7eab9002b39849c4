"""Lifecycle events, as an application hears of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from perdure.codec import entry_from_json
from perdure.entries import CompactionEntry
from perdure.errors import AgentError
from perdure.protocol import ErrorInfo, LifecycleEvent


@dataclass(frozen=True, slots=True)
class SessionEvent:
    """Something that happened to a session outside its runs.

    `session_init`: the session is ready; `leaf_id` is empty when it is fresh. `session_branched`:
    the leaf moved from `from_id` to `leaf_id`. `session_forked`: `session_id` was made of a path
    of `parent_id`. `session_compacted`: `entry` was appended and is the leaf. On the stream also
    `command_failed`: a signal asked for what could not be done.
    """

    type: str
    session_id: str
    leaf_id: str = ""
    from_id: str = ""
    parent_id: str = ""
    entry: CompactionEntry | None = None
    command_id: str = ""
    verb: str = ""
    error: ErrorInfo | None = None

    @classmethod
    def of(cls, event: LifecycleEvent) -> SessionEvent:
        """The event that travels as this message."""
        entry = None if event.entry is None else entry_from_json(event.entry)
        return cls(
            type=event.type,
            session_id=event.session_id,
            leaf_id=event.leaf_id,
            from_id=event.from_id,
            parent_id=event.parent_id,
            entry=entry if isinstance(entry, CompactionEntry) else None,
            command_id=event.command_id,
            verb=event.verb,
            error=event.error,
        )


class PublishesEvents(Protocol):
    """An object that takes events; sync or async."""

    def publish(self, event: SessionEvent) -> Any:
        """Take an event. A publisher should be quick: the session waits for it, half a minute
        at most.
        """


Publisher = Callable[[SessionEvent], Any] | PublishesEvents
"""A callable, or an object with `publish`; sync or async."""


def publish_to(publisher: Publisher) -> Callable[[SessionEvent], Any]:
    """The function that takes a publisher's events. Raises AgentError when there is none."""
    publish = getattr(publisher, "publish", publisher)
    if not callable(publish):
        raise AgentError(
            f"a publisher is a function or has a method `publish`, which {publisher!r} is not"
        )
    return publish
