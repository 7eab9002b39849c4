"""Recently used transcripts, kept in memory by workers and clients.

A log is append-only, so a copy that holds a leaf holds the whole path to it: nothing here is ever
stale, and nothing has to be invalidated. A copy that lacks the leaf is brought up to date from the
store.

Where the store loads paths, a session of which nothing is in memory is not loaded whole: a model
is shown what follows the latest compaction, and a client wants the last messages. Such a part says
which of its paths it knows the beginning of; it is never taken for the log.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from functools import partial

from perdure.codec import as_read
from perdure.entries import Entry
from perdure.kept_transcripts import Enough, KeptTranscript
from perdure.stores.contract import Store
from perdure.stores.encrypted import check_readable
from perdure.stores.extensions import path_loader
from perdure.transcript import Transcript
from perdure.views import holds_view

DEFAULT_MAX_BYTES = 256 * 1024 * 1024

FIRST_BLOCK, LARGEST_BLOCK = 100, 20_000
"""Entries of a path that are loaded at first, and at most, when it is not known where to stop."""

_CATCHING_UP = 20
"""The same at first, where what comes before may be here already."""


class Transcripts:
    """Transcripts by session, the least recently used ones dropped above `max_bytes` of log
    lines.
    """

    def __init__(self, store: Store, max_bytes: int = DEFAULT_MAX_BYTES) -> None:
        self._store = store
        self._paths = path_loader(store)
        self._max_bytes = max_bytes
        self._kept: OrderedDict[str, KeptTranscript] = OrderedDict()
        self._sizes: dict[str, int] = {}
        self._size = 0

    async def holding(self, session_id: str, leaf_id: str) -> Transcript:
        """A transcript of the whole session in which the leaf is found, if the store has it."""
        kept = self._kept.get(session_id)
        if kept is None or not kept.is_whole or leaf_id not in kept.transcript:
            return await self.latest(session_id)
        self._kept.move_to_end(session_id)
        return kept.transcript

    async def latest(self, session_id: str) -> Transcript:
        """The transcript as the store has it now."""
        entries = await self._store.load_entries(session_id)
        check_readable(session_id, entries[-1:])
        kept = self._kept.get(session_id)
        known = kept.transcript if kept is not None and kept.is_whole else None
        transcript = _brought_up_to_date(known, entries)
        self._keep(session_id, KeptTranscript(transcript))
        return transcript

    async def path(
        self, session_id: str, leaf_id: str, enough: Enough | None = None
    ) -> list[Entry]:
        """The path to the leaf, or an end of it that is `enough`. Empty when the store has no such
        entry.
        """
        return (await self._up_to(session_id, leaf_id, enough)).path(leaf_id)

    async def for_model(
        self, session_id: str, leaf_id: str, wanted_ids: Iterable[str] = ()
    ) -> Transcript:
        """A transcript that tells the model view at the leaf, and perhaps nothing else.

        `wanted_ids` are the entries that ephemeral messages follow.
        """
        wanted = set(wanted_ids)
        return await self._up_to(session_id, leaf_id, partial(holds_view, wanted_ids=wanted))

    async def last_id(self, session_id: str) -> str:
        """The ID of the entry that was appended last, as the store has it now."""
        kept = self._kept.get(session_id)
        if self._paths is None or (kept is not None and kept.is_whole):
            return (await self.latest(session_id)).leaf_id
        entries = await self._paths.load_path(session_id, limit=1)
        check_readable(session_id, entries)
        return entries[-1].id if entries else ""

    def add(self, session_id: str, entries: Sequence[Entry]) -> None:
        """Take note of entries that the store has just taken, so that it need not be asked.

        What others appended meanwhile is not here then; no path to the new leaf misses it. Where
        the parent of the entries is not known, nothing is noted.
        """
        kept = self._kept.get(session_id)
        if kept is None or not entries or entries[0].parent_id not in kept.transcript:
            return
        # As what is read from a line takes itself apart only when it is used, it is smaller.
        new = [entry for entry in entries if entry.id not in kept.transcript]
        kept.add([as_read(entry) for entry in new])
        self._keep(session_id, kept)

    async def _up_to(self, session_id: str, leaf_id: str, enough: Enough | None) -> Transcript:
        """A transcript in which the path to the leaf is whole, or enough. Of a part nothing but
        that path may be asked.
        """
        part = self._kept.get(session_id) or KeptTranscript()
        if self._paths is None or part.is_whole:
            return await self.holding(session_id, leaf_id)
        block = _CATCHING_UP if len(part.transcript) else FIRST_BLOCK
        while not part.has_path(leaf_id, enough):
            first = part.first_of(leaf_id)
            missing_id = first.parent_id if first is not None else leaf_id
            found = await self._paths.load_path(session_id, missing_id, limit=block)
            check_readable(session_id, found[-1:])
            part = self._kept.get(session_id) or part
            if part.is_whole:  # somebody else wanted all of it
                return await self.holding(session_id, leaf_id)
            if not found and first is None:
                break  # there is no such entry
            part.add(found)
            if len(found) < block and (beginning := found[0] if found else first) is not None:
                part.note_beginning(beginning)
            block = min(block * 8, LARGEST_BLOCK)
        if len(part.transcript):
            self._keep(session_id, part)
        return part.transcript

    def _keep(self, session_id: str, kept: KeptTranscript) -> None:
        size = kept.transcript.size_bytes
        self._kept[session_id] = kept
        self._kept.move_to_end(session_id)
        self._size += size - self._sizes.get(session_id, 0)
        self._sizes[session_id] = size
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
