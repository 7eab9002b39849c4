"""`examples/coder.py`, with the scripted command in place of a real one."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
from pathlib import Path

from tests.cli.test_worker import EXAMPLES, environment
from tests.loops.conftest import CLI, Cli


def converse(folder: Path, cli: Cli, question: str) -> list[str]:
    command = shlex.join([sys.executable, str(CLI), str(cli.folder), "-p"])
    ended = subprocess.run(
        [sys.executable, "coder.py", question],
        cwd=folder,
        env=environment() | {"CODER_COMMAND": command},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.splitlines()


def test_the_example_goes_on_with_its_conversation(tmp_path: Path, cli: Cli) -> None:
    shutil.copy(EXAMPLES / "coder.py", tmp_path)
    assert converse(tmp_path, cli, "use tools") == [
        "assistant: Looking.",
        "  Bash {'command': 'ls'}",
        "  Read {'file_path': '/tmp/picture.png'}",
        "tool_result: a.txt",
        "b.txt",
        "tool_result: a picture",
        "assistant: I was told: use tools",
    ]
    assert converse(tmp_path, cli, "and now?") == ["assistant: I was told: use tools | and now?"]
