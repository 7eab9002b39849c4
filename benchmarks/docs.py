"""Bring the figures on the pages up to date: `python -m benchmarks.docs [results.json …]`.

A page has tables between `<!-- figures: NAME … -->` and `<!-- end -->`; each name is that of a
benchmark, or `README` for the choice on the front page, or `machine` for what they were measured
on. A table of which a line was not measured stays as it is. Of several files the later ones win.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from benchmarks.budgets import LINES
from benchmarks.machine import in_words
from benchmarks.report import Figure, read_figures
from benchmarks.table import markdown

ROOT: Final = Path(__file__).resolve().parents[1]
PAGES: Final = ("docs/performance.md", "README.md")
RESULTS: Final = ROOT / "benchmarks/results.json"
FIGURES: Final = re.compile(r"(?<=<!-- figures: )([\w ]+)( -->\n).*?(?=<!-- end -->)", re.DOTALL)

CHOSEN: Final = (
    "plain turn, around turn 10: events",
    "plain turn, around turn 200: history",
    "plain turn, around turn 2,000: history",
    "100 tool calls after 209,000 tokens: history",
    "plain turn: latency",
    "turns a second, 16 sessions",
    "worker killed in a model call: time lost, worst",
    "200 turns, on a new worker: first turn",
    "from cancel to ready, worst",
    "10,000 entries: open",
    "100,000 entries: open",
)
"""The lines of the front page."""


def lines_of(name: str) -> list[str]:
    """The lines of a table, by the name that it has on the page."""
    if name == "README":
        return list(CHOSEN)
    found = [line.what for line in LINES if line.benchmark == name]
    if not found:
        raise ValueError(f"no benchmark {name!r}; see benchmarks/budgets.py")
    return found


def updated(page: str, figures: Mapping[str, Figure], machine: Mapping[str, Any]) -> str:
    """The text of a page with these figures."""

    def table(found: re.Match[str]) -> str:
        if found[1] == "machine":
            return f"{found[1]}{found[2]}\n{in_words(machine)}\n\n"
        wanted = [what for name in found[1].split() for what in lines_of(name)]
        if not all(what in figures for what in wanted):
            return found[0]
        return f"{found[1]}{found[2]}\n{markdown([figures[what] for what in wanted])}\n"

    return FIGURES.sub(table, page)


def main() -> None:
    """Rewrite the pages."""
    results = [Path(name) for name in sys.argv[1:]] or [RESULTS]
    figures = {figure.what: figure for path in results for figure in read_figures(path)}
    machine = json.loads(results[-1].read_text(encoding="utf-8"))["machine"]
    for name in PAGES:
        path = ROOT / name
        path.write_text(updated(path.read_text("utf-8"), figures, machine), encoding="utf-8")
    if missing := [line.what for line in LINES if line.what not in figures]:
        print(f"not measured, tables left as they were: {'; '.join(missing)}", file=sys.stderr)
    if noted := [figure.what for figure in figures.values() if figure.note]:
        print(f"from smaller sizes: {'; '.join(noted)}", file=sys.stderr)


if __name__ == "__main__":
    main()
