"""The last step of a process that talked to Temporal."""

from __future__ import annotations

import contextlib
import logging
import os
import sys
from typing import NoReturn

from perdure.telemetry import close_telemetry


def leave(status: int) -> NoReturn:
    """End the process with that status, whatever else is still alive in it.

    The SDK has threads of its own, and one that calls into an interpreter that is being taken down
    aborts it (`PyGILState_Release`, status 134). So the interpreter is not taken down: what was
    written is flushed, and the process ends. Clients, workers and servers are to be closed before.
    """
    close_telemetry()
    logging.shutdown()
    for stream in (sys.stdout, sys.stderr):
        # The reader of a pipe may have left; there is nobody to tell.
        with contextlib.suppress(OSError, ValueError, AttributeError):
            stream.flush()
    os._exit(status)
