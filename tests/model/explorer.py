"""Every state that can be reached, the nearest first, each looked at once."""

from __future__ import annotations

import hashlib
import pickle
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass

from perdure import Entry, MessageEntry
from tests.model.processes import entries_of
from tests.model.promises import broken
from tests.model.world import SESSION, Scenario, World, first_world, steps

Log = tuple[tuple[str, str], ...]
"""Role and text of each message, in order."""


@dataclass(frozen=True, slots=True)
class Counterexample:
    """A shortest way to a broken promise."""

    scenario: str
    way: tuple[str, ...]
    promises: tuple[str, ...]

    def __str__(self) -> str:
        lines = [f"In the scenario “{self.scenario}”:"]
        lines += [f"{number:>4}. {label}" for number, label in enumerate(self.way, 1)]
        return "\n".join([*lines, *(f"   ✗ {promise}" for promise in self.promises)])


@dataclass(frozen=True, slots=True)
class Explored:
    """What came of it. An end is a state in which nothing more happens by itself."""

    states: int
    steps: int
    ends: int
    counterexample: Counterexample | None = None
    logs: frozenset[Log] = frozenset()
    """What the session's log may hold in the end, without a fault or after the faults that struck
    """


class TooManyStates(Exception):
    """The scenario has no end, or is too large."""


def explore(scenario: Scenario, *, most: int = 1_000_000) -> Explored:
    """Visit every state of a scenario, until a promise is broken.

    Raises TooManyStates after so many.
    """
    first = first_world(scenario)
    ways: dict[bytes, tuple[bytes, str]] = {_mark(first): (b"", "")}
    queue = deque([first])
    taken = ends = 0
    logs: set[Log] = set()
    while queue:
        world = queue.popleft()
        mark = _mark(world)
        next_steps = list(steps(world))
        at_the_end = all(step.is_fault for step in next_steps)
        if at_the_end:
            ends += 1
            logs.add(log_of(entries_of(world.kept, SESSION)))
        promises = tuple(broken(world, at_the_end=at_the_end))
        if promises:
            found = Counterexample(scenario.name, _way(ways, mark), promises)
            return Explored(len(ways), taken, ends, found)
        for step in next_steps:
            taken += 1
            known = _mark(step.world)
            if known not in ways:
                ways[known] = (mark, step.label)
                queue.append(step.world)
        if len(ways) > most:
            raise TooManyStates(f"{scenario.name}: more than {most:,} states")
    return Explored(len(ways), taken, ends, logs=frozenset(logs))


def log_of(entries: Iterable[Entry]) -> Log:
    """The messages of a log, as far as they are compared."""
    messages = [entry.message for entry in entries if isinstance(entry, MessageEntry)]
    return tuple((message.role, message.text) for message in messages)


def _mark(world: World) -> bytes:
    """States that are the same have the same mark."""
    parts = (getattr(world, name) for name in _NAMES)
    return hashlib.blake2b(pickle.dumps(tuple(parts)), digest_size=16).digest()


_NAMES = [name for name in World.__dataclass_fields__ if name != "scenario"]


def _way(ways: dict[bytes, tuple[bytes, str]], mark: bytes) -> tuple[str, ...]:
    labels: list[str] = []
    while True:
        mark, label = ways[mark]
        if not label:
            return tuple(reversed(labels))
        labels.append(label)
