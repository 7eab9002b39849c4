"""Sessions from one store to another: again and again if need be, and checked at the end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from perdure.codec import encode_entry
from perdure.entries import Entry, SessionRecord
from perdure.errors import PerdureError, SessionExistsError, SessionNotFoundError, StoreError
from perdure.stores.contract import Store

AT_ONCE = 8
"""Sessions that are copied at the same time."""

_BATCH_ENTRIES = 500
_BATCH_BYTES = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Copied:
    """What became of one session."""

    session_id: str
    entries: int = 0
    """Entries in the source."""
    added: int = 0
    """Those that the target did not have."""
    extra: int = 0
    """Entries that only the target has: the session went on there."""
    problem: str = ""
    """Why it was skipped, or does not hold what the source holds; empty when all is well."""
    is_missing: bool = False
    """Whether the source has no such session."""


async def copy_sessions(
    source: Store,
    target: Store,
    witness: Store,
    session_ids: Iterable[str],
    on_done: Callable[[Copied], None],
) -> None:
    """Copy sessions, and tell of each when it is done.

    Afterwards each is loaded from `witness`, the target's place opened another time, which has
    nothing in memory: every entry of the source has to be there, line for line and in order. A
    session that cannot be copied, such as a damaged log, is told of, and the others go on.

    Raises:
        StoreError: a store cannot be reached. What was copied stays, and need not be copied again.
    """
    waiting = iter(session_ids)

    async def copy_some() -> None:
        for session_id in waiting:
            on_done(await _told(source, target, witness, session_id))

    tasks = [asyncio.create_task(copy_some()) for _ in range(AT_ONCE)]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _told(source: Store, target: Store, witness: Store, session_id: str) -> Copied:
    try:
        return await _copied(source, target, witness, session_id)
    except StoreError:
        raise
    except SessionNotFoundError as error:
        return Copied(session_id, problem=str(error), is_missing=True)
    except PerdureError as error:
        return Copied(session_id, problem=str(error))


async def _copied(source: Store, target: Store, witness: Store, session_id: str) -> Copied:
    entries = await source.load_entries(session_id)
    record = await _record(source, session_id)
    known: dict[str, bytes] = {}
    if not await _create(target, record):
        if not await _is_same(target, record):
            return Copied(session_id, len(entries), problem="the target has another of this ID")
        known = {entry.id: encode_entry(entry) for entry in await target.load_entries(session_id)}
    missing = [entry for entry in entries if entry.id not in known]
    others = sum(known.get(entry.id, line) != line for entry, line in _lines(entries))
    if others:
        reason = f"entries that the target has with other content: {others}"
        return Copied(session_id, len(entries), problem=reason)
    for batch in _batches(missing):
        await target.append_entries(session_id, batch)
    found = await witness.load_entries(session_id)
    wanted = len(entries)
    if (held := _held_in_order(entries, found)) < wanted:
        reason = f"the target holds {held} of {wanted} entries in the order of the source"
        return Copied(session_id, wanted, len(missing), problem=reason)
    return Copied(session_id, wanted, len(missing), extra=len(found) - wanted)


async def _record(source: Store, session_id: str) -> SessionRecord:
    load_session: Any = getattr(source, "load_session", None)
    if load_session is None:
        return SessionRecord(id=session_id)
    record: SessionRecord = await load_session(session_id)
    return record


async def _create(target: Store, record: SessionRecord) -> bool:
    """Whether the session was not there; its record is kept where the store can do that."""
    restore_session: Any = getattr(target, "restore_session", None)
    try:
        if restore_session is None:
            await target.create_session(record.id, record.parent_id)
        else:
            await restore_session(record)
    except SessionExistsError:
        return False
    return True


async def _is_same(target: Store, record: SessionRecord) -> bool:
    there = await _record(target, record.id)
    if hasattr(target, "restore_session"):
        return (there.parent_id, there.created_at) == (record.parent_id, record.created_at)
    return not hasattr(target, "load_session") or there.parent_id == record.parent_id


def _batches(entries: Sequence[Entry]) -> Iterator[list[Entry]]:
    batch: list[Entry] = []
    size = 0
    for entry, line in _lines(entries):
        if batch and (len(batch) >= _BATCH_ENTRIES or size + len(line) > _BATCH_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(entry)
        size += len(line)
    if batch:
        yield batch


def _held_in_order(entries: Sequence[Entry], found: Sequence[Entry]) -> int:
    """How many of the entries are there, from the first on, with the same lines."""
    lines = (encode_entry(entry) for entry in found)
    held = 0
    for _, wanted in _lines(entries):
        if wanted not in lines:  # goes on from the last one that was found
            break
        held += 1
    return held


def _lines(entries: Iterable[Entry]) -> Iterator[tuple[Entry, bytes]]:
    return ((entry, encode_entry(entry)) for entry in entries)
