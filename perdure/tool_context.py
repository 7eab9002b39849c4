"""What a tool may know about the call that it serves."""

from __future__ import annotations

from dataclasses import dataclass


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
