"""How activities add to logs: which ends of logs this worker put there itself, and the entries of
messages that can be told from what is stored.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from perdure.activities.recent_leaves import RecentLeaves
from perdure.codec import as_read, dumps_json, entry_from_json, loads_json
from perdure.entries import Entry
from perdure.following import place_after
from perdure.protocol import EntryJson, MessageJson
from perdure.stamps import Stamped, stamp
from perdure.stores.contract import Store
from perdure.stores.extensions import loads_what_is_new
from perdure.timestamps import Timestamp
from perdure.transcript_cache import Transcripts


class Appends:
    """Adds entries to logs, and knows which ends of logs are this worker's own work."""

    def __init__(self, store: Store, transcripts: Transcripts) -> None:
        self._store = store
        self._transcripts = transcripts
        self._own_leaves = RecentLeaves()
        self._may_ask = loads_what_is_new(store)

    def saw_end(self, session_id: str, leaf_id: str) -> None:
        """The store was just seen to have nothing after this leaf."""
        self._own_leaves.add(session_id, leaf_id)

    async def add(self, session_id: str, entries: Sequence[Entry]) -> dict[str, str]:
        """Store entries, a chain. Answers with the times, by ID, of those that the store has had
        with another time.
        """
        if not entries:
            return {}
        # What was read from a line is written and kept as that line, and not made anew for each.
        entries = [as_read(entry) for entry in entries]
        # To ask costs little where the store loads what is new, and the whole log elsewhere.
        is_ours = not self._may_ask and self._own_leaves.has(session_id, entries[0].parent_id)
        # Until the store has answered it may have taken them, or not.
        self._own_leaves.forget(session_id, entries[0].parent_id)
        await self._store.append_entries(session_id, entries)
        earlier = [] if is_ours else await self._stored_earlier(session_id, entries)
        if not earlier:
            self._transcripts.add(session_id, entries)
            self._own_leaves.add(session_id, entries[-1].id)
        return {entry.id: str(entry.created_at) for entry in earlier}

    async def _stored_earlier(self, session_id: str, entries: Sequence[Entry]) -> list[Entry]:
        """Those of the entries that another worker had stored, with the time that it had, and
        perhaps more after them: it may have got further than Temporal heard.

        To be asked when they are stored: until then the other one may still be at it.
        """
        earlier: list[Entry] = []
        for entry in entries:
            path = await self._transcripts.path(session_id, entry.id, bool)
            if path and path[-1].created_at != entry.created_at:
                earlier.append(path[-1])
        return earlier


def message_after(
    leaf_id: str, message: MessageJson, *, session_id: str, author: str, created_at: str = ""
) -> Entry:
    """The entry that keeps a message after a leaf; without a time, it came to be now.

    Its ID is a digest of all that makes it what it is: its author, a run, too. Raises EntryError
    or JsonError for a message that cannot be stored.
    """
    # As it is read again, so that its ID can be told from what is stored.
    body = {"type": "message", "message": loads_json(dumps_json(message))}
    created_at = created_at or str(Timestamp.of(datetime.now(UTC)))
    stamped = _stamp(leaf_id, body, session_id, author, created_at)
    return as_read(entry_from_json(stamped.stored[0]))


def is_message_after(leaf_id: str, entry: Entry, *, session_id: str, author: str) -> bool:
    """Whether an entry of the log is one that its author has stored after this leaf."""
    if entry.parent_id != leaf_id:
        return False
    again = _stamp(leaf_id, entry.to_wire(), session_id, author, str(entry.created_at))
    return again.leaf_id == entry.id


def entries_after(entries: Sequence[Entry], entry_id: str) -> Sequence[Entry]:
    """What was appended after an entry; everything, where it is not in the log."""
    return entries[place_after(entries, entry_id) :]


def _stamp(leaf_id: str, body: EntryJson, session_id: str, author: str, created_at: str) -> Stamped:
    return stamp(
        [body],
        session_id=session_id,
        command_id=author,
        parent_id=leaf_id,
        created_at=created_at,
    )
