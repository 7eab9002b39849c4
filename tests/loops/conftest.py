"""A command-line agent for the tests of loops, and the workers that run it."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from perdure.loops import CommandLoop
from tests.engine.conftest import serving, store

__all__ = ["serving", "store"]

CLI = Path(__file__).parent / "agent_cli.py"


class Cli:
    """The scripted command, its folder, and what happened there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()

    def loop(self, **options: Any) -> CommandLoop:
        return CommandLoop([sys.executable, CLI, self.folder, "-p"], name="cli", **options)

    @property
    def calls(self) -> list[dict[str, Any]]:
        journal = self.folder / "journal"
        lines = journal.read_text().splitlines() if journal.exists() else []
        return [json.loads(line) for line in lines]

    def resumed(self, call: int) -> str:
        """The session that a call was to resume."""
        flags = self.calls[call]["flags"]
        return next((flag.partition("=")[2] for flag in flags if "--resume" in flag), "")

    def hold(self) -> None:
        (self.folder / "hold").touch()

    def let_go(self) -> None:
        (self.folder / "hold").unlink()

    async def child(self) -> int:
        """The process that the command started."""
        await until((self.folder / "child").exists)
        await until((self.folder / "child").read_text)
        return int((self.folder / "child").read_text())


async def until(is_so: Callable[[], object]) -> None:
    """Wait for a condition that another process brings about."""
    async with asyncio.timeout(30):
        while not is_so():  # noqa: ASYNC110
            await asyncio.sleep(0.02)


def is_alive(pid: int) -> bool:
    """Whether there is such a process; one that waits to be collected is none."""
    try:
        os.kill(pid, 0)
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (ProcessLookupError, FileNotFoundError):
        return False
    return state != "Z"


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    return Cli(tmp_path / "cli")
