"""The tree that the parent pointers of a log make. No recursion: any depth will do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from perdure.entries import Entry
from perdure.gc_pause import gc_paused

_ROOT: Final = -1


@dataclass(eq=False, slots=True)
class TreeNode:
    """An entry and those that follow it, oldest first."""

    entry: Entry
    children: list[TreeNode] = field(default_factory=list, repr=False)

    def walk(self) -> Iterator[tuple[int, TreeNode]]:
        """This node and all below it with their depth, each before its children."""
        waiting = [(0, self)]
        while waiting:
            depth, node = waiting.pop()
            yield depth, node
            waiting.extend((depth + 1, child) for child in reversed(node.children))


def tree_of(entries: Sequence[Entry]) -> list[TreeNode]:
    """The roots; each entry is in the tree exactly once.

    The parent that an ID names is the first entry with that ID. An entry without a parent in the
    log is a root; of entries whose parents run in a circle, the one that was appended first is.
    Siblings, and roots too, are ordered by the instant of their creation, then as appended.
    """
    positions: dict[str, int] = {"": _ROOT}
    for position, entry in enumerate(entries):
        positions.setdefault(entry.id, position)
    parents = [positions.get(entry.parent_id, _ROOT) for entry in entries]
    _open_circles(parents)
    with gc_paused():
        nodes = [TreeNode(entry) for entry in entries]
    roots: list[TreeNode] = []
    for node, parent in zip(nodes, parents, strict=True):
        (roots if parent == _ROOT else nodes[parent].children).append(node)
    for siblings in (roots, *(node.children for node in nodes)):
        if len(siblings) > 1:
            siblings.sort(key=_created)
    return roots


def _created(node: TreeNode) -> int:
    return node.entry.created_at.nanoseconds


def _open_circles(parents: list[int]) -> None:
    """Make a root of the first entry of each circle."""
    seen_from = [_ROOT] * len(parents)
    for start in range(len(parents)):
        position = start
        while position != _ROOT and seen_from[position] == _ROOT:
            seen_from[position] = start
            position = parents[position]
        if position != _ROOT and seen_from[position] == start:
            parents[_first_of_circle(parents, position)] = _ROOT


def _first_of_circle(parents: Sequence[int], position: int) -> int:
    first, other = position, parents[position]
    while other != position:
        first, other = min(first, other), parents[other]
    return first
