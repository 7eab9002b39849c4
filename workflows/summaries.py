"""One line about an activity, a timer or a child workflow, for whoever watches the session in the
Temporal UI. They are in history, so they are short; `hides_text` keeps arguments out of them.
"""

from __future__ import annotations

from perdure.protocol import ActiveRun, PlannedCall, SessionState
from perdure.protocol.said import call_line, one_line

_LONGEST = 120
_VALUE = 40


def model_summary(run: ActiveRun, state: SessionState) -> str:
    """Which model, which turn, and how long the conversation was when that was last known."""
    size = f" · {short_number(state.context_tokens)} tokens" if state.context_tokens else ""
    return _short(f"{run.model} · turn {run.turn}{size}")


def loop_summary(run: ActiveRun) -> str:
    """Which loop."""
    return _short(f"{run.model} · a loop of its own")


def tool_summary(call: PlannedCall, state: SessionState) -> str:
    """The call, as one would type it."""
    if state.hides_text:
        return _short(f"{call.name}(…)" if call.arguments else f"{call.name}()")
    return call_line(call.name, call.arguments, _LONGEST, _VALUE)


def child_summary(call: PlannedCall, state: SessionState) -> str:
    """Which agent is asked, by whom, for what."""
    asked = f"{call.sub_agent} for session {state.session_id}"
    task = "" if state.hides_text else f": {call.arguments['task']}"
    return one_line(asked + task, 200)


def append_summary(count: int) -> str:
    """How many entries are stored."""
    return f"append {count} {'entry' if count == 1 else 'entries'}"


def compaction_summary(keep_turns: int, state: SessionState) -> str:
    """What is summarized."""
    size = f" of {short_number(state.context_tokens)} tokens" if state.context_tokens else ""
    kept = f", but for {keep_turns} turns" if keep_turns else ""
    return f"summarize the conversation{size}{kept}"


def short_number(number: int) -> str:
    """A count in a few characters: 940, 12.4k, 2.5M."""
    for size, letter in ((1_000_000, "M"), (1_000, "k")):
        if number >= size:
            return f"{number / size:.1f}{letter}"
    return str(number)


def _short(text: str) -> str:
    return one_line(text, _LONGEST)
