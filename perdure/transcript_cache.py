"""Recently used transcripts, kept in memory by workers and clients.

A log is append-only, so a copy that holds a leaf holds the whole path to it: nothing here is ever
stale, and nothing has to be invalidated. A copy that lacks the leaf is brought up to date from the
store.
"""

from __future__ import annotations

from collections import OrderedDict

from perdure.entries import Entry
from perdure.stores.contract import Store
from perdure.transcript import Transcript

DEFAULT_MAX_BYTES = 256 * 1024 * 1024


class Transcripts:
    """Transcripts by session, the least recently used ones dropped above `max_bytes` of log
    lines.
    """

    def __init__(self, store: Store, max_bytes: int = DEFAULT_MAX_BYTES) -> None:
        self._store = store
        self._max_bytes = max_bytes
        self._kept: OrderedDict[str, Transcript] = OrderedDict()

    async def holding(self, session_id: str, leaf_id: str) -> Transcript:
        """A transcript of the session in which the leaf is found, if the store has it."""
        kept = self._kept.get(session_id)
        if kept is None or leaf_id not in kept:
            return await self.latest(session_id)
        self._kept.move_to_end(session_id)
        return kept

    async def latest(self, session_id: str) -> Transcript:
        """The transcript as the store has it now."""
        entries = await self._store.load_entries(session_id)
        transcript = _brought_up_to_date(self._kept.get(session_id), entries)
        self._keep(session_id, transcript)
        return transcript

    def _keep(self, session_id: str, transcript: Transcript) -> None:
        self._kept[session_id] = transcript
        self._kept.move_to_end(session_id)
        total = sum(kept.size_bytes for kept in self._kept.values())
        while total > self._max_bytes and len(self._kept) > 1:
            _, dropped = self._kept.popitem(last=False)
            total -= dropped.size_bytes


def _brought_up_to_date(kept: Transcript | None, entries: list[Entry]) -> Transcript:
    """Indexing a long log takes a while; a store that hands out the same entries again saves it."""
    if kept is None or not 0 < len(kept) <= len(entries):
        return Transcript(entries)
    is_prefix = kept.entries[-1] is entries[len(kept) - 1] and kept.entries[0] is entries[0]
    if not is_prefix:
        return Transcript(entries)
    kept.extend(entries[len(kept) :])
    return kept
