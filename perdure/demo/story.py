"""The story: an unfinished conversation goes on, works, and survives two kills.

Every run has an ID of its own. A demo that was interrupted sends all of them again when it goes on:
the session does each once, and answers the second time with what it did the first time.
"""

from __future__ import annotations

import asyncio
import hashlib
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from perdure.client import Sessions
from perdure.demo.crew import Crew
from perdure.demo.folder import Folder
from perdure.demo.journal import Event, Journal, Note
from perdure.demo.lines import call_text
from perdure.demo.questions import AGENT, CRASHES, REPORT, SESSION_ID, SUMMARY
from perdure.demo.telling import Telling
from perdure.demo.tools import SLOW_TOOLS
from perdure.entries import MessageEntry
from perdure.repair import INTERRUPTED
from perdure.run import Run
from perdure.session import Session
from perdure.transcript import Transcript

QUESTIONS: Final = (CRASHES, REPORT, SUMMARY)

_A_MOMENT = 3.0
"""Seconds that a strike waits at most, once there is something to strike."""

_FOR_EVER = 3600.0

_ENDINGS: Final = (Event.TOOL_ENDED, Event.MODEL_ANSWERED, Event.MODEL_FAILED)


@dataclass(frozen=True, slots=True)
class Strike:
    """When to kill a worker: in the middle of the first of something, of which there are `most`.

    `begun` names the notes of the journal with which these begin.
    """

    begun: Callable[[Sequence[Note]], list[Note]]
    most: int

    def going_on(self, notes: Sequence[Note], worker: int) -> list[Note]:
        """What this worker has begun and not ended."""
        return [note for note in self._unfinished(notes) if note.worker == worker]

    def died_in(self, notes: Sequence[Note], worker: int) -> list[Note]:
        """What workers before this one had begun and did not live to end."""
        return [note for note in self._unfinished(notes) if note.worker < worker]

    def _unfinished(self, notes: Sequence[Note]) -> list[Note]:
        ended = {(note.call, note.worker) for note in notes if note.event in _ENDINGS}
        return [note for note in self.begun(notes) if (note.call, note.worker) not in ended]


class Story:
    """Tells the session's part of the demo, from its log to its last answer."""

    def __init__(
        self,
        sessions: Sessions,
        folder: Folder,
        crew: Crew,
        journal: Journal,
        telling: Telling,
        given: bytes,
    ) -> None:
        """Tell it over these; `given` is the other program's log."""
        self._sessions = sessions
        self._given = given
        self._folder = folder
        self._crew = crew
        self._journal = journal
        self._telling = telling

    async def tell(self) -> Session:
        """All of it. Answers with the session, whose last run has ended."""
        session = await self._open()
        self._telling.step("It goes on: a run without new input")
        await self._follow(await session.run(run_id="continue"))
        self._telling.step("A turn with real tools on real files")
        await self._follow(await session.run(CRASHES, run_id="crashes"))
        self._telling.step("The worker is killed in the middle of two tools")
        await self._survive(await session.run(REPORT, run_id="report"), IN_TOOLS)
        self._telling.step("The worker is killed in the middle of a model call")
        await self._survive(await session.run(SUMMARY, run_id="summary"), IN_A_MODEL_CALL)
        return session

    async def _open(self) -> Session:
        self._telling.step("A log that another program left behind")
        before = self._folder.log.read_bytes()
        session = await self._sessions.open(SESSION_ID, agent=AGENT)
        lines = len(self._given.splitlines())
        entries = (await session.entries())[: lines - 1]
        self._telling.fact("log", f"{self._folder.log}, {lines} lines of another program")
        for entry in entries:
            self._telling.entry(entry)
        self._telling.remark(_what_is_missing(Transcript(entries)))
        if before == self._given:
            after = self._folder.log.read_bytes()
            self._telling.remark(
                f"It is open now, and the file is as it was: sha256 {_digest(before)} before, "
                f"{_digest(after)} after."
            )
        return session

    async def _follow(self, run: Run) -> None:
        """Tell a run's receipts as they come; of one that had ended before, only that it had."""
        had_ended = any(
            note.event is Event.RUN_ENDED and note.subject == run.id
            for note in self._journal.notes()
        )
        receipts = 0
        async for event in run:
            for entry in event.entries:
                receipts += 1
                self._journal.add(Note(Event.RECEIPT, subject=run.id, entry=entry.id))
            if not had_ended:
                self._telling.event(event, attempts=self._attempts())
        if had_ended:
            self._telling.remark(f"run {run.id} had ended, with {receipts} receipts")
        else:
            self._journal.add(Note(Event.RUN_ENDED, subject=run.id))

    async def _survive(self, run: Run, strike: Strike) -> None:
        """Follow a run, and kill its worker where `strike` says; start another."""
        died = strike.died_in(self._journal.notes(), self._crew.current)
        if died:
            self._telling.remark(
                f"Worker {died[0].worker} died here before the interruption, "
                f"in the middle of {_named(died)}."
            )
        following = asyncio.create_task(self._follow(run))
        try:
            while not following.done():
                if await self._has_begun(strike, over=following.done):
                    await self._is_complete(strike)
                    await self._replace_worker(strike)
            await following
        finally:
            following.cancel()

    async def _has_begun(self, strike: Strike, *, over: Callable[[], bool]) -> bool:
        def begun(notes: Sequence[Note]) -> bool | None:
            return bool(strike.going_on(notes, self._crew.current)) or None

        return bool(await self._journal.wait(begun, timeout=_FOR_EVER, over=over))

    async def _is_complete(self, strike: Strike) -> None:
        """Wait for a moment, until everything is going on that shall be interrupted, and everything
        that is stored was told.
        """

        def complete(notes: Sequence[Note]) -> bool | None:
            stored = self._folder.log.read_bytes().count(b"\n") - self._given.count(b"\n")
            told = {note.entry for note in notes if note.event is Event.RECEIPT}
            doing = strike.going_on(notes, self._crew.current)
            return (len(doing) >= strike.most and len(told) >= stored) or None

        await self._journal.wait(complete, timeout=_A_MOMENT)

    async def _replace_worker(self, strike: Strike) -> None:
        doing = strike.going_on(self._journal.notes(), self._crew.current)
        if not doing:
            return
        worker, pid = self._crew.current, self._crew.pid
        await self._crew.kill()
        self._telling.killed(worker, pid, f"in the middle of {_named(doing)}")
        await self._crew.start()
        self._telling.started(self._crew.current, self._crew.pid)
        self._telling.remark(
            "After 4 seconds without a heartbeat Temporal takes the old one for dead."
        )

    def _attempts(self) -> dict[str, int]:
        """The latest attempt at each tool call."""
        return {
            note.call: note.attempt
            for note in self._journal.notes()
            if note.event is Event.TOOL_STARTED
        }


def _first_slow_tools(notes: Sequence[Note]) -> list[Note]:
    first: dict[str, Note] = {}
    for note in notes:
        if note.event is Event.TOOL_STARTED and note.subject in SLOW_TOOLS:
            first.setdefault(note.subject, note)
    return list(first.values())


def _first_summary(notes: Sequence[Note]) -> list[Note]:
    asked = (note for note in notes if note.event is Event.MODEL_ASKED and note.subject == SUMMARY)
    return list(itertools.islice(asked, 1))


IN_TOOLS: Final = Strike(_first_slow_tools, most=len(SLOW_TOOLS))
IN_A_MODEL_CALL: Final = Strike(_first_summary, most=1)


def _named(doing: Sequence[Note]) -> str:
    if doing[0].event is Event.MODEL_ASKED:
        return f"a model call ({doing[0].messages} messages were sent)"
    return " and ".join(note.subject for note in doing)


def _what_is_missing(transcript: Transcript) -> str:
    """The calls that have no result in the log, and what is done about them."""
    stored = {
        entry.message.tool_call_id for entry in transcript.path() if isinstance(entry, MessageEntry)
    }
    mended = [
        message
        for message in transcript.model_view()
        if message.text == INTERRUPTED and message.tool_call_id not in stored
    ]
    missing = {message.tool_call_id for message in mended}
    calls = [
        call_text(block.name, block.arguments)
        for message in transcript.model_view()
        for block in message.tool_calls
        if block.id in missing
    ]
    return (
        f"{', '.join(calls)} has no result: that program died while it ran. "
        f"The model is sent one in its place, {INTERRUPTED!r}; the file is not mended."
    )


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:12]
