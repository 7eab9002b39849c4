"""The table, for a terminal and for a page in Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from benchmarks.budgets import Bound

if TYPE_CHECKING:
    from benchmarks.report import Figure

COLUMNS: Final = ("budget", "aim", "value", "yardstick", "ratio", "met")


def print_table(title: str, figures: Sequence[Figure]) -> None:
    """Print one line for each figure."""
    table = Table(title=title, title_justify="left")
    table.add_column("what")
    for name in COLUMNS:
        table.add_column(name, justify="right")
    benchmark = ""
    for figure in figures:
        if benchmark not in ("", figure.line.benchmark):
            table.add_section()
        benchmark = figure.line.benchmark
        *cells, met = cells_of(figure)
        colour = {"yes": "green", "aim": "green", "NO": "red"}.get(met, "default")
        table.add_row(escape(figure.what), *cells, f"[{colour}]{met}[/]")
    Console(width=132).print(table)


def markdown(figures: Sequence[Figure]) -> str:
    """The rows of a Markdown table, with its head."""
    rows = [("what", *COLUMNS), ("---", *("---:" for _ in COLUMNS))]
    rows += [(figure.what, *cells_of(figure)) for figure in figures]
    return "".join("| " + " | ".join(cell or " " for cell in row) + " |\n" for row in rows)


def cells_of(figure: Figure) -> tuple[str, ...]:
    """The cells under `COLUMNS`. `met` is yes or NO, or `aim` when the aim is reached as well."""
    line = figure.line
    met = {None: "", True: "yes", False: "NO"}[figure.is_met]
    if figure.is_met is not False and figure.reaches_aim:
        met = "aim"
    return (
        _bound(line.budget, line.unit),
        _bound(line.aim, line.unit),
        quantity(figure.value, line.unit) + (f" ({figure.note})" if figure.note else ""),
        "" if figure.yardstick is None else quantity(figure.yardstick, line.unit),
        "" if figure.ratio is None else f"{figure.ratio:.2f} ×",
        met,
    )


def _bound(bound: Bound | None, unit: str) -> str:
    if bound is None:
        return ""
    sign = "≥" if bound.is_floor else "≤"
    return f"{sign} " + (f"{bound.limit:g} ×" if bound.is_ratio else quantity(bound.limit, unit))


def quantity(value: float, unit: str) -> str:
    """A figure with its unit, in three digits."""
    if unit == "bytes":
        return _scaled(value, (("GB", 1e9), ("MB", 1e6), ("kB", 1e3), ("bytes", 1.0)))
    if unit == "s":
        return _scaled(value, (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)))
    digits = f"{value:,.0f}" if abs(value) >= 1_000 else f"{value:.3g}"
    return f"{digits} {unit}".strip()


def _scaled(value: float, steps: Sequence[tuple[str, float]]) -> str:
    name, size = next((step for step in steps if abs(value) >= step[1]), steps[-1])
    return f"{value / size:.3g} {name}"
