"""Processes that are killed and frozen, and that never outlive who started them."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

_KEEPER = """
exec 3<&0
"$@" </dev/null >&2 3<&- &
child=$!
echo "$child"
(cat <&3 >/dev/null; kill -9 "$child") &
wait "$child"
status=$?
kill $! 2>/dev/null
exit $status
"""
"""Runs a command and says its process ID; kills it when standard input closes, frozen or not."""


class ChildProcess:
    """A command in a process of its own, with its output in a file."""

    def __init__(
        self, command: Sequence[str], output: Path, *, environment: Mapping[str, str] | None = None
    ) -> None:
        self._command = command
        self._output = output
        self._environment = environment
        self._keeper: subprocess.Popen[bytes] | None = None
        self.pid = 0
        self.is_frozen = False

    @property
    def is_alive(self) -> bool:
        """Whether it runs, or is frozen."""
        return self._keeper is not None and self._keeper.poll() is None

    @property
    def exit_status(self) -> int | None:
        """How it ended, as a shell tells; None while it runs."""
        return None if self._keeper is None else self._keeper.poll()

    async def start(self) -> None:
        """Start it; it may have run before."""
        with self._output.open("ab") as output:
            self._keeper = subprocess.Popen(
                ["sh", "-c", _KEEPER, "sh", *self._command],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=output,
                env=self._environment,
                start_new_session=True,
            )
        assert self._keeper.stdout is not None
        self.pid = int(await asyncio.to_thread(self._keeper.stdout.readline))
        self.is_frozen = False

    def send(self, number: signal.Signals) -> None:
        """Send it a signal, if it is there."""
        if self.is_alive:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def freeze(self) -> None:
        """Stop it where it is, as a machine that hangs."""
        self.is_frozen = True
        self.send(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let it go on."""
        self.is_frozen = False
        self.send(signal.SIGCONT)

    async def kill(self) -> None:
        """End it as a power cut would, and wait until it has."""
        self.send(signal.SIGKILL)
        await self.ended()

    async def terminate(self, patience: float) -> None:
        """Ask it to end; kill it after so many seconds."""
        self.send(signal.SIGTERM)
        try:
            await asyncio.wait_for(self.ended(), patience)
        except TimeoutError:
            await self.kill()

    async def ended(self) -> None:
        """Wait until it has ended, by whatever."""
        while self.is_alive:  # noqa: ASYNC110 - asyncio's own wait also waits for whoever has a pipe
            await asyncio.sleep(0.05)
        if self._keeper is not None and self._keeper.stdin and self._keeper.stdout:
            self._keeper.stdin.close()
            self._keeper.stdout.close()


def python(module: str, *arguments: str) -> list[str]:
    """The command that runs a module in this Python."""
    return [sys.executable, "-m", module, *arguments]


def resident_bytes(pid: int) -> int:
    """Memory of a process (Linux only)."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def processor_seconds(pid: int) -> float:
    """Processor time that a process has used (Linux only)."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def leave_when_told(stop: asyncio.Event) -> None:
    """Set the event when the process is asked to end."""
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
