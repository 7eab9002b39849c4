"""Forks: a path copied into a session of its own."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from temporalio import activity

from perdure import names
from perdure.activities.failures import as_failure
from perdure.activities.heartbeats import Heart
from perdure.entries import CompactionEntry, Entry
from perdure.errors import PerdureError, SessionExistsError
from perdure.protocol import CopiedPath, CopyPath
from perdure.stores.contract import Store
from perdure.transcript_cache import Transcripts


class ForkActivities:
    """Copies paths. May be repeated after a crash at any point: the copy has the same IDs every
    time.
    """

    def __init__(self, store: Store, transcripts: Transcripts, heart: Heart) -> None:
        self._store = store
        self._transcripts = transcripts
        self._heart = heart

    @activity.defn(name=names.COPY_PATH)
    async def copy_path(self, request: CopyPath) -> CopiedPath:
        """Create the child and give it the path.

        The workflow has made sure, in history, that the child was absent. Whoever creates it in
        between wins over a first attempt; a later attempt finds what an earlier one left, and
        completes it.
        """
        try:
            async with self._heart.beating():
                return await self._copy(request)
        except PerdureError as error:
            raise as_failure(error) from None

    async def _copy(self, request: CopyPath) -> CopiedPath:
        path = await self._transcripts.path(request.session_id, request.leaf_id)
        copies = rechained(path, request.session_id, request.child_id)
        try:
            await self._store.create_session(request.child_id, request.session_id)
        except SessionExistsError:
            if activity.info().attempt == 1 or not await self._is_ours(request.child_id, copies):
                raise
        await self._store.append_entries(request.child_id, copies)
        return CopiedPath(leaf_id=copies[-1].id)

    async def _is_ours(self, child_id: str, copies: Sequence[Entry]) -> bool:
        """Whether the child is what an earlier attempt left: nothing yet, or a beginning of the
        copy.
        """
        found = [entry.id for entry in await self._store.load_entries(child_id)]
        return found == [entry.id for entry in copies[: len(found)]]


def rechained(path: Sequence[Entry], source_id: str, child_id: str) -> list[Entry]:
    """Copies of a path's entries with IDs and parents of their own, all else as it was.

    The first kept entry of a compaction is named by its new ID.
    """
    fresh: dict[str, str] = {}
    copies: list[Entry] = []
    parent_id = ""
    for entry in path:
        fresh[entry.id] = _fresh_id(source_id, child_id, entry.id)
        copy = entry.with_header(id=fresh[entry.id], parent_id=parent_id)
        if isinstance(copy, CompactionEntry):
            copy = copy.with_first_kept(fresh.get(copy.first_kept_id, ""))
        copies.append(copy)
        parent_id = copy.id
    return copies


def _fresh_id(*parts: str) -> str:
    text = "\0".join(parts)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
