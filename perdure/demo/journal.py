"""The journal: who did what, one line each, in the order in which it happened.

The demo and its workers append to one file. It is how the demo knows when to strike, and what its
checks compare the log with.
"""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")

_PAUSE = 0.02
"""Seconds between two looks at the file."""


class Event(StrEnum):
    """What a line of the journal is about."""

    DEMO_STARTED = "demo started"
    WORKER_STARTED = "worker started"
    WORKER_KILLED = "worker killed"
    MODEL_ASKED = "model asked"
    MODEL_ANSWERED = "model answered"
    MODEL_FAILED = "model failed"
    TOOL_STARTED = "tool started"
    TOOL_ENDED = "tool ended"
    RECEIPT = "receipt"
    RUN_ENDED = "run ended"


@dataclass(frozen=True, slots=True)
class Note:
    """One line; what does not apply is empty.

    `subject` is the tool's name, the run's ID, the last question that the model was sent. `call`
    identifies a call: a tool call by its ID, a model call by a digest of the `messages` messages
    that it was sent. `entry` is the ID of an entry whose receipt was seen.
    """

    event: Event
    worker: int = 0
    pid: int = 0
    attempt: int = 0
    subject: str = ""
    call: str = ""
    messages: int = 0
    entry: str = ""


class Journal:
    """A file of notes that several processes append to and read."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._notes: list[Note] = []
        self._offset = 0

    def add(self, note: Note) -> None:
        """Append a note. It is in the file when this returns, whatever becomes of this process."""
        line = {"at": datetime.now(UTC).isoformat(timespec="milliseconds")}
        line |= {name: value for name, value in asdict(note).items() if value}
        append_line(self.path, json.dumps(line, ensure_ascii=False))

    def notes(self) -> list[Note]:
        """Everything up to now, whoever wrote it."""
        try:
            with self.path.open("rb") as file:
                file.seek(self._offset)
                added = file.read()
        except FileNotFoundError:
            return []
        whole = added[: added.rfind(b"\n") + 1]
        self._offset += len(whole)
        self._notes += filter(None, map(_read, whole.splitlines()))
        return list(self._notes)

    async def wait(
        self,
        find: Callable[[list[Note]], T | None],
        *,
        timeout: float,
        over: Callable[[], bool] = lambda: False,
    ) -> T | None:
        """What `find` finds in the notes, as soon as it does.

        None after `timeout` seconds, or when it is `over` and still not found.
        """
        deadline = time.monotonic() + timeout
        while True:
            ends = over() or time.monotonic() > deadline
            found = find(self.notes())
            if found is not None or ends:
                return found
            await asyncio.sleep(_PAUSE)


def append_line(path: Path, line: str) -> None:
    """Add a line to a file, of which other processes may be killed while they do the same."""
    descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        size = os.fstat(descriptor).st_size
        is_torn = size > 0 and os.pread(descriptor, 1, size - 1) != b"\n"
        os.write(descriptor, b"\n" * is_torn + line.encode() + b"\n")
    finally:
        os.close(descriptor)


def _read(line: bytes) -> Note | None:
    """The note on a line; none on one whose writer was killed half-way."""
    try:
        fields = json.loads(line)
        fields.pop("at")
        return Note(**fields | {"event": Event(fields["event"])})
    except (KeyError, TypeError, ValueError):
        return None
