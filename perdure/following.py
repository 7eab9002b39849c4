"""Where an instance's leaf is by now, as far as the log tells."""

from __future__ import annotations

from collections.abc import Iterable

from perdure.entries import Entry
from perdure.transcript import Transcript


def followed(transcript: Transcript, leaf_id: str, seen_id: str, *, may_have_branched: bool) -> str:
    """The leaf of an instance that was at `leaf_id` when `seen_id` was the last entry it knew of.

    What was appended since and goes on from that leaf is its own. Where nothing does, it may have
    branched, and then goes on from somewhere on its path; what goes on from elsewhere is the work
    of another instance.
    """
    entries = transcript.entries
    start = len(entries)
    while start and entries[start - 1].id != seen_id:
        start -= 1
    since = entries[start:]
    found = _end_of_chain(since, {leaf_id})
    if found is None and may_have_branched:
        found = _end_of_chain(since, {"", *(entry.id for entry in transcript.path(leaf_id))})
    return leaf_id if found is None else found


def _end_of_chain(entries: Iterable[Entry], start_ids: set[str]) -> str | None:
    chain, end = set(start_ids), None
    for entry in entries:
        if entry.parent_id in chain:
            chain.add(entry.id)
            end = entry.id
    return end
