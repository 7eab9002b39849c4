"""`perdure demo`."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from pathlib import Path

from perdure.cli.failures import FAILED
from perdure.demo.folder import Folder
from perdure.demo.model_choice import choose_model
from perdure.demo.show import Options, perform


def show_demo(folder: Path, *, model: str | None, keep: bool, as_json: bool) -> int:
    """Give the demo; answer with the exit status: 0 when all that it promises held.

    Raises ModelSpecError or AgentError for a model that cannot be used, and as `perform` does.
    """
    options = Options(
        folder=Folder(folder),
        model=choose_model(model, os.environ),
        keep=keep,
        as_json=as_json,
        command=_command(),
    )
    return 0 if perform(options) else FAILED


def _command() -> str:
    """The command line that starts this demo again, as it can be typed here."""
    program = sys.argv[0]
    if shutil.which("perdure") == program:
        program = "perdure"
    elif os.path.isabs(program):
        program = min(program, os.path.relpath(program), key=len)
    return shlex.join([program, *(given for given in sys.argv[1:] if given != "--keep")])
