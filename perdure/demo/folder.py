"""The folder of a demo: what lies where, who uses it, and how far the demo came in it.

Two locks. One is held by the demo itself: two demos do not share a folder. The other is inherited
by its server and its workers: a demo that follows one that was killed waits for them to be gone,
since two servers would not share a database either.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from importlib.resources import files
from pathlib import Path
from typing import Literal

from perdure.demo.questions import SESSION_ID
from perdure.errors import DemoError

_PATIENCE = 30.0
"""Seconds that processes of an earlier demo are given to end."""

_SAFE_DESCRIPTOR = 20
"""The server's shell uses descriptors of its own, below ten."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far the demo came: it runs (or was interrupted), or it ended. `model` and `version` say
    what it ran with.
    """

    state: Literal["running", "ended"]
    model: str
    version: str


@dataclass(frozen=True, slots=True)
class Folder:
    """Where a demo keeps its things."""

    root: Path

    @property
    def sessions(self) -> Path:
        """The store."""
        return self.root / "sessions"

    @property
    def log(self) -> Path:
        """The session's log."""
        return self.sessions / f"{SESSION_ID}.jsonl"

    @property
    def database(self) -> Path:
        """The Temporal server's database."""
        return self.root / "temporal.db"

    @property
    def journal(self) -> Path:
        """What everybody involved noted down."""
        return self.root / "journal.jsonl"

    @property
    def mailbox(self) -> Path:
        """The reports that the agent mailed."""
        return self.root / "reports.jsonl"

    @property
    def worker_log(self) -> Path:
        """What the workers printed."""
        return self.root / "worker.log"

    @property
    def _progress(self) -> Path:
        return self.root / "demo.json"

    @contextlib.contextmanager
    def taken(self) -> Iterator[int]:
        """Have the folder to oneself; gives the descriptor of the lock that children inherit.

        Raises DemoError when another demo uses it, when it holds what no demo made, and when it
        cannot be made.
        """
        try:
            self.root.mkdir(parents=True, exist_ok=True)
            self._check_ours()
            demo = os.open(self.root / "demo.lock", os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise DemoError(
                f"{self.root} cannot be used: {error.strerror}; name a folder: --dir DIR"
            ) from error
        try:
            if not _lock(demo):
                raise DemoError(
                    f"a demo runs in {self.root}; end it, or name another folder: --dir DIR"
                )
            with self._processes() as processes:
                yield processes
        finally:
            os.close(demo)

    @contextlib.contextmanager
    def _processes(self) -> Iterator[int]:
        opened = os.open(self.root / "processes.lock", os.O_RDWR | os.O_CREAT, 0o644)
        descriptor = fcntl.fcntl(opened, fcntl.F_DUPFD_CLOEXEC, _SAFE_DESCRIPTOR)
        os.close(opened)
        try:
            deadline = time.monotonic() + _PATIENCE
            while not _lock(descriptor):
                if time.monotonic() > deadline:
                    raise DemoError(
                        f"processes of an earlier demo still use {self.root}; "
                        f"`fuser {self.root / 'processes.lock'}` names them"
                    )
                time.sleep(0.05)
            yield descriptor
        finally:
            os.close(descriptor)

    def progress(self) -> Progress | None:
        """How far an earlier demo came here, if there was one."""
        try:
            return Progress(**json.loads(self._progress.read_bytes()))
        except FileNotFoundError:
            return None
        except (TypeError, ValueError):  # of another version
            return Progress("ended", "", "")

    def save(self, progress: Progress) -> None:
        """Note how far the demo came."""
        _write_whole(self._progress, json.dumps(asdict(progress)).encode() + b"\n")

    def clear(self) -> None:
        """Delete what an earlier demo made here, and nothing else."""
        made = [self.log, _draft(self.log), self.journal, self.mailbox, self.worker_log]
        made += self.sessions.glob(f"{SESSION_ID}.jsonl.torn-*")
        made += self.root.glob(f"{self.database.name}*")
        for path in made:
            path.unlink(missing_ok=True)

    def put_log(self) -> bytes:
        """Put the other program's log where the store finds it, unless it is there; give its
        bytes.
        """
        log = files("perdure.demo").joinpath("interrupted.jsonl").read_bytes()
        self.sessions.mkdir(exist_ok=True)
        if not self.log.exists():
            _write_whole(self.log, log)
        return log

    def _check_ours(self) -> None:
        ours = {"demo.json", "demo.lock", "processes.lock", "demo.json.new"}
        strange = [path.name for path in self.root.iterdir() if path.name not in ours]
        if strange and not self._progress.exists():
            raise DemoError(
                f"{self.root} holds {strange[0]!r}, which no demo made; "
                "name an empty folder: --dir DIR"
            )


def _lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _write_whole(path: Path, data: bytes) -> None:
    """Write a file that is there completely, or not at all, whenever this process is killed."""
    _draft(path).write_bytes(data)
    _draft(path).replace(path)


def _draft(path: Path) -> Path:
    return path.with_name(path.name + ".new")
