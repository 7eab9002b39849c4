"""The journal: written by processes that are killed, read by one that waits."""

from __future__ import annotations

from pathlib import Path

from perdure.demo.journal import Event, Journal, Note

STARTED = Note(Event.TOOL_STARTED, worker=1, pid=7, attempt=1, subject="search", call="c1")
ENDED = Note(Event.TOOL_ENDED, worker=1, subject="search", call="c1")


def test_notes_are_read_as_they_were_written_whoever_wrote_them(tmp_path: Path) -> None:
    mine, theirs = Journal(tmp_path / "journal"), Journal(tmp_path / "journal")
    mine.add(STARTED)
    assert theirs.notes() == [STARTED]
    theirs.add(ENDED)
    assert mine.notes() == theirs.notes() == [STARTED, ENDED]


def test_a_line_that_was_torn_by_a_kill_spoils_no_other(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal")
    journal.add(STARTED)
    with journal.path.open("ab") as file:
        file.write(b'{"at":"2026-01-01T00:00:00Z","event":"tool en')
    assert journal.notes() == [STARTED]
    journal.add(ENDED)
    assert journal.notes() == [STARTED, ENDED]


async def test_waiting_ends_when_it_is_found_or_over_or_late(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal")

    def last(notes: list[Note]) -> Note | None:
        return notes[-1] if notes else None

    assert await journal.wait(last, timeout=0) is None
    assert await journal.wait(last, timeout=60, over=lambda: True) is None
    journal.add(STARTED)
    assert await journal.wait(last, timeout=60) == STARTED
