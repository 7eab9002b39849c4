"""Whether a worker is alive: it renews a file, and `python -m perdure.liveness` looks at its age.

A worker whose event loop hangs, or that has lost the server for long, does not renew it. For the
health check of a container, which runs beside the worker and shares the variable
PERDURE_ALIVE_FILE.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import time
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from temporalio.client import Client

VARIABLE = "PERDURE_ALIVE_FILE"
"""The environment variable that names the file."""

INTERVAL = 5.0
"""Seconds between two renewals."""

TOO_OLD = 30.0
"""Seconds after which a file that was not renewed tells that the worker is not well."""


def given_alive_file() -> Path | None:
    """The file that PERDURE_ALIVE_FILE names, if any."""
    text = os.environ.get(VARIABLE, "")
    return Path(text) if text else None


@contextlib.asynccontextmanager
async def telling_alive(client: Client, path: Path | None) -> AsyncIterator[None]:
    """Renew the file for the length of the block, as long as the server answers; then remove it.
    Without a file nothing is told.
    """
    if path is None:
        yield
        return
    telling = asyncio.create_task(_tell(client, path))
    try:
        yield
    finally:
        telling.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await telling
        with contextlib.suppress(OSError):
            os.unlink(path)


def is_alive(path: Path, *, within: float = TOO_OLD) -> bool:
    """Whether a worker renewed the file so many seconds ago, or less."""
    try:
        return time.time() - path.stat().st_mtime <= within
    except OSError:
        return False


async def _tell(client: Client, path: Path) -> None:
    while True:
        with contextlib.suppress(Exception):
            await client.service_client.check_health(timeout=timedelta(seconds=INTERVAL))
            _touch(path)
        await asyncio.sleep(INTERVAL)


def _touch(path: Path) -> None:
    path.touch()


def main() -> int:
    """Answer with 0 when the worker that shares this environment is alive, with 1 when not."""
    path = given_alive_file()
    if path is None:
        print(f"perdure: set {VARIABLE} for the worker and for this check", file=sys.stderr)
        return 2
    if is_alive(path):
        return 0
    print(f"perdure: no worker has renewed {path} lately", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
