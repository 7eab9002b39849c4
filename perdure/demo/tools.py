"""The demo agent's tools: some read real files, and two take long enough to be killed."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from perdure.demo.journal import Event, Journal, Note, append_line
from perdure.demo.project import Project
from perdure.tools import Tool, ToolContext, tool

COUNT_LINES: Final = "count_lines"
SEND_REPORT: Final = "send_report"
SLOW_TOOLS: Final = (SEND_REPORT, COUNT_LINES)
"""The tools in which workers are killed."""

_SLOW = 30.0
"""Seconds that a slow tool takes when it runs for the first time: long enough for the demo to
strike for sure. It never takes that long after the strike."""

_MOST_HITS: Final = 30
_MOST_LINES: Final = 200
_LONGEST_LINE: Final = 160


class Desk:
    """Where the agent works: the project's files, a mailbox for its reports, a journal."""

    def __init__(self, project: Project, mailbox: Path, journal: Journal, worker: int) -> None:
        self._project = project
        self._mailbox = mailbox
        self._journal = journal
        self._worker = worker

    def tools(self) -> list[Tool[..., Any]]:
        """All of them, as an agent takes them."""
        return [
            tool(self.list_files, idempotent=True, timeout=20),
            tool(self.read_file, idempotent=True, timeout=20),
            tool(self.search, idempotent=True, timeout=20),
            tool(self.count_lines, idempotent=True, timeout=60),
            tool(self.sent_reports, idempotent=True, timeout=20),
            # Not idempotent: a report that is sent twice is read twice.
            tool(self.send_report, timeout=60),
        ]

    def list_files(self, context: ToolContext, path: str = ".") -> str:
        """List a folder of the project.

        Args:
            path: The folder, relative to the project's root.
        """
        with self._noted("list_files", context):
            return "\n".join(self._project.children(self._project.find(path)))

    def read_file(self, context: ToolContext, path: str, first_line: int = 1) -> str:
        """Read a text file of the project, at most 200 lines of it at a time.

        Args:
            path: The file, relative to the project's root.
            first_line: The number of the line to start with.
        """
        with self._noted("read_file", context):
            lines = self._project.find(path).read_text("utf-8", "replace").splitlines()
            start = max(first_line, 1) - 1
            shown = lines[start : start + _MOST_LINES]
            left = len(lines) - start - len(shown)
            return "\n".join(shown) + (f"\n… {left} more lines" if left > 0 else "")

    def search(self, context: ToolContext, pattern: str, path: str = ".") -> str:
        """Find the lines that contain a text, letter for letter.

        Args:
            pattern: The text itself, not a regular expression.
            path: A file or folder to search, relative to the project's root.
        """
        with self._noted("search", context):
            start = self._project.find(path)
            return self._hits(pattern, start)

    async def count_lines(self, context: ToolContext, path: str = ".") -> str:
        """Count the lines of all text files below a folder.

        Args:
            path: The folder, relative to the project's root.
        """
        start = self._project.find(path)
        slow = self._is_first(COUNT_LINES)
        with self._noted(COUNT_LINES, context):
            counts = [len(lines) for _, lines in self._project.texts(start)]
            await asyncio.sleep(_SLOW if slow else 0.2)
            return f"{sum(counts):,} lines in {len(counts)} files"

    async def send_report(self, context: ToolContext, text: str) -> str:
        """Mail a report to the team.

        Args:
            text: The report.
        """
        slow = self._is_first(SEND_REPORT)
        # Sent before it is noted: the demo strikes at the note, when the report has gone out and
        # nobody has heard of it yet.
        mail = {"tool_call_id": context.tool_call_id, "worker": self._worker, "text": text}
        append_line(self._mailbox, json.dumps(mail, ensure_ascii=False))
        with self._noted(SEND_REPORT, context):
            await asyncio.sleep(_SLOW if slow else 0.2)  # until the mail server confirms
            return "sent"

    def sent_reports(self, context: ToolContext) -> str:
        """List the reports that were mailed to the team."""
        with self._noted("sent_reports", context):
            mails = [json.loads(line)["text"] for line in mailed(self._mailbox)]
            return "\n".join([f"{len(mails)} sent", *mails])

    def _hits(self, pattern: str, start: Path) -> str:
        hits = [
            f"{path}:{number}: {line.strip()[:_LONGEST_LINE]}"
            for path, lines in self._project.texts(start)
            for number, line in enumerate(lines, 1)
            if pattern in line
        ]
        more = len(hits) - _MOST_HITS
        shown = hits[:_MOST_HITS] + [f"… {more} more"] * (more > 0)
        return "\n".join([f"{len(hits)} hit{'s' * (len(hits) != 1)}", *shown])

    def _is_first(self, name: str) -> bool:
        return not any(
            note.event is Event.TOOL_STARTED and note.subject == name
            for note in self._journal.notes()
        )

    @contextlib.contextmanager
    def _noted(self, name: str, context: ToolContext) -> Iterator[None]:
        note = Note(
            Event.TOOL_STARTED,
            worker=self._worker,
            pid=os.getpid(),
            attempt=context.attempt,
            subject=name,
            call=context.tool_call_id,
        )
        self._journal.add(note)
        try:
            yield
        finally:
            self._journal.add(replace(note, event=Event.TOOL_ENDED))


def mailed(mailbox: Path) -> list[str]:
    """The lines of a mailbox, one for each report that went out."""
    return mailbox.read_text("utf-8").splitlines() if mailbox.exists() else []
