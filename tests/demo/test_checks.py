"""The verdict: it holds for a log that kept its promises, and names the promise that was broken."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from perdure.codec import encode_entry
from perdure.demo.checks import Evidence, verdict
from perdure.demo.journal import Event, Note
from perdure.entries import MessageEntry
from perdure.messages import ContentBlock, Message, TextBlock, ToolCallBlock

GIVEN = b'{"type":"session_init","id":"s","created_at":"2026-01-01T00:00:00Z"}\n'


def said(entry_id: str, parent_id: str, role: str, text: str, *calls: ContentBlock) -> MessageEntry:
    message = Message(role=role, content=(TextBlock(text=text), *calls))
    return MessageEntry(message=message).with_header(id=entry_id, parent_id=parent_id)


def result(entry_id: str, parent_id: str, call_id: str, text: str) -> MessageEntry:
    message = Message(role="tool_result", content=text, tool_call_id=call_id)
    return MessageEntry(message=message).with_header(id=entry_id, parent_id=parent_id)


ENTRIES = [
    said("e1", "", "user", "Count, and report."),
    said(
        *("e2", "e1", "assistant", "Both."),
        ToolCallBlock(id="c1", name="count_lines"),
        ToolCallBlock(id="c2", name="send_report"),
    ),
    result("e3", "e2", "c2", "tool execution interrupted"),
    result("e4", "e3", "c1", "5 lines in 1 files"),
    said("e5", "e4", "assistant", "Done."),
]

NOTES = [
    Note(Event.MODEL_ASKED, worker=1, attempt=1, call="first"),
    Note(Event.MODEL_ANSWERED, worker=1, attempt=1, call="first"),
    Note(Event.TOOL_STARTED, worker=1, subject="count_lines", call="c1", attempt=1),
    Note(Event.TOOL_STARTED, worker=1, subject="send_report", call="c2", attempt=1),
    Note(Event.WORKER_KILLED, worker=1),
    Note(Event.TOOL_STARTED, worker=2, subject="count_lines", call="c1", attempt=2),
    Note(Event.MODEL_ASKED, worker=2, attempt=1, call="second"),
    Note(Event.WORKER_KILLED, worker=2),
    Note(Event.MODEL_ASKED, worker=3, attempt=2, call="second"),
    Note(Event.MODEL_ANSWERED, worker=3, attempt=2, call="second"),
    *(Note(Event.RECEIPT, entry=entry.id) for entry in ENTRIES),
]


def log_of(*entries: MessageEntry) -> bytes:
    return GIVEN + b"".join(encode_entry(entry) + b"\n" for entry in entries)


KEPT = Evidence(
    given=GIVEN,
    log=log_of(*ENTRIES),
    notes=NOTES,
    mailed=1,
    questions=["Count, and report."],
    is_scripted=True,
)


def broken(evidence: Evidence) -> list[str]:
    return [check.name for check in verdict(evidence) if check.passed is False]


def test_a_log_that_kept_its_promises_passes() -> None:
    assert [(check.name, check.passed) for check in verdict(KEPT)] == [
        ("nothing_rewritten", True),
        ("nothing_lost", True),
        ("nothing_twice", True),
        ("calls_answered", True),
        ("model_asked_once", True),
        ("ran_again", True),
        ("ran_once", True),
    ]


def without(event: Event, call: str) -> list[Note]:
    return [note for note in NOTES if (note.event, note.call) != (event, call)]


ASKED_AGAIN = Note(Event.MODEL_ASKED, worker=1, attempt=2, call="first")
FAILED = Note(Event.MODEL_FAILED, worker=1, attempt=1, call="first")


@pytest.mark.parametrize(
    "harm, expected",
    [
        (lambda: replace(KEPT, given=GIVEN.replace(b"2026", b"2025")), ["nothing_rewritten"]),
        (lambda: replace(KEPT, log=log_of(*ENTRIES[:-1])), ["nothing_lost"]),
        (
            lambda: replace(KEPT, log=log_of(*ENTRIES, ENTRIES[-1])),
            ["nothing_lost", "nothing_twice"],
        ),
        (lambda: replace(KEPT, questions=["Another one."]), ["nothing_twice"]),
        (
            lambda: replace(KEPT, log=log_of(*ENTRIES[:3], ENTRIES[4])),
            ["nothing_lost", "nothing_twice", "calls_answered"],
        ),
        (lambda: replace(KEPT, notes=[*NOTES, ASKED_AGAIN]), ["model_asked_once"]),
        (
            lambda: replace(KEPT, notes=without(Event.MODEL_ANSWERED, "second")),
            ["model_asked_once"],
        ),
        (lambda: replace(KEPT, notes=without(Event.TOOL_STARTED, "c1")), ["ran_again"]),
        (lambda: replace(KEPT, mailed=2), ["ran_once"]),
    ],
    ids=[
        "a given line was changed",
        "a receipt without its entry",
        "an entry stored twice",
        "a question that is not there",
        "a call without a result",
        "the model asked again by the same worker",
        "a call that was never answered",
        "the idempotent tool did not run again",
        "the report went out twice",
    ],
)
def test_a_broken_promise_is_named(harm: Callable[[], Evidence], expected: list[str]) -> None:
    # What is cut out of the middle leaves its child without a parent, and so a second branch.
    found = broken(harm())
    assert set(expected) <= set(found)
    assert set(found) <= {*expected, "nothing_twice"}


def test_a_call_that_failed_may_be_made_again() -> None:
    notes = [NOTES[0], FAILED, replace(NOTES[0], attempt=2), *NOTES[1:]]
    assert broken(replace(KEPT, notes=notes)) == []


def test_what_a_real_model_did_not_do_is_not_held_against_the_log() -> None:
    notes = [note for note in NOTES if note.event is not Event.TOOL_STARTED]
    checks = {
        check.name: check.passed
        for check in verdict(replace(KEPT, notes=notes, mailed=0, is_scripted=False))
    }
    assert (checks["ran_again"], checks["ran_once"]) == (None, None)
