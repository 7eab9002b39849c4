"""Every line of the table: what is measured, by which benchmark, and how much it may be.

The budget is the least that is promised, the aim what lies behind it. Where a line says `times`,
the figure is held against its yardstick, which the benchmark's docstring names.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Bound:
    """The most that a figure may be, or the least: itself, or as a ratio to its yardstick."""

    limit: float
    is_floor: bool = False
    is_ratio: bool = False

    def holds(self, value: float, yardstick: float | None) -> bool:
        """Whether the figure is within it; a ratio without a yardstick is not."""
        if self.is_ratio:
            if not yardstick:
                return False
            value /= yardstick
        return value >= self.limit if self.is_floor else value <= self.limit


def at_most(limit: float) -> Bound:
    """The figure itself may be so much."""
    return Bound(limit)


def at_least(limit: float) -> Bound:
    """The figure itself has to be so much."""
    return Bound(limit, is_floor=True)


def at_most_times(limit: float) -> Bound:
    """The figure may be so many times its yardstick."""
    return Bound(limit, is_ratio=True)


def at_least_times(limit: float) -> Bound:
    """The figure has to be so many times its yardstick."""
    return Bound(limit, is_floor=True, is_ratio=True)


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the table. `unit` is that of the figure and of its yardstick: `s`, `bytes`, `/s`
    or a word; empty for a count.
    """

    benchmark: str
    what: str
    unit: str
    budget: Bound | None = None
    aim: Bound | None = None


def _history() -> Iterable[Line]:
    name = "turn_history"
    for turn in ("10", "200", "2,000"):
        yield Line(name, f"plain turn, around turn {turn}: events", "", at_most(15))
        yield Line(
            name, f"plain turn, around turn {turn}: history", "bytes", at_most(5e3), at_most(3.5e3)
        )
    yield Line(name, "plain turn: Temporal actions", "")
    yield Line(name, "tool turn: events", "", at_most(28))
    yield Line(name, "tool turn: history", "bytes", at_most(9e3))
    yield Line(name, "tool turn: Temporal actions", "")
    yield Line(name, "step of a long run, a model call and its tool: events", "")
    yield Line(name, "step of a long run, a model call and its tool: history", "bytes")


def _pace() -> Iterable[Line]:
    name = "turn_latency"
    yield Line(name, "plain turn: latency", "s", at_most_times(1.3), at_most_times(1.1))
    yield Line(name, "plain turn: latency, 95th percentile", "s")
    yield Line(name, "plain turn: latency, if the bare workflow stores nothing", "s")
    yield Line(name, "tool turn: latency", "s")
    yield Line(name, "turns a second, 1 session", "/s", aim=at_least_times(0.95))
    yield Line(
        name, "turns a second, 16 sessions", "/s", at_least_times(0.75), at_least_times(0.95)
    )
    yield Line(name, "plain turn: latency among 16 sessions", "s", aim=at_most_times(1.1))
    yield Line(name, "turns a second, 64 sessions", "/s", aim=at_least_times(0.95))
    yield Line(name, "plain turn: latency among 64 sessions", "s", aim=at_most_times(1.1))


def _engine() -> Iterable[Line]:
    yield Line("long_run", "100 tool calls after 209,000 tokens: results", "", at_least(100))
    yield Line("long_run", "100 tool calls after 209,000 tokens: history", "bytes", at_most(3e6))
    yield Line("long_run", "100 tool calls after 209,000 tokens: events", "")
    yield Line("long_run", "100 tool calls after 209,000 tokens: workflow runs", "")
    yield Line("long_run", "100 tool calls after 209,000 tokens: time of a step", "s")
    yield Line("watching", "plain turn, watched: events", "")
    yield Line("watching", "plain turn, watched: history", "bytes")
    yield Line("watching", "plain turn, watched: Temporal actions", "")
    yield Line("watching", "plain turn, watched by two: events", "")
    yield Line("watching", "plain turn, streamed: events", "")
    yield Line("watching", "plain turn, streamed: history", "bytes")
    yield Line("watching", "plain turn, streamed: Temporal actions", "")
    yield Line("watching", "plain turn, a watcher of the session: events", "")
    yield Line("takeover", "worker killed in a model call: time lost", "s", at_most(8))
    yield Line("takeover", "worker killed in a model call: time lost, worst", "s", at_most(8))
    yield Line("takeover", "200 turns, on a new worker: first turn", "s", at_most_times(2))
    yield Line("takeover", "200 turns, on a new worker: first turn, worst", "s")
    yield Line("replay", "replay: events a second", "/s")
    yield Line("replay", "replay: time for a turn", "s")
    yield Line("cancel", "from cancel to ready", "s", at_most(1.5))
    yield Line("cancel", "from cancel to ready, worst", "s", at_most(1.5))


def _long_logs() -> Iterable[Line]:
    name = "open_and_view"
    opening = {"1,000": None, "10,000": at_most(0.5), "100,000": at_most(4)}
    for entries, budget in opening.items():
        size = f"{entries} entries"
        cached = at_most(0.010), at_most(0.003)
        yield Line(name, f"{size}: open", "s", budget)
        yield Line(name, f"{size}: load, for each entry", "s", aim=at_most(8e-6))
        # Of a small log most is what reading any log takes.
        yield Line(name, f"{size}: memory", "bytes", budget and at_most_times(3))
        yield Line(name, f"{size}: memory with path and model view", "bytes")
        yield Line(name, f"{size}: path and model view, the first", "s")
        yield Line(
            name,
            f"{size}: path and model view, cached",
            "s",
            *(cached if entries == "10,000" else ()),
        )
        yield Line(name, f"{size}: tree", "s")
    for entries in opening:
        size = f"session of {entries} entries"
        yield Line("long_sessions", f"{size}: open", "s")
        yield Line("long_sessions", f"{size}: first turn", "s")
        yield Line("long_sessions", f"{size}: next turn", "s")
        yield Line("long_sessions", f"{size}: fork", "s")
        yield Line("long_sessions", f"{size}: compact", "s")


def _stores() -> Iterable[Line]:
    yield Line("store_appends", "files: append", "s")
    yield Line("store_appends", "files: append to 10,000 entries", "s")
    yield Line("store_appends", "files: append of 20 entries at once, for each", "s")
    yield Line("store_appends", "files: appends a second, 1 session", "/s")
    yield Line("store_appends", "files: appends a second, 1 session, 16 tasks", "/s")
    yield Line("store_appends", "files: appends a second, 16 sessions", "/s")
    yield Line("store_appends", "files: load of 10,000 entries, unchanged", "s")
    name = "postgres_appends"
    yield Line(name, "PostgreSQL: append", "s")
    yield Line(name, "PostgreSQL: appends a second, 1 session", "/s")
    yield Line(name, "PostgreSQL: appends a second, 1 session, 16 tasks", "/s")
    yield Line(name, "PostgreSQL: appends a second, 16 sessions", "/s")
    for entries in ("10,000", "100,000"):
        yield Line(name, f"PostgreSQL: append to {entries} entries", "s")
        yield Line(name, f"PostgreSQL: first load of {entries} entries", "s")
        yield Line(name, f"PostgreSQL: last 100 entries of a path of {entries}", "s")
        yield Line(name, f"PostgreSQL: load of {entries} entries, unchanged", "s")


def _sizing() -> Iterable[Line]:
    for process in ("worker", "server", "client"):
        yield Line("sizing", f"processor time of a plain turn: {process}", "s")
    yield Line("sizing", "memory of a worker", "bytes")
    yield Line("sizing", "memory of an idle session in it", "bytes")
    yield Line("sizing", "turns a second, 16 sessions, encrypted", "/s")
    yield Line("sizing", "appends a second, 16 sessions, encrypted store", "/s")


LINES: Final[tuple[Line, ...]] = (
    *_history(),
    *_pace(),
    *_engine(),
    *_long_logs(),
    *_stores(),
    *_sizing(),
)
"""The whole table, in its order."""

BENCHMARKS: Final[tuple[str, ...]] = tuple(dict.fromkeys(line.benchmark for line in LINES))
"""The modules that measure it, `benchmarks.<name>` each."""

_by_what: Final = {line.what: line for line in LINES}


def line_of(what: str) -> Line:
    """The line of that name."""
    if what not in _by_what:
        raise ValueError(f"no line {what!r}; add it to benchmarks/budgets.py")
    return _by_what[what]
