"""Which fault strikes when: everything about a run that its seed decides."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    """Kinds of faults."""

    KILL_WORKER = "worker killed"
    FREEZE_WORKER = "worker frozen"
    RESTART_WORKER = "worker restarted in good order"
    TORN_APPEND = "worker killed in the middle of a write to a log"
    KILL_SERVER = "server killed"
    RESTART_SERVER = "server restarted in good order"
    FREEZE_SERVER = "server frozen"
    STORE_ERROR_BEFORE = "store failed before the commit"
    STORE_ERROR_AFTER = "store failed after the commit"
    SLOW_STORE = "store slow"
    FULL_DISK = "disk full in the middle of a write"
    MODEL_ERROR = "model overloaded"
    KILL_CLIENT = "client killed"
    FREEZE_CLIENT = "client frozen"
    CLOCK_JUMP = "clock of a client jumped"
    TERMINATE_WORKFLOW = "workflow terminated"


@dataclass(frozen=True, slots=True)
class Fault:
    """What strikes: `at` seconds after the beginning, for so many seconds, the `target`-th of
    those that can be struck (modulo their number), with a `strength` between 0 and 1.
    """

    at: float
    kind: Kind
    seconds: float
    target: int
    strength: float


_OVERLAP = 2.0
"""On average so many faults are under way at a time."""


def schedule(seed: int, seconds: float, kinds: Sequence[Kind] = tuple(Kind)) -> list[Fault]:
    """The faults of a run, the same for the same seed: in decks, so that each kind comes once
    before any comes twice, and so dense that in a minute all have come.
    """
    chance = random.Random(f"schedule {seed}")
    faults: list[Fault] = []
    deck: list[Kind] = []
    at = chance.uniform(1, 3)
    pause = min(6.0, 0.8 * seconds / len(kinds))
    while at < seconds:
        if not deck:
            deck = chance.sample(list(kinds), len(kinds))
        faults.append(
            Fault(
                at=round(at, 2),
                kind=deck.pop(),
                seconds=round(chance.uniform(0.5, 2 * pause * _OVERLAP - 0.5), 2),
                target=chance.randrange(1_000_000),
                strength=round(chance.random(), 3),
            )
        )
        at += chance.uniform(0.5 * pause, 1.5 * pause)
    return faults
