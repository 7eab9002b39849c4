"""Where a person types, with editing and a history; or a pipe, of which each line is taken."""

from __future__ import annotations

import sys
from typing import Any

from perdure.cli.screen import Screen

try:
    import readline as _readline
except ImportError:  # a Python that was built without it
    _readline = None  # type: ignore[assignment]

MOST_REMEMBERED = 500
"""Lines that the history holds at most."""


class Console:
    """Standard input, and the screens where its prompts appear."""

    def __init__(self, screen: Screen, asides: Screen) -> None:
        self.is_interactive = sys.stdin is not None and sys.stdin.isatty()
        self._screen = screen
        self._asides = asides
        # Python only edits lines when both sides are the terminal.
        self._editor: Any = _readline if self.is_interactive and screen.is_terminal else None
        if self._editor is not None:
            self._editor.set_auto_history(False)
            self._editor.set_history_length(MOST_REMEMBERED)
        if hasattr(sys.stdin, "reconfigure"):
            sys.stdin.reconfigure(errors="replace")

    def ask(self, prompt: str, *, prefill: str = "") -> str:
        """The next line. Raises EOFError at the end, KeyboardInterrupt at Ctrl-C."""
        self._screen.flush()
        self._asides.flush()
        if self._editor is not None:
            return self._edited(prompt, prefill)
        if self.is_interactive:
            self._asides.write(prompt)
            self._asides.flush()
        line = sys.stdin.readline() if sys.stdin is not None else ""
        if not line:
            raise EOFError
        return line.rstrip("\r\n")

    def remember(self, line: str) -> None:
        """Have the arrow keys bring the line back."""
        if self._editor is not None and line:
            self._editor.add_history(" ".join(line.split()))

    def _edited(self, prompt: str, prefill: str) -> str:
        if self._screen.has_colour:
            # What has no width stands between \x01 and \x02, or the editor counts wrongly.
            prompt = f"\x01\x1b[1m\x02{prompt}\x01\x1b[0m\x02"
        if prefill:
            self._editor.set_startup_hook(lambda: self._editor.insert_text(prefill))
        try:
            return input(prompt)
        finally:
            self._editor.set_startup_hook(None)
