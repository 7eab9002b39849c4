"""A mutant: a small change to a copy of the source, and whether the tests named for it fail."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent

_LEFT_OUT = shutil.ignore_patterns(".*", "__pycache__", "dist", "node_modules")


@dataclass(frozen=True, slots=True)
class Mutant:
    """One safeguard less: `changes` are texts of a file, each there once, and what takes their
    place. Each of the `noticed_by` has to fail by itself.
    """

    name: str
    file: str
    changes: tuple[tuple[str, str], ...]
    noticed_by: tuple[str, ...]

    def applied(self, text: str) -> str:
        """The file's text with the changes. Raises ValueError when a text is not there once."""
        for old, new in self.changes:
            if text.count(old) != 1:
                raise ValueError(
                    f"{self.file} has {text.count(old)} times what “{self.name}” breaks, not once;"
                    f" say anew what it breaks:\n{old}"
                )
            text = text.replace(old, new)
        return text


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a test noticed, and what pytest said last."""

    test: str
    is_noticed: bool
    said: str


def tried(mutant: Mutant) -> list[Verdict]:
    """Run each test named for the mutant on a copy that has it."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "perdure"
        shutil.copytree(ROOT, copy, symlinks=True, ignore=_LEFT_OUT)
        file = copy / mutant.file
        file.write_text(mutant.applied(file.read_text()))
        return [_verdict(copy, test) for test in mutant.noticed_by]


def _verdict(copy: Path, test: str) -> Verdict:
    # The copy comes before the editable install, and nothing is written where the real tree is.
    environment = os.environ | {"PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"}
    options = ["-n", "0", "-q", "-x", "-p", "no:cacheprovider", "-W", "default"]
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", *options, test],
        cwd=copy,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    lines = ended.stdout.strip().splitlines() or ended.stderr.strip().splitlines() or [""]
    if ended.returncode not in (0, 1):  # nothing was collected, or pytest itself failed
        raise RuntimeError(f"{test} could not be run:\n{ended.stdout}\n{ended.stderr}")
    # An import that fails is an error of the mutant and no discovery; pytest says status 2 then.
    return Verdict(test, ended.returncode == 1, lines[-1])
