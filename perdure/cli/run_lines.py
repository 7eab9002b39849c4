"""A run as its watcher reads it: what is said goes to standard output, what is done beside it to
standard error.
"""

from __future__ import annotations

import shlex
from typing import Any

from perdure.cli.entry_lines import call_line, plural, result_line, tokens_of
from perdure.cli.screen import Screen, one_line, safe
from perdure.codec import encode_entry, loads_json
from perdure.errors import PerdureError
from perdure.messages import Message, StopReason
from perdure.run import RunEvent


class RunPrinter:
    """Prints what is worth seeing of a run's events, one after the other.

    On a terminal the answer appears piece by piece, as the model writes it; elsewhere when it is
    whole. With `tells_approvals` it says how to answer a call that waits for a person, with
    `tells_input` what the run was given.
    """

    def __init__(
        self,
        session_id: str,
        answers: Screen,
        asides: Screen,
        *,
        tells_approvals: bool = True,
        tells_input: bool = False,
    ) -> None:
        self._session_id = session_id
        self._answers = answers
        self._asides = asides
        self._tells_approvals = tells_approvals
        self._tells_input = tells_input
        self._said = ""
        self._thinks = False

    def show(self, event: RunEvent) -> None:
        """Print what is worth seeing of an event."""
        match event.type:
            case "agent_start" if self._tells_input:
                for entry in event.entries:
                    self._show_message(getattr(entry, "message", None))
            case "message_update":
                self._show_piece(event)
            case "message_end":
                self._show_message(event.message)
            case "tool_execution_start":
                self.aside(f"→ {call_line(event.tool_name, event.arguments)}", "yellow")
            case "tool_execution_update" if self._asides.is_terminal and event.progress:
                self.aside(f"· {one_line(event.tool_name)} {one_line(event.progress)}", "dim")
            case "approval_requested" if self._tells_approvals:
                answer = shlex.join(["perdure", "approve", self._session_id, event.tool_call_id])
                self.aside(f"{one_line(event.tool_name)} waits for a person: {answer}", "yellow")
            case "restarted":
                self.aside("the run begins again", "dim")
            case "agent_end":
                told = [plural(event.turn, "turn"), tokens_of(event.usage)]
                self.aside(" · ".join(filter(None, told)), "dim")

    def aside(self, line: str, style: str) -> None:
        """Print a line beside the answer."""
        self.end_line()
        self._asides.line(self._asides.styled(self._asides.fit(line), style))
        self._asides.flush()

    def end_line(self) -> None:
        """End the line that the answer is in the middle of."""
        if self._said:
            self._answers.line()
            self._answers.flush()
        self._said, self._thinks = "", False

    def _show_piece(self, event: RunEvent) -> None:
        if not self._answers.is_terminal:
            return
        if event.is_reset:
            self.end_line()
            self.aside("the answer begins anew", "dim")
        elif event.delta is None:
            return
        elif event.delta.kind == "text":
            self._answers.write(safe(event.delta.text))
            self._answers.flush()
            self._said += event.delta.text
        elif event.delta.kind == "thinking" and not self._thinks:
            self.aside("(thinks)", "dim")
            self._thinks = True

    def _show_message(self, message: Message | None) -> None:
        if message is None or message.role not in ("user", "assistant", "tool_result"):
            return
        if message.role == "tool_result":
            self.aside(result_line(message), "red" if message.is_error else "green")
            return
        if message.role == "user":
            self.aside(f"> {one_line(message.text)}", "bold")
            return
        if self._said and not message.text.startswith(self._said):
            self.end_line()  # what came piece by piece is not what was stored
        if rest := message.text[len(self._said) :]:
            self._answers.write(safe(rest))
        if message.text:
            self._answers.line()
            self._answers.flush()
        self._said, self._thinks = "", False
        if message.stop_reason == StopReason.ABORTED and message.text:
            self.aside("✗ it was cancelled here", "dim")


def event_json(event: RunEvent) -> dict[str, Any]:
    """An event as `run --json` tells it: every key always there."""
    return {
        "type": event.type,
        "run_id": event.run_id,
        "turn": event.turn,
        "entries": [loads_json(encode_entry(entry)) for entry in event.entries],
        "leaf_id": event.leaf_id,
        "tool_call_id": event.tool_call_id,
        "tool_name": event.tool_name,
        "arguments": event.arguments,
        "is_error": event.is_error,
        "usage": None if event.usage is None else event.usage.to_wire(),
        "is_passing": event.is_passing,
        "approved": event.approved,
    }


def failure_json(run_id: str, error: PerdureError) -> dict[str, Any]:
    """The last line that `run --json` prints of a run that failed."""
    told = {"type": type(error).__name__, "message": str(error)}
    return {"type": "run_failed", "run_id": run_id, "error": told}
