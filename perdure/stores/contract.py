"""What a store is: three operations, and the promises that a session is built on.

`perdure.testing.check_store` runs these promises against any store.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from perdure.entries import Entry


@runtime_checkable
class Store(Protocol):
    """Where sessions are kept.

    There is nothing to inherit; schema, encoding and database are the store's own. It keeps two
    things of a session: its record, written once, and its entries, to which it only ever adds. All
    operations may be called at the same time, from many tasks and processes.
    """

    async def create_session(self, session_id: str, parent_id: str = "") -> None:
        """Register a session without entries; `parent_id` names the session it was forked from.

        Of many callers that create one ID at the same time exactly one succeeds.

        Raises:
            SessionExistsError: the ID is taken. Nothing changed.
            InvalidSessionIdError: the ID cannot name a session in this store.
        """
        ...

    async def load_entries(self, session_id: str) -> list[Entry]:
        """Return every entry in the order in which it was appended.

        The list belongs to the caller. What is in it are values, equal to what was appended: later
        changes to the objects that were given do not reach them. Entries and content of kinds that
        this program does not know come back as they were.

        Raises:
            SessionNotFoundError: nobody created the session.
        """
        ...

    async def append_entries(self, session_id: str, entries: Sequence[Entry]) -> None:
        """Add all of the entries, in order and with nothing between them, or none.

        When this returns they are durable. An entry whose ID the log already holds is skipped,
        so that repeating a call after an unknown outcome adds nothing and completes what is
        missing. Of two entries with one ID in a call the first stands.

        Raises:
            SessionNotFoundError: nobody created the session.
            EntryEncodeError: one of them cannot be stored; nothing was written.
        """
        ...
