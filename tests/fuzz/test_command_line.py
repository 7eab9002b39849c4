"""Any arguments for any command: a documented exit status, and never a traceback."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st

from perdure.cli.app import app
from perdure.cli.failures import status_of
from tests.cli.sessions import conversation, fork_of_conversation, write
from tests.cli.test_command_line import perdure
from tests.fuzz.effort import effort

LASTING = {"--follow", "--watch", "--keep", "--without-token"}
"""Options of commands that go on until they are told to stop."""


COMMAND = typer.main.get_command(app)


def _options() -> dict[tuple[str, ...], list[str]]:
    """Each command by its words, with its options."""
    found: dict[tuple[str, ...], list[str]] = {}
    waiting: list[tuple[tuple[str, ...], Any]] = [((), COMMAND)]
    while waiting:
        words, command = waiting.pop()
        below = getattr(command, "commands", {})
        waiting += [((*words, name), inner) for name, inner in below.items()]
        if not below:
            names = [name for parameter in command.params for name in parameter.opts]
            found[words] = [n for n in names if n.startswith("-") and n not in LASTING]
    return found


OPTIONS = _options()
STARTING = [("demo",), ("dev",), ("worker",), ("codec-server",)]
"""Commands that start something; they are given what they refuse."""

odd_texts = st.text(
    st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=8
) | st.sampled_from(
    [
        "user-42",
        "what-if",
        "",
        "-",
        "--",
        "--json",
        "-1",
        "0",
        "9" * 30,
        "1e999",
        "nan",
        "/",
        "../x",
        "/dev/null",
        "sessions",
        "sessions/user-42.jsonl",
        "files:sessions",
        "files:",
        "memory:",
        "postgresql://u:p@h:99999/x",
        "shoebox:",
        "html",
        "jsonl",
        "é\u2028%s{}",
        "{",
        '{"type":"message"}',
        "a:b:c",
    ]
)


@st.composite
def command_lines(draw: st.DrawFn) -> list[str]:
    words = draw(st.sampled_from(sorted(set(OPTIONS) - set(STARTING))))
    arguments = draw(st.lists(odd_texts, max_size=3))
    for option in draw(st.lists(st.sampled_from([*OPTIONS[words], "--help"]), max_size=3)):
        place = draw(st.integers(0, len(arguments)))
        arguments[place:place] = [option, *draw(st.lists(odd_texts, max_size=1))]
    return [*words, *arguments]


@pytest.fixture(scope="module")
def nobody_listens(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with sessions, and no server: nobody listens at the first port."""
    folder = tmp_path_factory.mktemp("fuzzed")
    write(folder / "sessions", "user-42", conversation())
    write(folder / "sessions", "what-if", fork_of_conversation(), "user-42")
    own = {name: value for name, value in os.environ.items() if not name.startswith("PERDURE_")}
    before, place = dict(os.environ), Path.cwd()
    os.environ.clear()
    os.environ.update(own | {"TEMPORAL_ADDRESS": "127.0.0.1:1", "COLUMNS": "80"})
    os.chdir(folder)
    yield folder
    os.chdir(place)
    os.environ.clear()
    os.environ.update(before)


def _run(arguments: list[str]) -> tuple[int, str]:
    """Exit status, and standard error, of a command in this process."""
    said, errors, asked = io.StringIO(), io.StringIO(), sys.stdin
    sys.stdin = io.StringIO("")
    try:
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(errors):
            status = status_of(lambda: COMMAND(args=arguments, prog_name="perdure"))
    finally:
        sys.stdin = asked
    return status, errors.getvalue()


@pytest.mark.usefixtures("nobody_listens")
@effort(150)
@given(arguments=command_lines())
def test_any_arguments_end_with_a_documented_status(arguments: list[str]) -> None:
    """0, 1 with a line of perdure's own, or 2."""
    status, errors = _run(arguments)
    assert status in (0, 1, 2)
    assert "Traceback" not in errors
    assert "mistake in perdure" not in errors
    if status == 1 and arguments[0] not in ("verify", "store"):  # their findings are on stdout
        assert errors.startswith("perdure: ")
    if status == 2:
        assert "Error" in errors or "Usage" in errors


@pytest.mark.parametrize(
    "arguments",
    [
        ["log", "user-42", "--last", "9" * 30],
        ["tree", "", "--leaf", "é\u2028%s{}"],
        ["import", "/dev/null"],
        ["export", "user-42", "--format", "nonsense"],
        ["fork", "user-42", "../x"],
        *([*words, "--nonsense"] for words in STARTING),
        ["worker", "a:b:c"],
        ["codec-server"],
    ],
)
def test_nor_does_a_real_process_end_otherwise(tmp_path: Path, arguments: list[str]) -> None:
    status, _, errors = perdure(*arguments, cwd=tmp_path, TEMPORAL_ADDRESS="127.0.0.1:1")
    assert status in (1, 2)
    assert "Traceback" not in errors
    assert "mistake in perdure" not in errors
