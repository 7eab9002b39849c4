"""`perdure verify`: what is wrong with stored sessions, and what a reader does about it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from perdure.cli.checks import Finding, Weight, check_entries
from perdure.cli.entry_lines import plural
from perdure.cli.failures import FAILED
from perdure.cli.place import Where
from perdure.cli.screen import Screen, err, one_line, out
from perdure.cli.stored import list_sessions, opened
from perdure.entries import Entry
from perdure.errors import DamagedLogError, SessionNotFoundError
from perdure.stores import FileStore
from perdure.stores.contract import Store
from perdure.stores.file_names import log_file_name
from perdure.stores.log_survey import Survey, survey

_COLOURS = {Weight.ERROR: "red", Weight.WARNING: "yellow", Weight.NOTE: "dim"}


@dataclass(slots=True)
class Report:
    """What was found in a session. `moved_to` is where its torn tail was put."""

    session_id: str
    entries: int = 0
    findings: list[Finding] = field(default_factory=list)
    moved_to: str | None = None

    @property
    def is_ok(self) -> bool:
        """Whether everything that is in the log is used."""
        return all(finding.weight is Weight.NOTE for finding in self.findings)

    def to_json(self) -> dict[str, Any]:
        """The report as `verify --json` tells it."""
        return {
            "session_id": self.session_id,
            "ok": self.is_ok,
            "entries": self.entries,
            "findings": [finding.to_json() for finding in self.findings],
            "moved_to": self.moved_to,
        }


def verify_sessions(
    session_ids: Sequence[str], *, where: Where, repair_tail: bool, as_json: bool
) -> int:
    """Look through sessions, or through all of the store; answer with the exit status: 0 when all
    that is in their logs is used.

    Raises SessionNotFoundError, StoreError.
    """
    # The report says what the store would log about torn tails and repeated IDs.
    logging.getLogger("perdure.stores").setLevel(logging.ERROR)
    return asyncio.run(_verify(list(session_ids), where, repair_tail, as_json))


async def _verify(session_ids: list[str], where: Where, repair_tail: bool, as_json: bool) -> int:
    store = opened(where)
    chosen = session_ids or await list_sessions(store)
    screen = out()
    bad = 0
    for session_id in chosen:
        try:
            report = await report_of(store, session_id, repair_tail=repair_tail)
        except SessionNotFoundError:
            if session_ids:
                raise
            continue  # a file that is no session yet
        bad += not report.is_ok
        if as_json:
            screen.json(report.to_json())
        else:
            _print(screen, report)
    screen.flush()
    if bad:
        told = f"perdure: {plural(bad, 'session')} of {len(chosen)} not all in order"
        err().line(told)
        return FAILED
    return 0


async def report_of(store: Store, session_id: str, *, repair_tail: bool = False) -> Report:
    """What is found in a session; a torn tail is moved aside first, if that is wanted.

    Raises SessionNotFoundError, StoreError.
    """
    if not isinstance(store, FileStore):
        return await _report_of_entries(store, session_id)
    path = store.root / log_file_name(session_id)
    surveyed = await asyncio.to_thread(survey, path, session_id)
    moved_to = None
    if repair_tail and surveyed.tail.is_torn and not surveyed.damages:
        moved_to = await _move_tail(store, session_id, path)
        surveyed = await asyncio.to_thread(survey, path, session_id)
    findings = _file_findings(surveyed) + check_entries(surveyed.entries, surveyed.numbers)
    findings.sort(key=lambda finding: finding.line)
    return Report(session_id, len(surveyed.entries), findings, moved_to)


async def _report_of_entries(store: Store, session_id: str) -> Report:
    try:
        entries: list[Entry] = await store.load_entries(session_id)
    except DamagedLogError as error:
        damage = _damage(error.line, error.reason)
        return Report(session_id, 0, [damage])
    return Report(session_id, len(entries), check_entries(entries, range(1, len(entries) + 1)))


async def _move_tail(store: FileStore, session_id: str, path: Path) -> str | None:
    """Do what the next append would do first, without one."""
    before = set(path.parent.glob("*.torn-*"))
    await store.append_entries(session_id, [])
    new = sorted(set(path.parent.glob("*.torn-*")) - before)
    return str(new[0]) if new else None


def _file_findings(surveyed: Survey) -> list[Finding]:
    findings = [_damage(line, reason) for line, reason in surveyed.damages]
    tail = surveyed.tail
    if tail.is_torn:
        findings.append(
            Finding(
                Weight.WARNING,
                "torn_tail",
                len(surveyed.numbers) + surveyed.blank_lines + 2,
                "",
                f"the last line is torn: {len(tail.data):,} bytes from byte "
                f"{surveyed.tail_start:,} on",
                "leaves them out; the next append, or --repair-tail, moves them aside",
            )
        )
    elif tail.entry is not None:
        findings.append(
            Finding(
                Weight.NOTE,
                "no_line_end",
                surveyed.numbers[-1],
                tail.entry.id,
                "the last line is whole, but its line end is missing",
                "keeps it; the next append adds the line end",
            )
        )
    if surveyed.blank_lines:
        findings.append(
            Finding(
                Weight.NOTE,
                "blank_lines",
                0,
                "",
                plural(surveyed.blank_lines, "blank line"),
                "skips them",
            )
        )
    return findings


def _damage(line: int, reason: str) -> Finding:
    return Finding(
        Weight.ERROR,
        "damage",
        line,
        "",
        reason,
        "refuses the session, until the line is restored; nothing is guessed",
    )


def _print(screen: Screen, report: Report) -> None:
    verdict = "ok" if report.is_ok else "not all in order"
    head = (
        f"{one_line(report.session_id)} · {plural(report.entries, 'entry', 'entries')} · {verdict}"
    )
    screen.line(screen.styled(screen.fit(head), "green" if report.is_ok else "red"))
    if report.moved_to:
        screen.line(f"  moved the torn tail to {one_line(report.moved_to)}")
    for finding in report.findings:
        where = f"line {finding.line}" if finding.line else ""
        entry = one_line(finding.entry_id)
        place = ", ".join(piece for piece in (where, entry) if piece)
        start = screen.styled(f"  {finding.weight.value}", _COLOURS[finding.weight])
        screen.line(f"{start} {place + ': ' if place else ''}{one_line(finding.message)}")
        screen.line(screen.styled(f"    a reader {finding.reader}", "dim"))
