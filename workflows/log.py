"""The session's place in its log: the leaf, and the one way to move it forward."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence

from temporalio import workflow

from perdure import names
from perdure.protocol import Appended, AppendEntries, EntryJson, MessageJson, SessionState, StoredAs
from perdure.protocol.said import remember
from perdure.stamps import Stamped, stamp
from perdure.workflows.summaries import append_summary
from perdure.workflows.timing import STORING


class SessionLog:
    """Appends after the leaf, one call after the other. The leaf moves only when the store has
    the entries.
    """

    def __init__(self, state: SessionState) -> None:
        self._state = state
        self._turn = asyncio.Lock()

    async def append(self, command_id: str, entries: Sequence[EntryJson]) -> list[EntryJson]:
        """Store entries after the leaf and answer with them as they were stored."""
        return (await self.append_all(command_id, entries)).stored

    async def append_all(self, command_id: str, entries: Sequence[EntryJson]) -> Stamped:
        """The same, and with the ephemeral ones among them, which are not stored."""
        async with self._turn:
            stamped = self.stamp(command_id, entries)
            if stamped.stored:
                appended: Appended = await workflow.execute_local_activity(
                    names.APPEND_ENTRIES,
                    AppendEntries(
                        session_id=self._state.session_id,
                        entries=stamped.stored,
                        run_id=command_id,
                    ),
                    result_type=Appended,
                    summary=append_summary(len(stamped.stored)),
                    **STORING,
                )
                stamped.date(appended)
            self.advance(stamped)
            return stamped

    def found(self, entry: EntryJson, stored: StoredAs) -> EntryJson:
        """An activity has stored this entry after the leaf; answers with it as it was stored."""
        header: EntryJson = {"type": entry["type"], "id": stored.id}
        if self._state.leaf_id:
            header["parent_id"] = self._state.leaf_id
        header["created_at"] = stored.created_at
        self._state.leaf_id = self._state.tip_id = stored.id
        self._note_said([entry])
        return header | entry

    @contextlib.asynccontextmanager
    async def between_appends(self) -> AsyncIterator[None]:
        """No append is under way in this block.

        What starts an activity because a message came does it here. A replay may see a message and
        the result of an append in the other order, but what they lead to is then in one order.
        """
        async with self._turn:
            yield

    def stamp(self, command_id: str, entries: Sequence[EntryJson]) -> Stamped:
        """Give entries the headers that they have if they are stored next."""
        return stamp(
            entries,
            session_id=self._state.session_id,
            command_id=command_id,
            parent_id=self._state.leaf_id,
            created_at=wire_time(),
        )

    def advance(self, stamped: Stamped) -> None:
        """The store has these entries: they are the new end of the path."""
        if stamped.stored:
            self._state.leaf_id = self._state.tip_id = stamped.leaf_id
        self._note_said(stamped.stored)

    def _note_said(self, entries: Sequence[EntryJson]) -> None:
        if not self._state.hides_text:
            self._state.said = remember(self._state.said, entries)


def message_entry(message: MessageJson) -> EntryJson:
    """The entry that keeps a message, before it has a header."""
    return {"type": "message", "message": message}


def wire_time() -> str:
    """The time now, as entries have it (UTC)."""
    text = workflow.now().replace(tzinfo=None).isoformat()
    return f"{text.rstrip('0') if '.' in text else text}Z"
