"""Journals: what each process wrote down, one JSON object a line, for the checker to read.

A note is in the file before what it tells of goes on, so a process that is killed leaves at most
a torn last line behind. Every process has a file of its own.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

Note = dict[str, Any]
"""A line: its `kind`, when it was written (`at`, seconds of the machine's monotonic clock, which
no fault moves), by whom (`by`), and what else there is to say."""


class Journal:
    """The file of one process."""

    def __init__(self, folder: Path, who: str) -> None:
        self.who = who
        self.path = folder / f"{who}.jsonl"
        self._descriptor = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)

    def note(self, kind: str, **fields: Any) -> None:
        """Write a line; it is in the file when this returns."""
        line = {"kind": kind, "at": round(time.monotonic(), 6), "by": self.who} | fields
        os.write(self._descriptor, json.dumps(line).encode() + b"\n")


def read_notes(path: Path) -> Iterator[Note]:
    """The notes of one file; a line whose writer was killed half-way is left out."""
    with path.open("rb") as file:
        for line in file:
            if line.endswith(b"\n"):
                yield json.loads(line)


def read_folder(folder: Path) -> list[Note]:
    """The notes of all processes, in the order of time."""
    notes = [note for path in sorted(folder.glob("*.jsonl")) for note in read_notes(path)]
    return sorted(notes, key=lambda note: float(note["at"]))
