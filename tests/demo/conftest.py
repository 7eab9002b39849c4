"""The demo as its user runs it: a process, in a folder."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sysconfig
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from perdure.demo.folder import Folder
from perdure.demo.journal import Journal, Note
from perdure.demo.model_choice import DEFAULTS

PERDURE = Path(sysconfig.get_path("scripts")) / "perdure"


@dataclass(frozen=True, slots=True)
class Demo:
    """A demo's folder, and the means to run one there."""

    folder: Folder

    def start(self, *options: str, **environment: str) -> subprocess.Popen[str]:
        """A demo that runs. Keys of whoever runs the tests are not for it."""
        own = {name: value for name, value in os.environ.items() if name not in DEFAULTS}
        return subprocess.Popen(
            [PERDURE, "demo", "--dir", self.folder.root, *options],
            env=own | environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *options: str, **environment: str) -> dict[str, Any]:
        """The outcome of a demo that ends by itself, with status 0."""
        process = self.start("--json", *options, **environment)
        outcome, story = process.communicate(timeout=100)
        assert process.returncode == 0, story
        found: dict[str, Any] = json.loads(outcome)
        return found

    def wait_for(self, *wanted: Callable[[Note], bool]) -> None:
        """Wait until the journal has a note of each kind."""

        def all_there(notes: list[Note]) -> bool | None:
            return all(any(map(is_wanted, notes)) for is_wanted in wanted) or None

        journal = Journal(self.folder.journal)
        assert asyncio.run(journal.wait(all_there, timeout=60))

    def is_left_alone(self) -> bool:
        """Whether no demo, server or worker of this folder lives any more; waits for that."""
        with self.folder.taken():
            return True


@pytest.fixture
def demo(tmp_path: Path) -> Iterator[Demo]:
    demo = Demo(Folder(tmp_path / "demo"))
    yield demo
    assert demo.is_left_alone()
