"""What is seen of the demo: short lines, as things happen."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from perdure.demo.checks import Check
from perdure.demo.lines import answer_in, entry_head, entry_line, tree_lines
from perdure.entries import Entry
from perdure.run import RunEvent
from perdure.run_events import AGENT_END
from perdure.tree import TreeNode

_WIDE = 80
"""From this width on, an answer stands beside its ID, and not below it."""

_MARGIN = Text("   ")

_MARKS = {True: ("✓", "green"), False: ("✗", "bold red"), None: ("–", "yellow")}


class Telling:
    """Tells the demo on standard output, or on standard error when that is kept for the outcome."""

    def __init__(self, *, to_stderr: bool = False) -> None:
        stream = sys.stderr if to_stderr else sys.stdout
        # A pipe has no width; what is written to one may be as wide as people read.
        width = None if stream.isatty() or "COLUMNS" in os.environ else 110
        self._console = Console(
            file=stream, width=width, highlight=False, markup=False, emoji=False
        )
        self._steps = 0
        self._struck_at: float | None = None

    def title(self, text: str) -> None:
        """What all of this is."""
        self._wrapped(Text(""), Text(text, "bold"))

    def step(self, title: str) -> None:
        """A chapter begins."""
        self._steps += 1
        self._print(Text(""))
        self._wrapped(Text(f"{self._steps}  ", "bold"), Text(title, "bold"))

    def fact(self, name: str, value: str) -> None:
        """Something to know: a name and its value, which is never cut."""
        self._console.print(
            Text.assemble("   ", (name.ljust(9), "dim"), " ", value), soft_wrap=True
        )

    def command(self, line: str) -> None:
        """A command to copy; never cut, never wrapped."""
        self._console.print(Text(f"             {line}"), soft_wrap=True)

    def remark(self, text: str, style: str = "dim") -> None:
        """A sentence of ours; it wraps where the terminal ends."""
        self._wrapped(_MARGIN, Text(text, style))

    def entry(self, entry: Entry) -> None:
        """An entry that is in the log."""
        self._line(_MARGIN, entry_line(entry))

    def event(self, event: RunEvent, *, attempts: dict[str, int]) -> None:
        """An event of a run; only receipts are shown, and how it ended."""
        for entry in event.entries:
            self._receipt(entry, attempts.get(event.tool_call_id, 1))
        if event.type == AGENT_END:
            calls = f"{event.turn} model call{'s' * (event.turn > 1)}"
            usage = event.usage
            tokens = f", {usage.input:,} tokens in, {usage.output:,} out" if usage else ""
            self.remark(f"run {event.run_id!r} ended: {calls}{tokens}")

    def killed(self, worker: int, pid: int, where: str) -> None:
        """A worker was struck down."""
        self._struck_at = time.monotonic()
        self._wrapped(
            Text(" ✗ ", "bold red"), Text(f"SIGKILL: worker {worker} (pid {pid}) {where}")
        )

    def started(self, worker: int, pid: int, note: str = "") -> None:
        """A worker was started."""
        self.remark(f"worker {worker} (pid {pid}) started{note}", style="")

    def checks(self, checks: Sequence[Check]) -> None:
        """The verdict, one line for each check."""
        for check in checks:
            mark, style = _MARKS[check.passed]
            self._wrapped(Text(f" {mark} ", style), Text(check.claim))
            self.remark(check.detail)

    def tree(self, roots: Sequence[TreeNode]) -> None:
        """The whole log as a tree."""
        for line in tree_lines(roots):
            self._line(_MARGIN, line)

    def _receipt(self, entry: Entry, attempt: int) -> None:
        if self._struck_at is not None:
            seconds, self._struck_at = time.monotonic() - self._struck_at, None
            self.remark(f"{seconds:.1f} seconds after the kill the run goes on:")
        mark, answer = Text(" ✓ ", "green"), answer_in(entry)
        if not answer:
            line = entry_line(entry)
            if attempt > 1:
                line.append(f"  (attempt {attempt})", "yellow")
            self._line(mark, line)
        elif self._console.width >= _WIDE:
            self._wrapped(mark.append_text(entry_head(entry)), Text(answer))
        else:
            self._line(mark, entry_head(entry))
            self._wrapped(_MARGIN, Text(answer))

    def _wrapped(self, head: Text, text: Text) -> None:
        """Text that goes on below its own beginning where the terminal ends."""
        width = max(self._console.width - len(head), 20)
        for line in text.wrap(self._console, width):
            line.rstrip()
            self._line(head, line)
            head = Text(" " * len(head))

    def _line(self, margin: Text, line: Text) -> None:
        self._print(margin.copy().append_text(line))

    def _print(self, line: Text) -> None:
        line.rstrip()
        self._console.print(line, no_wrap=True, overflow="ellipsis")
