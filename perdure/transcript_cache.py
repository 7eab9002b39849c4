"""Recently used transcripts, kept in memory by workers and clients.

A log is append-only, so a copy that holds a leaf holds the whole path to it: nothing here is ever
stale, and nothing has to be invalidated. A copy that lacks the leaf is brought up to date from the
store.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

from perdure.codec import as_read
from perdure.entries import Entry
from perdure.stores.contract import Store
from perdure.stores.encrypted import check_readable
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
        self._sizes: dict[str, int] = {}
        self._size = 0

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
        check_readable(session_id, entries[-1:])
        transcript = _brought_up_to_date(self._kept.get(session_id), entries)
        self._keep(session_id, transcript)
        return transcript

    def add(self, session_id: str, entries: Sequence[Entry]) -> None:
        """Take note of entries that the store has just taken, so that it need not be asked.

        What others appended meanwhile is not here then; no path to the new leaf misses it. Where
        the parent of the entries is not known, nothing is noted.
        """
        kept = self._kept.get(session_id)
        if kept is None or not entries or entries[0].parent_id not in kept:
            return
        # As what is read from a line takes itself apart only when it is used, it is smaller.
        kept.extend([as_read(new) for new in entries if new.id not in kept])
        self._keep(session_id, kept)

    def _keep(self, session_id: str, transcript: Transcript) -> None:
        self._kept[session_id] = transcript
        self._kept.move_to_end(session_id)
        self._size += transcript.size_bytes - self._sizes.get(session_id, 0)
        self._sizes[session_id] = transcript.size_bytes
        while self._size > self._max_bytes and len(self._kept) > 1:
            dropped, _ = self._kept.popitem(last=False)
            self._size -= self._sizes.pop(dropped)


def _brought_up_to_date(kept: Transcript | None, entries: list[Entry]) -> Transcript:
    """The transcript of a whole log. One that was kept goes on where it is the log's beginning:
    indexing a long log takes a while.
    """
    if kept is None or not 0 < len(kept) <= len(entries):
        return Transcript(entries)
    # Both have their entries in the order of the log. So when the last one of those that are kept
    # has as many before it in the log, they are the same ones.
    last, in_log = kept.entries[-1], entries[len(kept) - 1]
    if last is not in_log and (not last.id or last.id != in_log.id):
        return Transcript(entries)
    kept.extend(entries[len(kept) :])
    return kept
