"""Removes payload files that no history needs any more.

A workflow refers to payloads that were stored since its run began, or just before, when it was
started. So of each workflow's files those are garbage that are older than the oldest of its runs
that the server still knows; of a workflow that it does not know any more, all.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import unquote

from temporalio.client import Client
from temporalio.service import RPCError

from perdure.errors import ServerError, StoreError
from perdure.payload_files import encoded

MARGIN = timedelta(days=1)
"""How much older than a workflow's oldest run a file is at least that is removed: for what was
stored before the run was listed, and for clocks that differ."""

_LONG_AGO = datetime(1970, 2, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Cleaning:
    """What was removed, and how many files of the namespace stay."""

    files: int = 0
    bytes: int = 0
    kept: int = 0


async def clean_payloads(
    client: Client, root: Path, *, margin: timedelta = MARGIN, only_look: bool = False
) -> Cleaning:
    """Remove what the namespace of the client does not need of the payloads in that folder; with
    `only_look` say what would be removed.

    Raises StoreError when there is no such folder, ServerError when the server does not answer:
    then nothing that it would have told of is removed.
    """
    if not root.is_dir():  # noqa: ASYNC240 - a look, in a command of its own
        raise StoreError(f"there is no folder {root}")
    removed, freed, kept = 0, 0, 0
    for folder in await asyncio.to_thread(_folders, root / encoded(client.namespace)):
        files = await asyncio.to_thread(_files, folder)
        if not files:
            continue
        limit = (await _needed_since(client, folder) - margin).timestamp()
        for file in files:
            if file.changed >= limit:
                kept += 1
                continue
            if not only_look:
                await asyncio.to_thread(file.remove)
            removed, freed = removed + 1, freed + file.size
    return Cleaning(files=removed, bytes=freed, kept=kept)


@dataclass(frozen=True, slots=True)
class _File:
    path: str
    changed: float
    size: int

    def remove(self) -> None:
        # Stored again a moment ago, it is needed again.
        if os.stat(self.path).st_mtime == self.changed:
            os.unlink(self.path)


def _folders(namespace: Path) -> list[Path]:
    return sorted(path for path in namespace.glob("*") if path.is_dir())


def _files(folder: Path) -> list[_File]:
    return list(_found(folder))


def _found(folder: Path) -> Iterator[_File]:
    for entry in os.scandir(folder):
        if entry.is_file(follow_symlinks=False):
            told = entry.stat(follow_symlinks=False)
            yield _File(entry.path, told.st_mtime, told.st_size)


async def _needed_since(client: Client, folder: Path) -> datetime:
    """When the oldest run of the folder's workflow began that the server knows; now, if it knows
    none.
    """
    name = unquote(folder.name)
    if encoded(name) != folder.name:
        return _LONG_AGO  # its name was too long to be kept: it stays
    oldest = datetime.now(UTC)
    query = "WorkflowId = '{}'".format(name.replace("\\", "\\\\").replace("'", "\\'"))
    try:
        async for execution in client.list_workflows(query):
            oldest = min(oldest, execution.start_time)
    except RPCError as error:
        raise ServerError(f"the Temporal server refused: {error.message}") from None
    return oldest
