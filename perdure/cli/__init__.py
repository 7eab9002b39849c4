"""The command `perdure`: one verb for each thing that a session can do, and processes to run it."""

from __future__ import annotations

from typing import NoReturn

from perdure.cli.failures import status_of
from perdure.process_end import leave

__all__ = ["main"]


def main() -> NoReturn:
    """Run the command line, and end the process with its status."""
    from perdure.cli.app import app

    leave(status_of(app))
