"""What a loop of one's own has stored in its run, and how it gets more into the log."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TypeVar

from perdure.activities.appending import entries_after, is_message_after, message_after
from perdure.entries import Entry
from perdure.errors import EntryError, JsonError, LoopError, StoreError
from perdure.messages import Message
from perdure.protocol import RunLoop, Said
from perdure.protocol.said import lightened, remember
from perdure.run_events import EventScript, Story
from perdure.stores.contract import Store
from perdure.transcript import Transcript
from perdure.transcript_cache import Transcripts
from perdure.usage import Usage

logger = logging.getLogger("perdure.activities")

_ATTEMPT = 60.0
_FIRST_PAUSE = 0.05
_LONGEST_PAUSE = 30.0
_Answer = TypeVar("_Answer")


class LoopLog:
    """The end of the log that one run's loop writes, one message after the other.

    An entry's ID is the digest of what makes it what it is, the run among that. So what the
    run's earlier attempts had stored is found by following the log from the run's input, and
    nothing else is taken for it. An attempt that begins again from there (`restarts`) has IDs of
    its own, and what the ones before it had stored stays behind on branches.
    """

    def __init__(
        self, request: RunLoop, store: Store, transcripts: Transcripts, restarts: int
    ) -> None:
        self.leaf_id = request.leaf_id
        self.usage = Usage()
        self.said: list[Said] = []
        self.restarts = restarts
        self._session_id = request.session_id
        self._author = f"{request.run_id}\n{restarts}" if restarts else request.run_id
        self._store = store
        self._transcripts = transcripts
        self._script = EventScript(
            request.run_id, request.start_id, request.input_count, request.next_index
        )
        self._story = Story(self._script)

    @property
    def turns(self) -> int:
        """How many messages of the assistant there are."""
        return self._story.turn

    @property
    def next_index(self) -> int:
        """The number of the run's next event."""
        return self._script.next_index

    async def transcript(self) -> Transcript:
        """The session, up to the leaf at least."""
        return await _patiently(lambda: self._transcripts.holding(self._session_id, self.leaf_id))

    async def follow(self) -> None:
        """Go on after what was stored of the run already."""
        transcript = await _patiently(lambda: self._transcripts.latest(self._session_id))
        for entry in entries_after(transcript.entries, self.leaf_id):
            if is_message_after(
                self.leaf_id, entry, session_id=self._session_id, author=self._author
            ):
                self._advance(entry)

    async def append(self, message: Message) -> None:
        """Store a message after the leaf. Waits for a store that is down.

        Raises LoopError for a message that cannot be stored.
        """
        try:
            entry = message_after(
                self.leaf_id, message.to_wire(), session_id=self._session_id, author=self._author
            )
        except (EntryError, JsonError) as error:
            raise LoopError(f"the loop yielded a message that cannot be stored: {error}") from None
        await _patiently(lambda: self._store.append_entries(self._session_id, [entry]))
        self._transcripts.add(self._session_id, [entry])
        self._advance(entry)

    def _advance(self, entry: Entry) -> None:
        stored = entry.to_wire()
        self._story.of(stored)
        self.said = lightened(remember(self.said, [stored]))
        self.usage = self.usage + Usage.model_validate(stored["message"].get("usage") or {})
        self.leaf_id = entry.id


async def _patiently(ask: Callable[[], Awaitable[_Answer]]) -> _Answer:
    """The store's answer, asked again until it is back."""
    pause = _FIRST_PAUSE
    while True:
        try:
            async with asyncio.timeout(_ATTEMPT):
                return await ask()
        except (StoreError, TimeoutError) as error:
            logger.warning("a loop waits for the store: %s", str(error) or "no answer")
        await asyncio.sleep(pause)
        pause = min(2 * pause, _LONGEST_PAUSE)
