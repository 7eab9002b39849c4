"""Figures beside their budgets: the table that a benchmark prints, and the JSON that it writes."""

from __future__ import annotations

import argparse
import asyncio
import json
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Self

from rich.console import Console
from rich.table import Table


class Scale(StrEnum):
    """How much to measure: for a first look, for the table, or with the slowest parts too."""

    QUICK = "quick"
    FULL = "full"
    LONG = "long"

    def pick(self, quick: int, full: int, long: int | None = None) -> int:
        """A number of rounds, turns or sessions for this scale."""
        return {Scale.QUICK: quick, Scale.FULL: full, Scale.LONG: long or full}[self]


@dataclass(frozen=True, slots=True)
class Budget:
    """The most that a figure may be, or the least: itself, or as a ratio to its yardstick."""

    limit: float
    is_floor: bool = False
    is_ratio: bool = False


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured number, in `unit`; the yardstick is in the same unit."""

    what: str
    value: float
    unit: str
    budget: Budget | None = None
    yardstick: float | None = None
    benchmark: str = ""

    @property
    def ratio(self) -> float | None:
        """The value against its yardstick."""
        return self.value / self.yardstick if self.yardstick else None

    @property
    def is_met(self) -> bool | None:
        """Whether the budget is kept; None without one."""
        if self.budget is None:
            return None
        held = self.ratio if self.budget.is_ratio else self.value
        if held is None:
            return None
        return held >= self.budget.limit if self.budget.is_floor else held <= self.budget.limit

    def to_json(self) -> dict[str, Any]:
        """Itself and what follows from it, as JSON values."""
        return asdict(self) | {"ratio": self.ratio, "is_met": self.is_met}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        """What `to_json` wrote."""
        given = {key: item for key, item in data.items() if key not in ("ratio", "is_met")}
        if given.get("budget"):
            given["budget"] = Budget(**given["budget"])
        return cls(**given)


def at_most(limit: float) -> Budget:
    """The figure itself may be so much."""
    return Budget(limit)


def at_least(limit: float) -> Budget:
    """The figure itself has to be so much."""
    return Budget(limit, is_floor=True)


def at_most_times(limit: float) -> Budget:
    """The figure may be so many times its yardstick."""
    return Budget(limit, is_ratio=True)


def at_least_times(limit: float) -> Budget:
    """The figure has to be so many times its yardstick."""
    return Budget(limit, is_floor=True, is_ratio=True)


def run_benchmark(
    measure: Callable[[Scale], Coroutine[Any, Any, Sequence[Figure]]], doc: str | None
) -> Sequence[Figure]:
    """The command line of a benchmark: measure, print the table, write the JSON when asked for it.

    `doc` is the docstring of the benchmark's module; its first line is the title.
    """
    title = (doc or "").strip().splitlines()[0]
    arguments = command_line(title).parse_args()
    figures = asyncio.run(measure(scale_of(arguments)))
    print_table(title, figures)
    if arguments.json:
        write_json(arguments.json, figures)
    return figures


def command_line(title: str) -> argparse.ArgumentParser:
    """The options that every benchmark has."""
    parser = argparse.ArgumentParser(description=title)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there, too")
    parser.add_argument("--quick", action="store_true", help="fewer and smaller rounds")
    parser.add_argument("--long", action="store_true", help="the parts that take minutes, too")
    return parser


def scale_of(arguments: argparse.Namespace) -> Scale:
    """What `--quick` and `--long` say."""
    if arguments.quick:
        return Scale.QUICK
    return Scale.LONG if arguments.long else Scale.FULL


def write_json(path: Path, figures: Sequence[Figure]) -> None:
    """Write the figures as a JSON array, one object for each."""
    path.write_text(json.dumps([figure.to_json() for figure in figures], indent=1) + "\n")


def read_json(path: Path) -> list[Figure]:
    """Read what `write_json` wrote."""
    return [Figure.from_json(item) for item in json.loads(path.read_text())]


def print_table(title: str, figures: Sequence[Figure]) -> None:
    """Print one line for each figure."""
    table = Table(title=title, title_justify="left")
    table.add_column("what")
    for name in ("budget", "value", "yardstick", "ratio", "met"):
        table.add_column(name, justify="right")
    benchmark = figures[0].benchmark if figures else ""
    for figure in figures:
        if figure.benchmark != benchmark:
            table.add_section()
            benchmark = figure.benchmark
        table.add_row(
            figure.what,
            _budget_text(figure),
            _quantity(figure.value, figure.unit),
            "" if figure.yardstick is None else _quantity(figure.yardstick, figure.unit),
            "" if figure.ratio is None else f"{figure.ratio:.2f} ×",
            {None: "", True: "[green]yes[/]", False: "[red]NO[/]"}[figure.is_met],
        )
    Console(width=120).print(table)


def _budget_text(figure: Figure) -> str:
    budget = figure.budget
    if budget is None:
        return ""
    sign = "≥" if budget.is_floor else "≤"
    if budget.is_ratio:
        return f"{sign} {budget.limit:g} ×"
    return f"{sign} {_quantity(budget.limit, figure.unit)}"


def _quantity(value: float, unit: str) -> str:
    if unit == "bytes":
        return _scaled(value, (("MB", 1e6), ("kB", 1e3), ("bytes", 1.0)))
    if unit == "s":
        return _scaled(value, (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)))
    return f"{value:.4g} {unit}".strip()


def _scaled(value: float, steps: Sequence[tuple[str, float]]) -> str:
    for name, size in steps:
        if abs(value) >= size:
            return f"{value / size:.3g} {name}"
    name, size = steps[-1]
    return f"{value / size:.3g} {name}"
