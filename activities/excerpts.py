"""What was said last before a place in a log."""

from __future__ import annotations

from collections.abc import Sequence

from perdure.entries import Entry
from perdure.protocol import Said
from perdure.protocol.said import CARRIED, lightened, remember

_FARTHEST = 3 * CARRIED
"""Entries that are looked at, of which some are not shown to people."""


def is_enough(path: Sequence[Entry]) -> bool:
    """Whether the end of a path is long enough to tell."""
    return len(path) >= _FARTHEST


def last_said(path: Sequence[Entry]) -> list[Said]:
    """The excerpts of the last entries on the path, as short as they are carried."""
    return lightened(remember([], [entry.to_wire() for entry in path[-_FARTHEST:]]))
