"""Removes large payloads that no history needs any more.

A workflow refers to payloads that were stored since its run began, or just before, when it was
started. So of each workflow's payloads those are garbage that are older than the oldest of its runs
that the server still knows; of a workflow that it does not know any more, all.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from urllib.parse import unquote

from temporalio.client import Client
from temporalio.service import RPCError

from perdure.errors import ServerError, StoreError
from perdure.payload_files import PayloadFiles, encoded
from perdure.payload_rows import PayloadRows

MARGIN = timedelta(days=1)
"""How much older than a workflow's oldest run a payload is at least that is removed: for what was
stored before the run was listed, and for clocks that differ."""

_LONG_AGO = datetime(1970, 2, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Cleaning:
    """What was removed, and how many payloads of the namespace stay."""

    removed: int = 0
    bytes: int = 0
    kept: int = 0


async def clean_payloads(
    client: Client,
    place: PayloadFiles | PayloadRows,
    *,
    margin: timedelta = MARGIN,
    only_look: bool = False,
) -> Cleaning:
    """Remove what the namespace of the client does not need of the payloads in that place; with
    `only_look` say what would be removed.

    Raises StoreError when there is no such folder, or the database has no such table or cannot be
    reached, ServerError when the server does not answer: then nothing that it would have told of
    is removed.
    """
    kept = _Rows(place) if isinstance(place, PayloadRows) else _Files(place.root)
    namespace = encoded(client.namespace)
    removed, freed, stay = 0, 0, 0
    for workflow in await kept.workflows(namespace):
        payloads = await kept.payloads(namespace, workflow)
        if not payloads:
            continue
        limit = await _needed_since(client, workflow) - margin
        for payload in payloads:
            if payload.stored_at >= limit:
                stay += 1
                continue
            if not only_look:
                await payload.remove()
            removed, freed = removed + 1, freed + payload.size
    return Cleaning(removed=removed, bytes=freed, kept=stay)


@dataclass(frozen=True, slots=True)
class _Kept:
    """A payload; `remove` leaves it when it was stored again, for then it is needed again."""

    stored_at: datetime
    size: int
    remove: Callable[[], Awaitable[None]]


class _Rows:
    def __init__(self, rows: PayloadRows) -> None:
        self._rows = rows

    async def workflows(self, namespace: str) -> list[str]:
        return await self._rows.workflows(namespace)

    async def payloads(self, namespace: str, workflow: str) -> list[_Kept]:
        return [
            _Kept(
                stored_at,
                size,
                partial(self._rows.remove, namespace, workflow, digest, stored_at),
            )
            for digest, stored_at, size in await self._rows.listed(namespace, workflow)
        ]


class _Files:
    def __init__(self, root: Path) -> None:
        if not root.is_dir():
            raise StoreError(f"there is no folder {root}")
        self._root = root

    async def workflows(self, namespace: str) -> list[str]:
        return await asyncio.to_thread(_folders, self._root / namespace)

    async def payloads(self, namespace: str, workflow: str) -> list[_Kept]:
        return await asyncio.to_thread(_files, self._root / namespace / workflow)


def _folders(namespace: Path) -> list[str]:
    return sorted(path.name for path in namespace.glob("*") if path.is_dir())


def _files(folder: Path) -> list[_Kept]:
    found = []
    for entry in os.scandir(folder):
        if entry.is_file(follow_symlinks=False):
            told = entry.stat(follow_symlinks=False)
            stored_at = datetime.fromtimestamp(told.st_mtime, UTC)
            remove = partial(asyncio.to_thread, _unlink, entry.path, told.st_mtime)
            found.append(_Kept(stored_at, told.st_size, remove))
    return found


def _unlink(path: str, changed: float) -> None:
    if os.stat(path).st_mtime == changed:
        os.unlink(path)


async def _needed_since(client: Client, workflow: str) -> datetime:
    """When the oldest run of the workflow of that encoded name began that the server knows; now,
    if it knows none.
    """
    name = unquote(workflow)
    if encoded(name) != workflow:
        return _LONG_AGO  # its name was too long to be kept: it stays
    oldest = datetime.now(UTC)
    query = "WorkflowId = '{}'".format(name.replace("\\", "\\\\").replace("'", "\\'"))
    try:
        async for execution in client.list_workflows(query):
            oldest = min(oldest, execution.start_time)
    except RPCError as error:
        raise ServerError(f"the Temporal server refused: {error.message}") from None
    return oldest
