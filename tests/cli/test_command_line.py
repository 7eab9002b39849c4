"""The command `perdure`: what it says and returns when it cannot do what was asked."""

from __future__ import annotations

import os
import subprocess
import sysconfig
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import pytest

from perdure.cli.failures import status_of
from perdure.errors import StoreError

PERDURE = Path(sysconfig.get_path("scripts")) / "perdure"

AGENT = """
from perdure import Agent
agent = Agent("quiet", model=None)
broken = 1 / {divisor}
"""


def perdure(
    *arguments: str, cwd: Path, given: str | None = None, **environment: str
) -> tuple[int, str, str]:
    """Exit status, standard output and standard error; `given` comes from a pipe."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("PERDURE_")}
    ended = subprocess.run(
        [PERDURE, *arguments],
        cwd=cwd,
        env=own | environment,
        stdin=subprocess.DEVNULL if given is None else None,
        input=given,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    return ended.returncode, ended.stdout, ended.stderr


def test_version(tmp_path: Path) -> None:
    assert perdure("--version", cwd=tmp_path) == (0, f"perdure {version('perdure')}\n", "")


@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"],
        ["worker", "--help"],
        ["demo", "--help"],
        ["store", "--help"],
        ["store", "copy", "--help"],
        ["store", "migrate", "--help"],
    ],
)
def test_help_is_plain_text_of_eighty_columns(tmp_path: Path, arguments: list[str]) -> None:
    status, said, _ = perdure(*arguments, cwd=tmp_path, COLUMNS="80")
    assert status == 0
    assert "perdure" in said
    assert max(map(len, said.splitlines())) <= 80


@pytest.mark.parametrize("arguments", [["fly"], ["worker", "--speed", "9"], ["--nonsense"]])
def test_a_wrong_command_line_has_status_2_and_no_traceback(
    tmp_path: Path, arguments: list[str]
) -> None:
    status, said, errors = perdure(*arguments, cwd=tmp_path)
    assert (status, said) == (2, "")
    assert "Traceback" not in errors
    assert "Error" in errors


@pytest.mark.parametrize(
    "arguments, environment, expected",
    [
        (["worker"], {}, "perdure: no agents to serve; name them"),
        (["worker", "nowhere:agent"], {}, "perdure: 'nowhere:agent': there is no module nowhere"),
        (["worker"], {"PERDURE_AGENTS": "good:nobody"}, "perdure: 'good:nobody': good has no"),
        (["worker", "bad:agent"], {}, "perdure: 'bad:agent' cannot be imported: ZeroDivision"),
        (["worker", "good:agent", "--store", "shoebox:"], {}, "perdure: 'shoebox' is no kind of"),
        (["worker", "good:agent"], {"PERDURE_STORE": "files:good.py"}, "perdure: "),
        (["worker", "good:agent"], {}, "perdure: no Temporal server answers at 127.0.0.1:1;"),
    ],
)
def test_what_cannot_be_served_is_one_line_on_standard_error(
    tmp_path: Path, arguments: list[str], environment: dict[str, str], expected: str
) -> None:
    (tmp_path / "good.py").write_text(AGENT.format(divisor=1))
    (tmp_path / "bad.py").write_text(AGENT.format(divisor=0))
    status, said, errors = perdure(
        *arguments, cwd=tmp_path, TEMPORAL_ADDRESS="127.0.0.1:1", **environment
    )
    assert (status, said) == (1, "")
    assert errors.startswith(expected)
    assert len(errors.splitlines()) == 1


def fail_as_we_do() -> None:
    raise StoreError("the store\nis full")


def fail_as_nobody_expected() -> None:
    raise KeyError("leaf")


def interrupt() -> None:
    raise KeyboardInterrupt


def test_our_own_errors_are_told_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert status_of(fail_as_we_do) == 1
    assert capsys.readouterr() == ("", "perdure: the store is full\n")


def test_what_nobody_expected_is_told_in_one_line_that_says_what_to_report(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert status_of(fail_as_nobody_expected) == 1
    assert capsys.readouterr().err == (
        "perdure: unexpected KeyError: 'leaf'. This is a mistake in perdure: please report it, "
        "with what PERDURE_DEBUG=1 adds\n"
    )


@pytest.mark.parametrize("command", [fail_as_we_do, fail_as_nobody_expected])
def test_debugging_adds_the_traceback(
    command: Callable[[], None],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PERDURE_DEBUG", "1")
    assert status_of(command) == 1
    assert f", in {command.__name__}\n" in capsys.readouterr().err


def test_ctrl_c_has_status_130_and_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert status_of(interrupt) == 130
    assert capsys.readouterr() == ("", "")
