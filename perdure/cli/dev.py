"""`perdure dev`: a Temporal server with its UI, and a worker that begins anew whenever a source
changes.

The worker is a process of its own: only so are all modules loaded anew. It ends when the pipe to
its standard input does, so none is left behind, however this process ends.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shlex
import signal
import socket
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from perdure.cli.place import STORE_VARIABLE, TASK_QUEUE_VARIABLE, Where
from perdure.cli.screen import Screen, err, one_line
from perdure.cli.sources import changes, check_watching, folders_of
from perdure.dev_server import NAMESPACE, DevServer, dev_server
from perdure.errors import AgentError, ServerError
from perdure.tenant import VARIABLE as TENANT_VARIABLE

REPORT_VARIABLE = "PERDURE_DEV_REPORT"
"""The descriptor to which a worker writes that it serves, or why it cannot."""

_PATIENCE = 5.0
"""Seconds beyond its grace after which a worker that does not end is killed."""


@dataclass(frozen=True, slots=True)
class Development:
    """What the command line says: which agents, over which store, and where the server listens.

    `grace` is how many seconds running steps may take when the worker begins anew. `watched` are
    more files and folders whose change has it begin anew.
    """

    agents: Sequence[str]
    where: Where
    task_queue: str
    port: int
    ui_port: int
    database: Path | None = None
    grace: float = 2.0
    watched: Sequence[Path] = ()


def develop(given: Development) -> int:
    """Serve until Ctrl-C; the exit status.

    Raises AgentError when no agent is named, ServerMissingError, ServerError when a port is taken.
    """
    spec = ",".join(given.agents) or os.environ.get("PERDURE_AGENTS", "")
    if not spec:
        raise AgentError("no agents to serve; name them: perdure dev support:agent")
    check_watching()
    folders = folders_of(spec, given.watched)
    for port, option in ((given.port, "--port"), (given.ui_port, "--ui-port")):
        _check_free(port, option)
    asyncio.run(_develop(given, spec, folders))
    return 0


async def _develop(given: Development, spec: str, folders: list[Path]) -> None:
    screen = err()
    with _stopping() as told:
        async with dev_server(
            database=given.database, port=given.port, ui_port=given.ui_port
        ) as server:
            _greet(screen, server, given, spec)
            serving = asyncio.ensure_future(_serve(screen, server, given, spec, folders))
            await asyncio.wait((serving, told), return_when=asyncio.FIRST_COMPLETED)
            if serving.done():
                serving.result()
            _say(screen, "stopping", "dim")
            serving.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await serving


async def _serve(
    screen: Screen, server: DevServer, given: Development, spec: str, folders: list[Path]
) -> None:
    """Have a worker serve, and another one after each change."""
    teller = _Teller(screen, given)
    async with contextlib.aclosing(changes(folders)) as changed:
        following = asyncio.ensure_future(anext(changed))
        while True:
            async with _worker(server, given, spec) as worker:
                telling = asyncio.ensure_future(teller.tell(worker))
                try:
                    files = await following
                finally:
                    telling.cancel()
                more = ", …" if len(files) > 3 else ""
                _say(screen, f"↻ {one_line(', '.join(files[:3]))}{more} changed", "cyan")
                following = asyncio.ensure_future(anext(changed))


@dataclass(frozen=True, slots=True)
class _Worker:
    process: asyncio.subprocess.Process
    report: asyncio.StreamReader


@contextlib.asynccontextmanager
async def _worker(server: DevServer, given: Development, spec: str) -> AsyncIterator[_Worker]:
    """A worker process, which is ended with the block, after its grace."""
    ours, theirs = os.pipe()
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-P",  # no module beside the agent's takes the place of one of Python's
        "-m",
        "perdure.cli.dev_worker",
        stdin=asyncio.subprocess.PIPE,
        env=_environment(server, given, spec) | {REPORT_VARIABLE: str(theirs)},
        pass_fds=(theirs,),
        start_new_session=True,  # Ctrl-C reaches us, and we end it
    )
    os.close(theirs)
    report = asyncio.StreamReader()
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(report), os.fdopen(ours, "rb", buffering=0)
    )
    try:
        yield _Worker(process, report)
    finally:
        transport.close()
        await _end(process, given.grace + _PATIENCE)


async def _end(process: asyncio.subprocess.Process, patience: float) -> None:
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
    try:
        async with asyncio.timeout(patience):
            await process.wait()
    except TimeoutError:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()


def _environment(server: DevServer, given: Development, spec: str) -> dict[str, str]:
    # What is set for another server (TLS, an API key, a profile) is not for this one.
    own = {name: value for name, value in os.environ.items() if not name.startswith("TEMPORAL_")}
    return own | {
        "TEMPORAL_ADDRESS": server.address,
        "TEMPORAL_NAMESPACE": NAMESPACE,
        "TEMPORAL_CONFIG_FILE": os.devnull,
        "PERDURE_AGENTS": spec,
        STORE_VARIABLE: given.where.store_spec,
        TASK_QUEUE_VARIABLE: given.task_queue,
        TENANT_VARIABLE: given.where.tenant_name,
        "PERDURE_GRACE": f"{given.grace:g}",
    }


# ── what is said ───────────────────────────────────────────────────────────────────────────────


def _greet(screen: Screen, server: DevServer, given: Development, spec: str) -> None:
    rows = [
        ("Temporal", server.address),
        ("UI", server.ui_url),
        ("sessions", given.where.store_spec),
        ("agents", spec),
    ]
    for name, value in rows:
        screen.line(f"{screen.styled(f'{name:<9}', 'dim')} {screen.styled(value, 'bold')}")
    screen.flush()


class _Teller:
    """Says how each worker fares, and once what to type in another terminal."""

    def __init__(self, screen: Screen, given: Development) -> None:
        self._screen = screen
        self._given = given
        self._has_hinted = False

    async def tell(self, worker: _Worker) -> None:
        """Say that the worker serves, or why it cannot; and when it ends by itself."""
        report = json.loads(await worker.report.readline() or "{}")
        if "agents" in report:
            served = ", ".join(map(one_line, report["agents"]))
            _say(self._screen, f"✓ serving {served}", "green")
            self._hint(report["agents"][0])
        for part in report.get("error", "").splitlines():
            self._screen.line(self._screen.styled(f"✗ {part}", "red"))
        status = await worker.process.wait()
        why = "" if "error" in report else f"the worker ended with status {status}; "
        _say(self._screen, f"{why}no worker serves until a source changes", "yellow")

    def _hint(self, agent: str) -> None:
        if self._has_hinted:
            return
        self._has_hinted = True
        command = shlex.join(["perdure", "chat", "demo", "--agent", agent])
        _say(self._screen, "In another terminal, in this folder:", "dim")
        self._screen.line(f"  {' '.join([*_settings(self._given), command])}")
        _say(self._screen, "Ctrl-C ends it; the sessions stay.", "dim")


def _say(screen: Screen, line: str, style: str) -> None:
    screen.line(screen.styled(screen.fit(line), style))
    screen.flush()


def _settings(given: Development) -> Iterator[str]:
    """The variables that another terminal needs, where they are not what it takes anyway."""
    address = f"127.0.0.1:{given.port}"
    needed = {
        "TEMPORAL_ADDRESS": address if given.port != 7233 or _is_set("TEMPORAL_ADDRESS") else "",
        "TEMPORAL_NAMESPACE": NAMESPACE if _is_set("TEMPORAL_NAMESPACE") else "",
        STORE_VARIABLE: given.where.store or "",
        TASK_QUEUE_VARIABLE: "" if given.task_queue == "perdure" else given.task_queue,
        TENANT_VARIABLE: given.where.tenant or "",
    }
    for name, value in needed.items():
        if value and os.environ.get(name) != value:
            yield f"{name}={shlex.quote(value)}"


def _is_set(name: str) -> bool:
    return bool(os.environ.get(name))


# ── around it ──────────────────────────────────────────────────────────────────────────────────


@contextlib.contextmanager
def _stopping() -> Iterator[asyncio.Future[None]]:
    """Done at Ctrl-C or SIGTERM, however often they come."""
    loop = asyncio.get_running_loop()
    told: asyncio.Future[None] = loop.create_future()

    def tell() -> None:
        if not told.done():
            told.set_result(None)

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, tell)
    try:
        yield told
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)


def _check_free(port: int, option: str) -> None:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except (OSError, OverflowError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is no port"
            raise ServerError(
                f"port {port} cannot be had ({reason}); another server may be running there: end "
                f"it, or choose another port with {option}"
            ) from None
