"""A command-line agent as a loop: a subprocess that speaks newline-delimited JSON."""

from __future__ import annotations

import asyncio
import logging
import math
import os
import re
import shutil
import signal
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any, Final, Protocol, cast

from perdure.codec import dumps_json, loads_json
from perdure.errors import AgentError, JsonError, LoopError, MaxTurnsError
from perdure.loops.command_session import is_complete, marked, prompt_of, session_to_resume
from perdure.loops.process import CommandProcess
from perdure.loops.protocol import LoopContext, LoopOutput, OnCrash
from perdure.loops.secrets import scrubbed, secrets_of
from perdure.loops.stream_json import Ending, LineError, StreamJson
from perdure.messages import ContentBlock, Message

logger = logging.getLogger("perdure.loops")

DEFAULT_TIMEOUT: Final = 1_800.0
"""Seconds for which a command may be silent, unless told otherwise."""

MAX_BAD_LINES: Final = 100
"""Lines in a row that are no JSON objects, after which a command is given up."""

_TERMINAL_CODE: Final = re.compile(rb"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\))")
_LAST_WORDS: Final = 5.0
_EXCERPT: Final = 1_000


class Reader(Protocol):
    """Reads what a command prints, line by line."""

    @property
    def session_id(self) -> str:
        """The ID of the command's own session, once it is known."""
        ...

    def read(self, line: dict[str, Any]) -> Iterator[LoopOutput | Ending]:
        """What a line says."""
        ...

    def rest(self) -> Iterator[LoopOutput]:
        """What is whole and was not told yet, when nothing more comes."""
        ...


class CommandProtocol(Protocol):
    """How a kind of command is called and read. `StreamJson` is that of the Claude Code CLI."""

    def arguments(
        self, command: Sequence[str], *, instructions: str = "", resume: str = ""
    ) -> list[str]:
        """The command with the flags that the protocol needs; `resume` names a session of the
        command's own, which it goes on from without changing it.
        """
        ...

    def prompt(self, content: Iterable[ContentBlock]) -> bytes:
        """What the command reads on its standard input."""
        ...

    def reader(self) -> Reader:
        """A reader for one run of the command."""
        ...


class CommandLoop:
    """Runs a command-line agent, once for each run.

    The flags that the protocol needs are added to the command. `cwd` is the folder that it works
    in, `env` are variables on top of the worker's own (None takes one away). After `timeout`
    seconds without output it is stopped and the run fails. When it is stopped, its whole process
    group is asked to end, and killed after `grace` seconds.

    The command keeps a session of its own. As long as the conversation goes on from where that
    ends, it is resumed. Otherwise (after a branch into the middle of a run, or a compaction) the
    command starts afresh, and is told the conversation as text.

    Raises `AgentError` for what cannot be a command.
    """

    def __init__(
        self,
        command: Sequence[str | os.PathLike[str]],
        *,
        cwd: str | os.PathLike[str] | None = None,
        env: Mapping[str, str | None] | None = None,
        timeout: float | None = DEFAULT_TIMEOUT,
        grace: float = 2.0,
        on_crash: OnCrash = "resume",
        name: str = "",
        protocol: CommandProtocol | None = None,
    ) -> None:
        if isinstance(command, (str, bytes)) or not command:
            raise AgentError(
                "the command must be a list of arguments, such as ['claude', '-p'], "
                f"not {command!r}"
            )
        if timeout is not None and not _is_number_above(0, timeout):
            raise AgentError(f"the timeout must be a number of seconds, or None, not {timeout!r}")
        if grace != 0 and not _is_number_above(0, grace):
            raise AgentError(f"grace must be a number of seconds, not {grace!r}")
        _check_variables(env or {})
        if on_crash not in ("resume", "restart"):
            raise AgentError(f"on_crash is 'resume' or 'restart', not {on_crash!r}")
        try:
            self._command = [os.fspath(argument) for argument in command]
            self._cwd = None if cwd is None else Path(cwd)
        except TypeError as error:
            raise AgentError(
                f"the command and its folder must be texts or paths: {error}"
            ) from None
        self._given = dict(env or {})
        self._timeout = timeout
        self._grace = grace
        self._protocol = StreamJson() if protocol is None else protocol
        self.on_crash: OnCrash = on_crash
        self.name = name or Path(self._command[0]).name

    def __repr__(self) -> str:
        return f"<CommandLoop {self.name!r}>"

    def check(self) -> None:
        """Raise `LoopError` when there is no such command, or no such folder to work in."""
        if self._cwd is not None and not self._cwd.is_dir():
            raise LoopError(f"{self.name} cannot start: there is no folder {str(self._cwd)!r}")
        if self._found() is None:
            file = self._path()
            if file is not None and file.is_file():
                raise LoopError(
                    f"{self.name} cannot start: the file {str(file)!r} is not executable; "
                    "chmod +x makes it so"
                )
            raise LoopError(
                f"there is no command {self._command[0]!r} on this worker; "
                "install it, or name it by its path"
            )

    async def run(self, context: LoopContext) -> AsyncIterator[LoopOutput]:
        """Run the command on what is new in the conversation."""
        if is_complete(context):
            return  # an earlier attempt came to the end
        resume = session_to_resume(context)
        if resume:
            has_spoken = False
            try:
                async with aclosing(self._run(context, resume)) as outputs:
                    async for output in outputs:
                        has_spoken = has_spoken or isinstance(output, Message)
                        yield output
                return
            except _EndedError as error:
                if has_spoken:
                    raise LoopError(str(error)) from None
                # Its session may be on another machine, or was cleaned up.
                logger.warning("%s did not resume, starting afresh: %s", self.name, error)
        try:
            async with aclosing(self._run(context, "")) as outputs:
                async for output in outputs:
                    yield output
        except _EndedError as error:
            raise LoopError(str(error)) from None

    async def _run(self, context: LoopContext, resume: str) -> AsyncGenerator[LoopOutput]:
        arguments = self._protocol.arguments(
            self._command, instructions=context.instructions, resume=resume
        )
        process = CommandProcess(
            self.name,
            [self._found() or arguments[0], *arguments[1:]],
            cwd=self._cwd,
            env=self._environment(),
            grace=self._grace,
        )
        secrets = secrets_of(self._given)
        ending: Ending | None = None
        bad_lines = _BadLines(self.name, secrets)
        async with process:
            process.give(self._protocol.prompt(prompt_of(context, is_resumed=bool(resume))))
            async with aclosing(self._read(process, bad_lines)) as outputs:
                async for output in outputs:
                    if isinstance(output, Ending):
                        ending = output
                        break
                    yield marked(output, context.session_id)
            status = await process.wait(_LAST_WORDS)
            last_words = scrubbed(process.error_output, secrets) or bad_lines.last
        if ending is None:
            raise _EndedError(_how_it_ended(self.name, status, last_words))
        if isinstance(ending.error, MaxTurnsError):
            raise ending.error
        if ending.error is not None:
            raise _EndedError(scrubbed(f"{self.name}: {ending.error}", secrets))
        if status:
            logger.warning("%s is done, with status %d: %s", self.name, status, last_words)

    async def _read(
        self, process: CommandProcess, bad_lines: _BadLines
    ) -> AsyncGenerator[LoopOutput | Ending]:
        reader = self._protocol.reader()
        try:
            async with aclosing(process.lines(self._timeout)) as lines:
                async for data in lines:
                    line = _parsed(data)
                    if line is None:
                        bad_lines.add(data)
                        continue
                    bad_lines.clear()
                    for output in self._understood(reader, line):
                        yield output
        except (asyncio.CancelledError, LoopError):
            for output in reader.rest():
                yield output
            raise
        for output in reader.rest():
            yield output

    def _understood(self, reader: Reader, line: dict[str, Any]) -> Iterator[LoopOutput | Ending]:
        try:
            yield from reader.read(line)
        except LineError as error:
            excerpt = scrubbed(dumps_json(line).decode("utf-8", "replace"), secrets_of(self._given))
            raise LoopError(
                f"{self.name} printed a line in which {error}: {excerpt[:_EXCERPT]}"
            ) from None

    def _found(self) -> str | None:
        """The program, by its path."""
        program = str(self._path() or self._command[0])
        return shutil.which(program, path=self._environment().get("PATH"))

    def _path(self) -> Path | None:
        """Where the program is, if it is named by a path."""
        program = self._command[0]
        return (self._cwd or Path()) / program if os.sep in program else None

    def _environment(self) -> dict[str, str]:
        environment = {**os.environ, **self._given}
        return {name: value for name, value in environment.items() if value is not None}


class _EndedError(Exception):
    """The command ended by itself, and not well."""


class _BadLines:
    """What a command printed that is no JSON: let pass with a warning, but not for ever."""

    def __init__(self, name: str, secrets: Iterable[str]) -> None:
        self.last = ""
        self._name = name
        self._secrets = secrets
        self._count = 0

    def add(self, data: bytes) -> None:
        """Raises LoopError when there are too many in a row."""
        if not data.strip():
            return
        text = scrubbed(data.decode("utf-8", "replace").strip(), self._secrets)
        self.last = text if len(text) <= _EXCERPT else f"{text[:_EXCERPT]}…"
        self._count += 1
        logger.warning("%s printed a line that is no JSON object: %s", self._name, self.last)
        if self._count >= MAX_BAD_LINES:
            raise LoopError(
                f"{self._name} printed {MAX_BAD_LINES} lines that are no JSON objects, the last: "
                f"{self.last}"
            )

    def clear(self) -> None:
        self._count = 0


def _parsed(data: bytes) -> dict[str, Any] | None:
    # Terminal codes may come before the JSON, where the command takes its output for a terminal.
    for attempt in (data, _TERMINAL_CODE.sub(b"", data)):
        try:
            line = loads_json(attempt)
        except (JsonError, UnicodeDecodeError):
            continue
        if isinstance(line, dict):
            return line
    return None


def _how_it_ended(name: str, status: int | None, last_words: str) -> str:
    if status is None:
        how = "closed its output and was stopped"
    elif status < 0:
        how = f"was ended by {_signal_name(-status)}"
    else:
        how = f"ended with status {status}"
    said = f": {last_words[-_EXCERPT:]}" if last_words else ""
    return f"{name} {how}, before it had a result{said}"


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _is_number_above(least: float, value: object) -> bool:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return is_number and least < cast("float", value) < math.inf


def _check_variables(env: object) -> None:
    if not isinstance(env, Mapping):
        raise AgentError(f"env must be a mapping of variables, not {type(env).__name__}")
    for name, value in env.items():
        # The value may be a secret: it is not repeated.
        is_name = isinstance(name, str) and name and not set("=\0") & set(name)
        if not is_name or not (value is None or isinstance(value, str)) or "\0" in (value or ""):
            raise AgentError(f"the variable {name!r} in env must be a text with a name, or None")
