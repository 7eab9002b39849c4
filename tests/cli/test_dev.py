"""`perdure dev`: one command with a server, its UI, and a worker that begins anew."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cli.terminal import Terminal, plain, terminal
from tests.cli.test_command_line import PERDURE, perdure
from tests.loops.conftest import is_alive

SHOP = """
from perdure import Agent
from perdure.testing import ScriptedModel

support = Agent("support", model=ScriptedModel(lambda messages: "{answer}", delay={delay}))
"""
CTRL_C, CTRL_D = b"\x03", b"\x04"


class Dev:
    """`perdure dev` in a terminal, and its folder."""

    def __init__(self, window: Terminal, folder: Path, port: int, ui_port: int) -> None:
        self.window = window
        self.folder = folder
        self.ui = f"http://127.0.0.1:{ui_port}"
        self.address = f"127.0.0.1:{port}"

    def write(self, answer: str, delay: float = 0) -> None:
        write(self.folder, answer, delay)

    def say(self, text: str) -> str:
        status, said, errors = perdure(
            "run", "demo", text, "--agent", "support", cwd=self.folder,
            TEMPORAL_ADDRESS=self.address,
        )  # fmt: skip
        assert status == 0, errors
        return said

    def processes(self) -> dict[int, str]:
        """What it has started, and what that has: their IDs and command lines."""
        listed = subprocess.run(
            ["ps", "-A", "-o", "pid=,ppid=,args="], capture_output=True, text=True, check=True
        )
        rows = [line.split(None, 2) for line in listed.stdout.splitlines()]
        found = {self.window.process.pid: "perdure dev"}
        for pid, parent, *command in rows:  # parents come first, mostly: they are older
            if int(parent) in found:
                found[int(pid)] = " ".join(command)
        del found[self.window.process.pid]
        return found


def write(folder: Path, answer: str, delay: float = 0) -> None:
    (folder / "shop.py").write_text(SHOP.format(answer=answer, delay=delay))


@contextmanager
def developing(folder: Path, *options: str) -> Iterator[Dev]:
    port, ui_port = free_port(), free_port()
    with terminal(
        "dev", "shop:support", "--port", str(port), "--ui-port", str(ui_port), *options,
        cwd=folder, columns=120, PYTHONDONTWRITEBYTECODE="1",
    ) as window:  # fmt: skip
        yield Dev(window, folder, port, ui_port)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port: int = probe.getsockname()[1]
        return port


def wait_for_the_end_of(processes: Iterable[int]) -> None:
    deadline = time.monotonic() + 60
    while alive := [process for process in processes if is_alive(process)]:
        assert time.monotonic() < deadline, alive


def test_a_change_is_served_and_ctrl_c_leaves_nothing_behind(tmp_path: Path) -> None:
    write(tmp_path, "one")
    with developing(tmp_path) as dev:
        told = plain(dev.window.wait_for_more("Ctrl-C ends it"))
        assert f"Temporal  {dev.address}\nUI        {dev.ui}\nsessions  files:./sessions\n" in told
        assert "✓ serving support\n" in told
        hint = next(line for line in told.splitlines() if "perdure chat" in line)
        assert hint == f"  TEMPORAL_ADDRESS={dev.address} perdure chat demo --agent support"
        with urllib.request.urlopen(dev.ui) as page:
            assert page.status == 200
        assert dev.say("Hello.") == "one\n"

        dev.write("two")
        dev.window.wait_for_more(r"shop\.py changed.*✓ serving support")
        assert dev.say("And now?") == "two\n"

        processes = dev.processes()
        assert any("dev_worker" in command for command in processes.values())
        assert any("start-dev" in command for command in processes.values())
        dev.window.press(CTRL_C)
        status, printed = dev.window.end()
        assert (status, "Traceback" in printed) == (0, False)
        wait_for_the_end_of(processes)
    assert (tmp_path / "sessions/demo.jsonl").exists()


def test_a_source_that_is_broken_is_shown_and_served_when_it_is_mended(tmp_path: Path) -> None:
    write(tmp_path, "one")
    with developing(tmp_path) as dev:
        dev.window.wait_for_more("Ctrl-C ends it")
        for source, told in (
            ("def f(:\n", r'✗   File ".*shop.py", line 1.*✗ SyntaxError'),
            ("def f():\n    return 1 / 0\nf()\n", r'✗   File ".*shop.py", line 2, in f.*✗ ZeroDiv'),
        ):
            (tmp_path / "shop.py").write_text(source)
            said = plain(dev.window.wait_for_more(f"{told}.*until a source changes"))
            assert "Traceback" not in said
            assert "importlib" not in said
            assert not any("dev_worker" in command for command in dev.processes().values())
        dev.write("mended")
        dev.window.wait_for_more("✓ serving support")
        assert dev.say("Hello.") == "mended\n"
        dev.window.press(CTRL_C)
        assert dev.window.end()[0] == 0


def test_a_run_outlives_a_reload(tmp_path: Path) -> None:
    write(tmp_path, "too late", delay=600)
    with developing(tmp_path, "--grace", "0") as dev:
        dev.window.wait_for_more("Ctrl-C ends it")
        with subprocess.Popen(
            [PERDURE, "run", "demo", "Hello.", "--agent", "support"],
            cwd=tmp_path,
            env=os.environ | {"TEMPORAL_ADDRESS": dev.address},
            stdout=subprocess.PIPE,
            text=True,
        ) as run:
            log = tmp_path / "sessions/demo.jsonl"
            while not (log.exists() and "Hello." in log.read_text()):
                pass
            dev.write("in time")
            assert run.communicate(timeout=60)[0] == "in time\n"
        dev.window.press(CTRL_C)
        assert dev.window.end()[0] == 0


def test_the_server_remembers_in_a_file_and_nothing_outlives_a_kill(tmp_path: Path) -> None:
    write(tmp_path, "one")
    with developing(tmp_path, "--db", "temporal.db") as dev:
        dev.window.wait_for_more("Ctrl-C ends it")
        assert dev.say("Hello.") == "one\n"
        processes = dev.processes()
        dev.window.process.send_signal(signal.SIGKILL)
        dev.window.process.wait()
        wait_for_the_end_of(processes)
    with developing(tmp_path, "--db", "temporal.db") as dev:
        dev.window.wait_for_more("Ctrl-C ends it")
        status, said, _ = perdure(
            "ls", "--live", "--json", cwd=tmp_path, TEMPORAL_ADDRESS=dev.address
        )
        assert (status, '"demo"' in said) == (0, True)
        dev.window.press(CTRL_C)
        assert dev.window.end()[0] == 0


@pytest.mark.parametrize(
    "arguments, expected",
    [
        ([], "perdure: no agents to serve; name them: perdure dev support:agent"),
        (["shop:support", "--watch", "nowhere"], "perdure: 'nowhere' cannot be watched: it is no"),
        (["shop:support", "--port", "{taken}"], "perdure: port {taken} cannot be had (Address "),
        (["shop:support", "--port", "{free}", "--ui-port", "{taken}"], "perdure: port {taken} can"),
    ],
)
def test_what_cannot_be_developed_is_one_line(
    tmp_path: Path, arguments: list[str], expected: str
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        ports = {"taken": taken.getsockname()[1], "free": free_port()}
        status, said, errors = perdure(
            "dev", *(argument.format(**ports) for argument in arguments), cwd=tmp_path
        )
    assert (status, said) == (1, "")
    assert errors.startswith(expected.format(**ports))
    assert len(errors.splitlines()) == 1
