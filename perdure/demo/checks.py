"""What must be true at the end. Pure: the log, the journal and the mailbox go in, a verdict comes
out.
"""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from perdure.codec import decode_entry
from perdure.demo.journal import Event, Note
from perdure.demo.tools import COUNT_LINES, SEND_REPORT
from perdure.entries import Entry, MessageEntry
from perdure.messages import Message, Role, ToolCallBlock
from perdure.repair import INTERRUPTED
from perdure.transcript import Transcript

_ASKS: Final = (Event.MODEL_ASKED, Event.MODEL_FAILED, Event.MODEL_ANSWERED)


@dataclass(frozen=True, slots=True)
class Check:
    """A claim, whether it holds (None: this demo had no occasion to show it), and what shows it."""

    name: str
    claim: str
    passed: bool | None
    detail: str


@dataclass(frozen=True, slots=True)
class Evidence:
    """All that a demo leaves behind: the other program's log, the log as it is now, the journal,
    and how many reports went out. `questions` are those that were asked. What a script had to do,
    a real model may have left out (`is_scripted`).
    """

    given: bytes
    log: bytes
    notes: Sequence[Note]
    mailed: int
    questions: Sequence[str]
    is_scripted: bool

    @property
    def entries(self) -> list[Entry]:
        """Everything in the log, in append order."""
        return [decode_entry(line) for line in self.log.splitlines()[1:]]

    @property
    def added(self) -> list[Entry]:
        """What came after the other program's lines."""
        return self.entries[len(self.given.splitlines()) - 1 :]


def verdict(evidence: Evidence) -> list[Check]:
    """All checks, in the order in which they are told."""
    return [
        _nothing_rewritten(evidence),
        _nothing_lost(evidence),
        _nothing_twice(evidence),
        _calls_answered(evidence),
        _model_asked_once(evidence),
        _ran_again(evidence),
        _ran_once(evidence),
    ]


def _nothing_rewritten(evidence: Evidence) -> Check:
    lines = len(evidence.given.splitlines())
    return Check(
        "nothing_rewritten",
        "Nothing was rewritten",
        evidence.log.startswith(evidence.given),
        f"the other program's {lines} lines are in the log byte for byte, "
        "its unanswered call among them",
    )


def _nothing_lost(evidence: Evidence) -> Check:
    stored = [entry.id for entry in evidence.added]
    receipts = list(dict.fromkeys(note.entry for note in evidence.notes if note.entry))
    return Check(
        "nothing_lost",
        "Nothing was lost",
        stored == receipts,
        f"{len(stored)} entries were added, {len(receipts)} receipts were seen: "
        + ("the same IDs, in the same order" if stored == receipts else "not the same"),
    )


def _nothing_twice(evidence: Evidence) -> Check:
    ids = [entry.id for entry in evidence.entries]
    asked = Counter(
        message.text for message in _messages(evidence.added) if message.role == Role.USER.value
    )
    leaves = len(Transcript(evidence.entries).leaves())
    repeated = [entry_id for entry_id, count in Counter(ids).items() if count > 1]
    questions_once = all(asked[question] == 1 for question in evidence.questions)
    return Check(
        "nothing_twice",
        "Nothing was stored twice",
        not repeated and questions_once and leaves == 1,
        f"{len(ids)} entries with {len(set(ids))} IDs, {_times(sum(asked.values()), 'question')} "
        f"asked, {_times(leaves, 'branch', 'branches')}",
    )


def _calls_answered(evidence: Evidence) -> Check:
    calls = [block.id for block in _calls(evidence.added)]
    results = [
        message for message in _messages(evidence.added) if message.role == Role.TOOL_RESULT.value
    ]
    cut_off = sum(message.text == INTERRUPTED for message in results)
    return Check(
        "calls_answered",
        "Every tool call has one result",
        sorted(calls) == sorted(message.tool_call_id for message in results),
        f"{_times(len(calls), 'call')}, {_times(len(results), 'result')}, "
        f"{cut_off} of them: {INTERRUPTED}",
    )


def _model_asked_once(evidence: Evidence) -> Check:
    """A call may be made again only when the worker that made it died, or the model failed."""
    asks: dict[str, list[Note]] = defaultdict(list)
    for note in evidence.notes:
        if note.event in _ASKS:
            asks[note.call].append(note)
    asked = sum(note.event is Event.MODEL_ASKED for note in evidence.notes)
    answered = sum(
        any(note.event is Event.MODEL_ANSWERED for note in notes) for notes in asks.values()
    )
    failed = sum(note.event is Event.MODEL_FAILED for note in evidence.notes)
    again = asked - answered - failed
    return Check(
        "model_asked_once",
        "The model was asked nothing twice, but what died with its worker",
        all(map(_is_justified, asks.values())) and answered == len(asks),
        f"{_times(answered, 'answer')} for {_times(asked, 'call')}: {again} of them died with "
        "its worker" + (f", {failed} failed" if failed else ""),
    )


def _is_justified(notes: Sequence[Note]) -> bool:
    asked = [note for note in notes if note.event is Event.MODEL_ASKED]
    failed = {(note.worker, note.attempt) for note in notes if note.event is Event.MODEL_FAILED}
    return all(
        earlier.worker < later.worker or (earlier.worker, earlier.attempt) in failed
        for earlier, later in itertools.pairwise(asked)
    )


def _ran_again(evidence: Evidence) -> Check:
    attempts = max(_starts(evidence, COUNT_LINES), default=0)
    return Check(
        "ran_again",
        f"{COUNT_LINES}, which is idempotent, ran again",
        _shown(attempts > 1, evidence),
        f"one call, {_times(attempts, 'attempt')}, one result",
    )


def _ran_once(evidence: Evidence) -> Check:
    starts = _starts(evidence, SEND_REPORT)
    held = max(starts, default=0) <= 1 and evidence.mailed <= len(starts)
    return Check(
        "ran_once",
        f"{SEND_REPORT}, which is not, ran once",
        held and _shown(evidence.mailed > 0, evidence),
        f"{_times(len(starts), 'call')}, {_times(evidence.mailed, 'report')} in the mailbox",
    )


def _shown(held: bool, evidence: Evidence) -> bool | None:
    return held or (False if evidence.is_scripted else None)


def _starts(evidence: Evidence, tool: str) -> list[int]:
    """How often each call of a tool was started."""
    started = Counter(note.call for note in evidence.notes if note.event is Event.TOOL_STARTED)
    return [started[block.id] for block in _calls(evidence.added) if block.name == tool]


def _messages(entries: Iterable[Entry]) -> list[Message]:
    return [entry.message for entry in entries if isinstance(entry, MessageEntry)]


def _calls(entries: Iterable[Entry]) -> list[ToolCallBlock]:
    return [block for message in _messages(entries) for block in message.tool_calls]


def _times(count: int, noun: str, plural: str = "") -> str:
    return f"{count} {noun if count == 1 else plural or noun + 's'}"
