"""Processes whose wall clock can be set while they run, as an administrator or NTP does.

A small library between a process and the C library adds what a file says, so that Python, the
SDK's core and whatever else is in the process see the same wrong time.
"""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
from pathlib import Path

_SOURCE = Path(__file__).with_name("clock.c")


class MovableClock:
    """The clock of one process."""

    def __init__(self, library: Path, file: Path) -> None:
        self._library = library
        self._file = file
        self.set(0.0)

    def set(self, seconds: float) -> None:
        """Let the process's clock be off by so many seconds."""
        with self._file.open("r+b" if self._file.exists() else "wb") as file:
            file.write(struct.pack("=q", int(seconds * 1e9)))

    def environment(self) -> dict[str, str]:
        """What a process that has this clock is started with."""
        return os.environ | {"LD_PRELOAD": str(self._library), "CHAOS_CLOCK": str(self._file)}


def build_clock(folder: Path) -> Path | None:
    """The library, compiled into the folder; None on a machine that cannot."""
    compiler = shutil.which("cc")
    if compiler is None or os.uname().sysname != "Linux":
        return None
    library = folder / "clock.so"
    command = [compiler, "-O1", "-shared", "-fPIC", "-o", str(library), str(_SOURCE), "-ldl"]
    finished = subprocess.run(command, capture_output=True, check=False)
    return library if finished.returncode == 0 else None
