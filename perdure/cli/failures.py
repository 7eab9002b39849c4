"""What a command that fails says and returns: one line on standard error, never a bare traceback.

0: done. 1: a failure, in one line. 2: a command line that is wrong. 130: Ctrl-C. 143: told to stop.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable
from typing import Any

from perdure.errors import PerdureError

FAILED = 1
INTERRUPTED = 130
TERMINATED = 143

DEBUG_VARIABLE = "PERDURE_DEBUG"
"""Set to anything but 0, it adds the traceback to whatever failed."""


def status_of(command: Callable[[], Any]) -> int:
    """Run a command; answer with its exit status, after saying what went wrong."""
    try:
        command()
    except SystemExit as ending:
        return _status(ending)
    except KeyboardInterrupt:
        return INTERRUPTED
    except PerdureError as error:
        return _failed(error, _one_line(error))
    except Exception as error:  # noqa: BLE001 - whatever it is, its user sees one line
        return _failed(
            error,
            f"unexpected {type(error).__name__}: {_one_line(error) or 'no message'}. This is a "
            f"mistake in perdure: please report it, with what {DEBUG_VARIABLE}=1 adds",
        )
    return 0


def _failed(error: Exception, reason: str) -> int:
    _say(f"perdure: {reason}")
    if is_debugging():
        _say("".join(traceback.format_exception(error)).rstrip())
    return FAILED


def is_debugging() -> bool:
    """Whether tracebacks are wanted."""
    return os.environ.get(DEBUG_VARIABLE, "0") not in ("", "0")


def _status(ending: SystemExit) -> int:
    if ending.code is None or isinstance(ending.code, int):
        return ending.code or 0
    _say(str(ending.code))
    return FAILED


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())


def _say(line: str) -> None:
    try:
        print(line, file=sys.stderr, flush=True)
    except (OSError, ValueError):  # nobody reads standard error any more
        return
