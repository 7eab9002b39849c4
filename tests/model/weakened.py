"""perdure with one safeguard taken out: the explorer has to find what that costs.

Each is a context manager that changes the real code while it lasts.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any
from unittest.mock import patch

from temporalio import workflow

from perdure import Entry, names, stamps
from perdure.activities import forks
from perdure.codec import encode_entry
from perdure.protocol import AppendEntries, EntryJson, SessionState
from perdure.stamps import Stamped
from perdure.workflows import log, tool_calls
from perdure.workflows.inbox import Inbox
from perdure.workflows.session import SessionWorkflow
from perdure.workflows.timing import STORING, tool_timing
from tests.model.processes import MortalStore

Weakened = Callable[[], AbstractContextManager[object]]


def without_dedupe() -> AbstractContextManager[object]:
    """A command that comes again is done again."""
    return patch.object(Inbox, "_digest_of", lambda self, command_id: None)


@contextmanager
def forwarding_before_the_append() -> Iterator[None]:
    """The leaf moves and events go out while the store is still at it."""
    under_way: list[Any] = []

    async def append_all(
        self: log.SessionLog, command_id: str, entries: Sequence[EntryJson]
    ) -> Stamped:
        stamped = self.stamp(command_id, entries)
        request = AppendEntries(session_id=self._state.session_id, entries=stamped.stored)
        appending = workflow.start_local_activity(names.APPEND_ENTRIES, request, **STORING)
        under_way.append(appending)
        self.advance(stamped)
        await asyncio.sleep(0)
        return stamped

    with patch.object(log.SessionLog, "append_all", append_all):
        yield


def forgetting(field: str) -> Weakened:
    """A field of the state is not carried over a continue-as-new."""

    def weaken() -> AbstractContextManager[object]:
        carry = SessionWorkflow._continue_as_new

        async def forget(self: SessionWorkflow) -> None:
            default = SessionState.model_fields[field].get_default(call_default_factory=True)
            setattr(self._state, field, default)
            await carry(self)

        return patch.object(SessionWorkflow, "_continue_as_new", forget)

    return weaken


def with_ids_of_the_moment() -> AbstractContextManager[object]:
    """An entry's ID tells when it was stamped."""
    digest = stamps._digest
    return patch.object(stamps, "_digest", lambda *parts: digest(*parts, log.wire_time()))


def with_a_store_that_repeats() -> AbstractContextManager[object]:
    """The store adds what it has already."""

    async def append(self: MortalStore, session_id: str, entries: Sequence[Entry]) -> None:
        lines = self._log(session_id)
        for entry in entries:
            lines[f"{entry.id}/{len(lines)}"] = encode_entry(entry)
        self._wrote()

    return patch.object(MortalStore, "append_entries", append)


def with_tools_that_are_retried() -> AbstractContextManager[object]:
    """A tool whose worker died runs again, whatever it says of itself."""
    return patch.object(tool_calls, "tool_timing", lambda timeout, _: tool_timing(timeout, True))


def with_new_ids_in_each_copy() -> AbstractContextManager[object]:
    """A fork does not know its own copy."""
    return patch.object(forks, "_fresh_id", lambda *parts: secrets.token_hex(8))
