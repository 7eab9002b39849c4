"""`--help` teaches, and a shell completes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from perdure.cli.app import app
from tests.cli.test_command_line import perdure

NOT_ABOUT_SESSIONS = {"clean-payloads", "codec-server", "demo", "dev", "setup", "store", "worker"}
GROUP: Any = get_command(app)
VERBS = sorted(set(GROUP.commands) - NOT_ABOUT_SESSIONS)
"""Commands that are about sessions."""


def help_of(name: str) -> str:
    command = GROUP.commands[name]
    context = command.make_context(name, [], resilient_parsing=True, max_content_width=80)
    return str(command.get_help(context))


def test_all_verbs_are_there() -> None:
    assert {
        "append", "approve", "branch", "cancel", "chat", "close", "compact", "export", "fork",
        "import", "log", "ls", "run", "status", "tree", "verify",
    } <= set(VERBS)  # fmt: skip


@pytest.mark.parametrize("name", VERBS)
def test_the_help_of_a_command_has_an_example_of_it(name: str) -> None:
    told = help_of(name)
    assert f"\n  perdure {name} " in told or f"\n  perdure {name}\n" in told
    assert max(map(len, told.splitlines())) <= 80


@pytest.mark.parametrize("name", VERBS)
def test_every_command_has_json_and_says_which_store(name: str) -> None:
    told = help_of(name)
    assert "--json" in told
    assert "--store" in told
    assert "--tenant" in told


def test_a_shell_completes_the_ids_of_sessions(folder: Path) -> None:
    status, said, _ = perdure(
        cwd=folder,
        _PERDURE_COMPLETE="complete_bash",
        COMP_WORDS="perdure log us",
        COMP_CWORD="2",
    )
    assert (status, said.split()) == (0, ["user-42"])


def test_a_shell_completes_the_ids_of_entries(folder: Path) -> None:
    for words in ("perdure branch user-42 aaaaaa1", "perdure log user-42 --leaf aaaaaa1"):
        status, said, _ = perdure(
            cwd=folder,
            _PERDURE_COMPLETE="complete_bash",
            COMP_WORDS=words,
            COMP_CWORD=str(len(words.split()) - 1),
        )
        assert (status, said.split()) == (0, ["aaaaaa11", "aaaaaa10"])


def test_a_shell_completes_commands(folder: Path) -> None:
    status, said, _ = perdure(
        cwd=folder, _PERDURE_COMPLETE="complete_bash", COMP_WORDS="perdure ver", COMP_CWORD="1"
    )
    assert (status, said.split()) == (0, ["verify"])
