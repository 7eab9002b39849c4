"""What a tool may know about the call that it serves, and tell about it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol


class CallProgress(Protocol):
    """Whoever runs the call, as the tool sees it. Both may be asked from any thread."""

    @property
    def is_cancelled(self) -> bool:
        """Whether nobody waits for the result any more."""

    def report(self, text: str, fraction: float | None) -> None:
        """Pass on how the call gets on."""


@dataclass(frozen=True, slots=True)
class ToolContext:
    """The call that a tool serves. A tool that wants it declares a parameter of this type.

    `tool_call_id` is the same each time that the call is attempted, and together with the session's
    ID it is unique: hand it to the outside world as an idempotency key. `attempt` counts from 1.
    """

    session_id: str
    run_id: str
    tool_call_id: str
    attempt: int = 1
    _call: CallProgress | None = field(default=None, repr=False, compare=False)

    @property
    def is_cancelled(self) -> bool:
        """Whether the tool should stop: its run was cancelled, or its time is up.

        An async tool is told by CancelledError. One that is not runs in a thread, which nobody can
        stop: it looks here now and then.
        """
        return self._call is not None and self._call.is_cancelled

    def progress(self, text: str = "", fraction: float | None = None) -> None:
        """Tell whoever watches the run how the call gets on, in words, or as a fraction of 1.

        Watchers of a run that was started with `stream=True` get it as `tool_execution_update`;
        otherwise nothing happens. It is not stored, and what is told too often is left out: the
        last reports count. May be called from any thread, and as often as one likes.
        """
        if self._call is not None:
            self._call.report(text, fraction)
