"""Figures: what a benchmark measures, its command line, and the JSON that it writes."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Self

from benchmarks.budgets import Line, line_of
from benchmarks.machine import facts
from benchmarks.table import print_table


class Scale(StrEnum):
    """How much to measure: for a first look, or for the table."""

    QUICK = "quick"
    FULL = "full"

    def pick(self, quick: int, full: int) -> int:
        """A number of rounds, turns or sessions for this scale."""
        return quick if self is Scale.QUICK else full


@dataclass(frozen=True, slots=True)
class Figure:
    """What was measured for a line of the table; the yardstick is in the same unit. `note` says
    what differs from the line, at a smaller scale.
    """

    what: str
    value: float
    yardstick: float | None = None
    note: str = ""

    @property
    def line(self) -> Line:
        """What it was measured for."""
        return line_of(self.what)

    @property
    def ratio(self) -> float | None:
        """The value against its yardstick."""
        return self.value / self.yardstick if self.yardstick else None

    @property
    def is_met(self) -> bool | None:
        """Whether the budget is kept; None without one."""
        budget = self.line.budget
        return None if budget is None else budget.holds(self.value, self.yardstick)

    @property
    def reaches_aim(self) -> bool | None:
        """Whether the aim is reached; None without one."""
        aim = self.line.aim
        return None if aim is None else aim.holds(self.value, self.yardstick)

    def to_json(self) -> dict[str, Any]:
        """Itself and what follows from it, as JSON values."""
        line = self.line
        return {
            "benchmark": line.benchmark,
            "what": self.what,
            "unit": line.unit,
            "value": self.value,
            "yardstick": self.yardstick,
            "ratio": self.ratio,
            "is_met": self.is_met,
            "reaches_aim": self.reaches_aim,
            "note": self.note,
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        """What `to_json` wrote."""
        return cls(data["what"], data["value"], data["yardstick"], data["note"])


def run_benchmark(
    measure: Callable[[Scale], Coroutine[Any, Any, Sequence[Figure]]], doc: str | None
) -> None:
    """The command line of a benchmark: measure, print the table, write the JSON when asked for it.
    Ends the process with status 1 when a budget is missed.

    `doc` is the docstring of the benchmark's module; its first line is the title.
    """
    title = (doc or "").strip().splitlines()[0]
    arguments = command_line(title).parse_args()
    scale = scale_of(arguments)
    machine = facts()
    figures = asyncio.run(measure(scale))
    print_table(title, figures)
    if arguments.json:
        write_json(arguments.json, figures, machine, scale)
    sys.exit(missed_budgets(figures))


def missed_budgets(figures: Sequence[Figure]) -> int:
    """The exit status for these figures: 1 when one of them misses its budget."""
    return int(any(figure.is_met is False for figure in figures))


def command_line(title: str) -> argparse.ArgumentParser:
    """The options that every benchmark has."""
    parser = argparse.ArgumentParser(description=title)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there, too")
    parser.add_argument("--quick", action="store_true", help="fewer and smaller rounds")
    return parser


def scale_of(arguments: argparse.Namespace) -> Scale:
    """What `--quick` says."""
    return Scale.QUICK if arguments.quick else Scale.FULL


def write_json(
    path: Path,
    figures: Sequence[Figure],
    machine: dict[str, Any],
    scale: Scale,
    broken: Sequence[str] = (),
) -> None:
    """Write the figures with what they were measured on; `broken` are benchmarks that gave none."""
    written = {
        "machine": machine,
        "scale": scale.value,
        "broken": list(broken),
        "figures": [figure.to_json() for figure in figures],
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(written, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def read_figures(path: Path) -> list[Figure]:
    """The figures that `write_json` wrote."""
    written = json.loads(path.read_text(encoding="utf-8"))
    return [Figure.from_json(item) for item in written["figures"]]
