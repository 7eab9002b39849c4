"""What only reads a store does not wait for Temporal's client, or for a provider's."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.packaging.source import within

LOADED = """
import json, sys
from perdure.cli.app import app
sys.argv[1:] = {arguments!r}
sys.stdout, real = open("/dev/null", "w"), sys.stdout
try:
    app()
except SystemExit as ending:
    assert not ending.code, ending.code
json.dump(sorted(sys.modules), real)
"""


def loaded(folder: Path, *arguments: str) -> set[str]:
    """The modules that a command loads."""
    ended = subprocess.run(
        [sys.executable, "-c", LOADED.format(arguments=list(arguments))],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    )
    return set(json.loads(ended.stdout))


@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"],
        ["log", "user-42"],
        ["tree", "user-42"],
        ["verify", "--all"],
        ["export", "user-42", "--format", "html"],
        ["ls", "--stored"],
    ],
)
def test_reading_loads_no_client(folder: Path, arguments: list[str]) -> None:
    modules = loaded(folder, *arguments)
    assert within(modules, "temporalio", "pydantic_ai", "httpx", "openai", "anthropic") == []


def test_help_loads_neither_pydantic_nor_rich(folder: Path) -> None:
    assert within(loaded(folder, "--help"), "pydantic", "rich") == []
