"""Where an instance's leaf is by now, as far as the log tells."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from perdure.entries import Entry
from perdure.transcript import Transcript


def followed(transcript: Transcript, leaf_id: str, seen_id: str, *, may_have_branched: bool) -> str:
    """The leaf of an instance that was at `leaf_id` when `seen_id` was the last entry it knew of.

    What was appended since and goes on from that leaf is its own. Where nothing does, it may have
    branched, and then goes on from somewhere on its path; what goes on from elsewhere is the work
    of another instance.
    """
    entries = transcript.entries
    since = entries[place_after(entries, seen_id) :]
    found = _end_of_chain(since, {leaf_id})
    if found is None and may_have_branched:
        found = _end_of_chain(since, {"", *(entry.id for entry in transcript.path(leaf_id))})
    return leaf_id if found is None else found


def place_after(entries: Sequence[Entry], entry_id: str) -> int:
    """The place after an entry; 0 where it is not among them."""
    after = len(entries)  # from the end, so that a long conversation is not walked through
    while after and entries[after - 1].id != entry_id:
        after -= 1
    return after


def _end_of_chain(entries: Iterable[Entry], start_ids: set[str]) -> str | None:
    chain, end = set(start_ids), None
    for entry in entries:
        if entry.parent_id in chain:
            chain.add(entry.id)
            end = entry.id
    return end
