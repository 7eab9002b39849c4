"""The command `perdure` in a terminal of its own, as a person has it."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.cli.test_command_line import PERDURE

_LONGEST = 60.0


class Terminal:
    """A running command, its terminal, and what it has printed so far."""

    def __init__(self, process: subprocess.Popen[bytes], controller: int) -> None:
        self.process = process
        self._controller = controller
        self._printed = b""
        self._taken = 0

    @property
    def printed(self) -> str:
        """What was printed, with line ends as programs write them."""
        return self._printed.decode(errors="replace").replace("\r\n", "\n")

    def wait_for(self, pattern: str) -> str:
        """Read until the pattern was printed, and answer with all that was."""
        while not re.search(pattern, self.printed):
            if not self._read():
                raise AssertionError(f"{pattern!r} was not printed, but {self.printed!r}")
        return self.printed

    def wait_for_more(self, pattern: str) -> str:
        """Read until the pattern was printed after what was waited for before, and answer with all
        that was printed since.
        """
        while not (found := re.search(pattern, since := self.printed[self._taken :], re.DOTALL)):
            if not self._read():
                raise AssertionError(f"{pattern!r} was not printed, but {since!r}")
        self._taken += found.end()
        return since[: found.end()]

    def press(self, keys: bytes) -> None:
        """Type."""
        os.write(self._controller, keys)

    def end(self) -> tuple[int, str]:
        """Read to the end; the exit status, and all that was printed."""
        while self._read():
            pass
        return self.process.wait(timeout=_LONGEST), self.printed

    def _read(self) -> bool:
        deadline = time.monotonic() + _LONGEST
        ready, _, _ = select.select([self._controller], [], [], deadline - time.monotonic())
        if not ready:
            raise AssertionError(f"nothing more was printed after {self.printed!r}")
        try:
            data = os.read(self._controller, 65536)
        except OSError:  # the other side is closed
            return False
        self._printed += data
        return bool(data)


@contextmanager
def terminal(
    *arguments: str, cwd: Path, columns: int = 80, **environment: str
) -> Iterator[Terminal]:
    """The command in a terminal of so many columns; it is ended with the block."""
    controller, ours = pty.openpty()
    fcntl.ioctl(ours, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    own = {name: value for name, value in os.environ.items() if not name.startswith("PERDURE_")}
    own.pop("COLUMNS", None)
    own |= {"TERM": "xterm-256color", "TZ": "UTC"} | environment
    process = subprocess.Popen(
        [PERDURE, *arguments],
        cwd=cwd,
        env=own,
        stdin=ours,
        stdout=ours,
        stderr=ours,
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # Ctrl-C reaches it
    )
    os.close(ours)
    try:
        yield Terminal(process, controller)
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
        os.close(controller)


def plain(printed: str) -> str:
    """What is read, without the colours."""
    return re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", printed)
