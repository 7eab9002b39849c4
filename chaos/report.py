"""What a run comes to: a table for people, JSON for programs."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass
from typing import Any

from rich.console import Console
from rich.table import Table

from chaos.checks import Finding, check_all
from chaos.checks.logs import (
    copies_on_dead_branches,
    interrupted_calls,
    repeated_after_an_end,
)
from chaos.checks.sessions import BENIGN
from chaos.evidence import Evidence

_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Report:
    """The numbers of a run, and what its checks found."""

    seed: int
    minutes: float
    numbers: dict[str, int]
    faults: dict[str, int]
    ends: dict[str, int]
    refusals: dict[str, int]
    findings: list[Finding]

    @property
    def is_good(self) -> bool:
        """Whether every property holds."""
        return not any(finding.violations for finding in self.findings)

    def to_json(self) -> dict[str, Any]:
        """For programs."""
        return asdict(self) | {"is_good": self.is_good}


def report_of(evidence: Evidence, seed: int) -> Report:
    """Check the evidence, and count."""
    logs = evidence.logs
    started = evidence.of("tool started")
    numbers = {
        "sessions": sum("~" not in session_id for session_id in logs),
        "forks": sum("~" in session_id for session_id in logs),
        "entries": sum(len(log.lines) for log in logs.values()),
        "branches": sum(len(log.leaves) for log in logs.values()),
        "runs": len({note["command"] for note in evidence.of("run sent")}),
        "model calls": len(evidence.of("model asked")),
        "tool calls": len({note["call"] for note in started}),
        "tool executions": len(started),
        "interrupted calls": interrupted_calls(evidence),
        "receipts": sum(len(note["entries"]) for note in evidence.of("receipt")),
        "workflow runs": sum(note["runs"] for note in evidence.of("histories read")),
        "workflow tasks failed by the SDK": sum(
            note["cause"] not in BENIGN for note in evidence.of("task failed")
        ),
        "copies on dead branches": copies_on_dead_branches(evidence),
        "inputs repeated after a termination": repeated_after_an_end(evidence),
    }
    times = [note["at"] for note in evidence.of("begun", "calm")]
    return Report(
        seed=seed,
        minutes=round((max(times) - min(times)) / 60, 1) if times else 0.0,
        numbers=numbers,
        faults=_counted(note["fault"] for note in evidence.of("fault")),
        ends=_counted(note["error"] or note["status"] for note in evidence.of("run ended")),
        refusals=_counted(str(note["error"]).partition(":")[0] for note in evidence.of("refused")),
        findings=check_all(evidence),
    )


def _counted(names: Any) -> dict[str, int]:
    return dict(sorted(Counter(map(str, names)).items()))


def print_report(report: Report) -> None:
    """Print it for people."""
    console = Console(width=110)
    table = Table(title=f"chaos: seed {report.seed}, {report.minutes} minutes")
    table.add_column("what")
    table.add_column("times", justify="right")
    for counts in (report.numbers, report.faults):
        for name, times in counts.items():
            table.add_row(name, f"{times:,}")
        table.add_section()
    for name, times in report.ends.items():
        table.add_row(f"runs that ended: {name}", f"{times:,}")
    table.add_section()
    for name, times in report.refusals.items():
        table.add_row(f"refused: {name}", f"{times:,}")
    console.print(table)
    verdicts = Table()
    verdicts.add_column("property")
    verdicts.add_column("checked", justify="right")
    verdicts.add_column("verdict")
    for finding in report.findings:
        verdict = f"broken {len(finding.violations)} times" if finding.violations else "holds"
        verdicts.add_row(finding.property, f"{finding.checked:,}", verdict)
    console.print(verdicts)
    for finding in report.findings:
        for violation in finding.violations[:_SHOWN]:
            print(f"{finding.property}: {violation}")
