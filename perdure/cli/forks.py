"""Which sessions were forked from one, and after which of its entries each goes its own way.

A fork's record names its parent and nothing else. What it copied has IDs of its own, but the
content and the times of the originals, and so tells where it left.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from perdure.cli.stored import list_sessions, record_of
from perdure.entries import Entry
from perdure.errors import PerdureError
from perdure.stores.contract import Store
from perdure.transcript import Transcript
from perdure.tree import TreeNode

MOST_SESSIONS = 2_000
"""Sessions in a store up to which their records are looked through unasked."""

_HEADER = ("id", "parent_id", "first_kept_id")
_AT_ONCE = 64


async def children_of(store: Store, session_id: str, known: Sequence[str]) -> list[str]:
    """Those of the known sessions that were forked from this one."""
    at_once = asyncio.Semaphore(_AT_ONCE)

    async def parent_of(other: str) -> str:
        async with at_once:
            try:
                return (await record_of(store, other)).parent_id
            except PerdureError:
                return ""  # a damaged log is no reason not to show another

    parents = await asyncio.gather(*map(parent_of, known))
    return [other for other, parent in zip(known, parents, strict=True) if parent == session_id]


async def forks_of(
    store: Store, session_id: str, transcript: Transcript, *, anyway: bool = False
) -> dict[str, list[str]] | None:
    """The forks, by the last entry that each shares with the session; the empty ID is for those
    that share none. None when the store holds too many sessions to look at, unless `anyway`.
    """
    try:
        known = await list_sessions(store)
    except PerdureError:
        return {}
    if len(known) > MOST_SESSIONS and not anyway:
        return None
    found: dict[str, list[str]] = {}
    for child in await children_of(store, session_id, known):
        try:
            copied = await store.load_entries(child)
        except PerdureError:
            copied = []
        found.setdefault(last_shared(transcript, copied), []).append(child)
    return found


def last_shared(transcript: Transcript, copied: Sequence[Entry]) -> str:
    """The ID of the entry up to which a fork is a copy of a path; empty if it shares none."""
    shared = ""
    nodes: list[TreeNode] = transcript.tree()
    for entry in copied:
        same = next((node for node in nodes if _is_copy(entry, node.entry)), None)
        if same is None:
            break
        shared, nodes = same.entry.id, same.children
    return shared


def _is_copy(entry: Entry, original: Entry) -> bool:
    return entry.created_at == original.created_at and _content(entry) == _content(original)


def _content(entry: Entry) -> dict[str, Any]:
    return {name: value for name, value in entry.to_wire().items() if name not in _HEADER}
