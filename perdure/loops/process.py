"""A command as a subprocess that is read line by line, and that leaves nothing behind.

Each command runs in a process group of its own. The group is led by a guardian, a small shell that
waits for the end of a pipe whose other end is here. So when this process dies, however suddenly,
the guardian kills the group; and as long as it lives, the group's number is nobody else's.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections import deque
from collections.abc import AsyncGenerator, Mapping, Sequence
from pathlib import Path
from typing import Self

from perdure.errors import LoopError

MAX_LINE_BYTES = 16 * 1024 * 1024
"""The longest line of output that is read, in bytes."""

MAX_STDERR_BYTES = 16 * 1024
"""How much of the end of the error output is kept, in bytes."""

_GUARDIAN = "trap '' TERM INT HUP; read -r _; kill -TERM 0; sleep 2; kill -KILL 0"
_MOST_WAITING = 1024 * 1024
_DRAIN = 0.5
_DRAIN_AT_MOST = 5.0
"""Seconds, without output and in all, after which the pipe of a command that has ended is given up:
a child of the command may keep it open for ever."""


_AFTER_THE_KILL = 1.0
"""Seconds in which a process that was killed is gone, unless the system holds it."""


class CommandProcess:
    """A command that runs. Use it as a context: when the context ends, so does the whole group.

    `grace` is the time between the request to end and the end, in seconds.
    """

    def __init__(
        self,
        name: str,
        arguments: Sequence[str],
        *,
        cwd: Path | None,
        env: Mapping[str, str],
        grace: float,
        max_line_bytes: int = MAX_LINE_BYTES,
    ) -> None:
        self._name = name
        self._arguments = arguments
        self._cwd = cwd
        self._env = env
        self._grace = grace
        self._output = _Output(max_line_bytes)
        self._drained_by: float | None = None

    async def __aenter__(self) -> Self:
        """Start it. Raises LoopError when the system cannot."""
        loop = asyncio.get_running_loop()
        self._guardian, self._guarding = await loop.subprocess_exec(
            _Guarding,
            "/bin/sh",
            "-c",
            _GUARDIAN,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
            process_group=0,
        )
        try:
            self._transport, _ = await loop.subprocess_exec(
                lambda: self._output,
                *self._arguments,
                cwd=self._cwd,
                env=self._env,
                process_group=self._guardian.get_pid(),
            )
        except (OSError, ValueError) as error:  # the latter for a NUL in an argument
            await self._end_group()
            reason = error.strerror if isinstance(error, OSError) else error
            raise LoopError(f"{self._name} cannot be started: {reason}") from error
        except BaseException:
            await self._end_group()
            raise
        return self

    async def __aexit__(self, *error: object) -> None:
        try:
            if self._transport.get_returncode() is None:
                self._signal(signal.SIGTERM)
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(self._grace):
                        await self._output.exited.wait()
        finally:
            await self._end_group()
            await self.wait(_AFTER_THE_KILL)
            self._transport.close()

    def give(self, data: bytes) -> None:
        """Write all of the command's input, and close it."""
        pipe = self._transport.get_pipe_transport(0)
        assert isinstance(pipe, asyncio.WriteTransport)
        if not pipe.is_closing():  # else it has ended already
            pipe.write(data)
            pipe.close()

    async def lines(self, timeout: float | None) -> AsyncGenerator[bytes]:
        """The lines that the command prints, until it has ended, or has closed its output.

        Raises LoopError after `timeout` seconds in which it printed nothing, and for a line that is
        too long.
        """
        output = self._output
        while True:
            while output.lines:
                yield output.take(self._transport)
            if output.too_long:
                raise LoopError(
                    f"{self._name} printed a line of more than {output.max_line_bytes:,} bytes"
                )
            if output.is_closed:
                if last := output.rest():
                    yield last
                return
            patience = self._drain_time() if output.exited.is_set() else timeout
            output.news.clear()
            try:
                async with asyncio.timeout(patience):
                    await output.news.wait()
            except TimeoutError:
                if not output.exited.is_set():
                    raise LoopError(
                        f"{self._name} printed nothing for {timeout:g} seconds and was stopped; "
                        "a longer timeout lets it go on"
                    ) from None
                output.is_closed = True

    async def wait(self, seconds: float) -> int | None:
        """The exit status, negative for a signal; None when it has not ended by then."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._output.exited.wait()
        return self._transport.get_returncode()

    @property
    def error_output(self) -> str:
        """The last lines of what it wrote to its error output."""
        data = bytes(self._output.errors)
        if self._output.has_dropped_errors:
            data = data.partition(b"\n")[2]  # half a line may be half a secret
        return data.decode("utf-8", "replace").strip()

    def _drain_time(self) -> float:
        now = asyncio.get_running_loop().time()
        if self._drained_by is None:
            self._drained_by = now + _DRAIN_AT_MOST
        return min(_DRAIN, self._drained_by - now)

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._guardian.get_pid(), number)

    async def _end_group(self) -> None:
        # At once, and before anything that could be cancelled.
        self._signal(signal.SIGKILL)
        try:
            await self._guarding.exited.wait()
        finally:
            self._guardian.close()


class _Guarding(asyncio.SubprocessProtocol):
    def __init__(self) -> None:
        self.exited = asyncio.Event()

    def process_exited(self) -> None:
        self.exited.set()


class _Output(asyncio.SubprocessProtocol):
    """What a command prints, cut into lines; reading pauses while many wait to be taken."""

    def __init__(self, max_line_bytes: int) -> None:
        self.max_line_bytes = max_line_bytes
        self.lines: deque[bytes] = deque()
        self.errors = bytearray()
        self.has_dropped_errors = False
        self.is_closed = False
        self.too_long = False
        self.exited = asyncio.Event()
        self.news = asyncio.Event()
        self._piece = bytearray()
        self._waiting = 0
        self._is_paused = False
        self._stdout: asyncio.ReadTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.SubprocessTransport)
        stdout = transport.get_pipe_transport(1)
        assert isinstance(stdout, asyncio.ReadTransport)
        self._stdout = stdout

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        if fd == 2:
            self._keep_errors(data)
            return
        first, *others = data.split(b"\n")
        self._piece += first
        for other in others:
            self._finish_line()
            self._piece += other
        self.too_long = self.too_long or len(self._piece) > self.max_line_bytes
        if self._waiting > _MOST_WAITING or self.too_long:
            self._pause()
        self.news.set()

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        if fd == 1:
            self.is_closed = True
            self.news.set()

    def process_exited(self) -> None:
        self.exited.set()
        self.news.set()

    def take(self, transport: asyncio.SubprocessTransport) -> bytes:
        line = self.lines.popleft()
        self._waiting -= len(line)
        if self._waiting <= _MOST_WAITING and not self.too_long:
            self._resume()
        return line

    def rest(self) -> bytes:
        """What was printed after the last line end."""
        last, self._piece = bytes(self._piece), bytearray()
        return last

    def _finish_line(self) -> None:
        line = bytes(self._piece)
        self.too_long = self.too_long or len(line) > self.max_line_bytes
        self._piece.clear()
        self.lines.append(line)
        self._waiting += len(line)

    def _keep_errors(self, data: bytes) -> None:
        self.errors += data
        if len(self.errors) > MAX_STDERR_BYTES:
            del self.errors[:-MAX_STDERR_BYTES]
            self.has_dropped_errors = True

    def _pause(self) -> None:
        # The transport can tell whether it is paused only since Python 3.11.4.
        if self._stdout is not None and not self._is_paused:
            self._is_paused = True
            self._stdout.pause_reading()

    def _resume(self) -> None:
        if self._stdout is not None and self._is_paused and not self._stdout.is_closing():
            self._is_paused = False
            self._stdout.resume_reading()
