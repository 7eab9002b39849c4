"""The demo's workers: one at a time, each a process of its own, until it is killed or stopped."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from pathlib import Path

from perdure.demo.folder import Folder
from perdure.demo.journal import Event, Journal, Note
from perdure.errors import DemoError

_TIME_TO_STOP = 15.0
"""Seconds that a worker is given to end in good order."""


class Crew:
    """Starts and kills workers. `current` is the number of the one that lives."""

    def __init__(
        self, folder: Folder, journal: Journal, *, model: str, address: str, lock: int
    ) -> None:
        """Start workers that serve `model` from the server at `address`; all inherit `lock`."""
        self._folder = folder
        self._journal = journal
        self._model = model
        self._address = address
        self._lock = lock
        self._process: asyncio.subprocess.Process | None = None
        self.current = max((note.worker for note in journal.notes()), default=0)

    @property
    def pid(self) -> int:
        """The process of the current worker."""
        return self._process.pid if self._process is not None else 0

    async def start(self) -> None:
        """Start the next worker."""
        self.current += 1
        with self._folder.worker_log.open("ab") as output:
            self._process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "perdure.demo.worker", str(self._folder.root)),
                *(str(self.current), self._model, self._address),
                stdin=asyncio.subprocess.PIPE,  # closes when this process ends, and so do they
                stdout=output,
                stderr=output,
                start_new_session=True,  # so that Ctrl-C reaches this process only
                pass_fds=(self._lock,),
            )
        self._note(Event.WORKER_STARTED)

    async def kill(self) -> None:
        """SIGKILL: the worker ends at once, without a word to anyone."""
        process, self._process = self._process, None
        assert process is not None
        process.kill()
        await process.wait()
        self._journal.add(Note(Event.WORKER_KILLED, worker=self.current, pid=process.pid))

    async def stop(self) -> None:
        """Tell the worker to end, and wait until it has."""
        process, self._process = self._process, None
        if process is None or process.returncode is not None:
            return
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
        try:
            await asyncio.wait_for(process.wait(), _TIME_TO_STOP)
        except TimeoutError:
            process.kill()
            await process.wait()

    async def guard(self) -> None:
        """Raise DemoError when a worker ends that nobody ended."""
        while True:
            process = self._process
            if process is None:
                await asyncio.sleep(0.1)
                continue
            status = await process.wait()
            if process is self._process:
                raise DemoError(
                    f"worker {self.current} ended by itself with status {status}: "
                    f"{_last_line(self._folder.worker_log)} (all of it: {self._folder.worker_log})"
                )

    def _note(self, event: Event) -> None:
        self._journal.add(Note(event, worker=self.current, pid=self.pid))


def _last_line(path: Path) -> str:
    lines = path.read_text("utf-8", "replace").split("\n")
    return next((line.strip() for line in reversed(lines) if line.strip()), "it said nothing")
