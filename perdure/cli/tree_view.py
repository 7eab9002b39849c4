"""The tree of a session, drawn: the active path runs down the left edge, what was abandoned
branches off to the right.

Long stretches without a branch are folded to their ends, branches of a large tree to their first
entry. Nothing here is recursive: any depth will do.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from perdure.cli.entry_lines import COLOURS, counted, headline, local_time, plural, role_of
from perdure.cli.screen import Screen, cut, one_line, width_of
from perdure.cli.stored import id_length
from perdure.entries import CompactionEntry, Entry
from perdure.transcript import Transcript
from perdure.tree import TreeNode

ENDS = 2
"""Entries that are shown at either end of a stretch without branches."""

LEAST_FOLDED = 3
"""Entries that are folded at least; fewer are shown."""

LARGE = 400
"""Entries from which on a tree is large: its side branches are folded."""

MOST_SIDES = 6
"""Side branches of one entry that are shown in a large tree; the latest ones."""

MOST_ROWS = 300
"""Rows that a large tree takes; of more, the first and the last are shown."""

_FIRST_ROWS = 40
_PIPED = 120
_WIDE = 60
_DEEPEST = 12


@dataclass(slots=True)
class _Row:
    depth: int
    starts: bool
    entry: Entry | None = None
    note: str = ""


@dataclass(slots=True)
class _Chain:
    """A stretch to draw: its first node, how far to the right, and whether it branches off."""

    node: TreeNode
    depth: int
    starts: bool


@dataclass
class TreeView:
    """How a tree is drawn. With `all` nothing is folded. `forks` are the children of the session,
    by the entry after which each goes its own way.
    """

    transcript: Transcript
    leaf_id: str
    forks: Mapping[str, Sequence[str]] = field(default_factory=dict)
    all: bool = False

    def __post_init__(self) -> None:
        self._path = {entry.id for entry in self.transcript.path(self.leaf_id)}
        self._is_large = not self.all and len(self.transcript) >= LARGE
        self._id_length = id_length(list(self.transcript.entries))

    def show(self, screen: Screen) -> None:
        """Print the tree."""
        rows = list(self._rows())
        hidden = len(rows) - MOST_ROWS
        for position, row in enumerate(rows):
            if self._is_large and hidden > 0 and _FIRST_ROWS <= position < _FIRST_ROWS + hidden:
                if position == _FIRST_ROWS:
                    screen.line(
                        screen.styled(screen.fit(f"⋮ {hidden:,} rows, --all shows them"), "dim")
                    )
                continue
            screen.line(self._drawn(row, screen))

    def _rows(self) -> Iterator[_Row]:
        waiting: list[_Chain | _Row] = []
        self._branch_off(self.transcript.tree(), -1, waiting)
        while waiting:
            chain = waiting.pop()
            if isinstance(chain, _Row):
                yield chain
                continue
            stretch, children = _stretch(chain.node)
            if self._is_large and chain.starts:
                yield _Row(chain.depth, True, stretch[0])
                yield from self._folded_branch(chain)
                continue
            starts = chain.starts
            for row in self._stretch_rows(stretch, chain.depth):
                row.starts, starts = starts, False
                yield row
            self._branch_off(children, chain.depth, waiting)

    def _branch_off(
        self, children: list[TreeNode], depth: int, waiting: list[_Chain | _Row]
    ) -> None:
        """Put the children on the stack: the one that goes on straight is drawn last."""
        if not children:
            return
        straight = self._straight_on(children)
        sides = [child for child in children if child is not straight]
        waiting.append(_Chain(straight, max(depth, 0), starts=False))
        shown = sides[-MOST_SIDES:] if self._is_large else sides
        waiting.extend(_Chain(child, max(depth, 0) + 1, starts=True) for child in reversed(shown))
        if len(shown) < len(sides):
            folded = plural(len(sides) - len(shown), "earlier branch", "earlier branches")
            waiting.append(_Row(max(depth, 0) + 1, True, note=f"⋮ {folded}"))

    def _straight_on(self, children: list[TreeNode]) -> TreeNode:
        for child in children:
            if child.entry.id in self._path:
                return child
        return children[-1]

    def _folded_branch(self, chain: _Chain) -> Iterator[_Row]:
        below = [node for _, node in chain.node.walk()][1:]
        if len(below) == 1:
            yield _Row(chain.depth, False, below[0].entry)
        elif below:
            ends = sum(not node.children for node in below)
            more = f", {ends:,} ends" if ends > 1 else ""
            yield _Row(chain.depth, False, note=f"⋮ {plural(len(below), 'entry', 'entries')}{more}")

    def _stretch_rows(self, stretch: list[Entry], depth: int) -> Iterator[_Row]:
        plain: list[Entry] = []
        for entry in stretch:
            if not self._stands_out(entry):
                plain.append(entry)
                continue
            yield from self._plain_rows(plain, depth)
            plain = []
            yield _Row(depth, False, entry)
            for child in self.forks.get(entry.id, ()):
                yield _Row(depth, False, note=f"⑂ forked to {one_line(child)}")
        yield from self._plain_rows(plain, depth)

    def _plain_rows(self, entries: list[Entry], depth: int) -> Iterator[_Row]:
        folded = len(entries) - 2 * ENDS
        if self.all or folded < LEAST_FOLDED:
            yield from (_Row(depth, False, entry) for entry in entries)
            return
        yield from (_Row(depth, False, entry) for entry in entries[:ENDS])
        middle = entries[ENDS:-ENDS]
        yield _Row(depth, False, note=f"⋮ {folded:,} entries: {counted(middle)}")
        yield from (_Row(depth, False, entry) for entry in entries[-ENDS:])

    def _stands_out(self, entry: Entry) -> bool:
        return isinstance(entry, CompactionEntry) or self._is_leaf(entry) or entry.id in self.forks

    def _is_leaf(self, entry: Entry) -> bool:
        return bool(entry.id) and entry.id == self.leaf_id

    def _drawn(self, row: _Row, screen: Screen) -> str:
        lead = _lead(row, screen.columns)
        if row.entry is None:
            return screen.styled(lead, "dim") + screen.styled(
                screen.fit(row.note, width_of(lead)), "magenta" if row.note[0] == "⑂" else "dim"
            )
        return screen.styled(lead, "dim") + self._entry(row.entry, screen, width_of(lead))

    def _entry(self, entry: Entry, screen: Screen, taken: int) -> str:
        is_leaf = self._is_leaf(entry)
        sign = "▶" if is_leaf else "◆" if isinstance(entry, CompactionEntry) else "●"
        if sign == "●" and entry.id not in self._path:
            sign = "○"
        role = role_of(entry)
        moment = local_time(entry.created_at)
        when = f"{moment:%m-%d %H:%M}" if moment else " " * 11
        shown_id = one_line(entry.id)[: self._id_length] or "-"
        leaf = " ← leaf" if is_leaf else ""
        columns = screen.columns
        if columns is not None and columns < _WIDE:
            when = leaf = ""
            shown_id = shown_id if columns >= 40 else shown_id[:6]
        start = " ".join(word for word in (sign, shown_id, when) if word) + " "
        end = screen.fit(headline(entry), taken + width_of(start) + width_of(role) + 1 + len(leaf))
        if columns is not None and taken + width_of(start) + width_of(role) + 2 > columns:
            return screen.fit(start + role, taken)
        return (
            screen.styled(start, *(("bold",) if is_leaf else ("dim",)))
            + screen.styled(role, COLOURS.get(role, "blue"))
            + f" {cut(end, _PIPED) if columns is None else end}"
            + screen.styled(leaf, "bold")
        )


def _stretch(node: TreeNode) -> tuple[list[Entry], list[TreeNode]]:
    """The entries from the node to the next branching, and what follows there."""
    entries = [node.entry]
    while len(node.children) == 1:
        node = node.children[0]
        entries.append(node.entry)
    return entries, node.children


def _lead(row: _Row, columns: int | None) -> str:
    if row.depth == 0:
        return ""
    wide = columns is None or columns >= 40
    deepest = _DEEPEST if columns is None else max(1, min(_DEEPEST, columns // 10))
    bar, corner = ("│  ", "├─ ") if wide else ("│", "├")
    if row.depth > deepest:
        return bar * (deepest - 1) + f"{row.depth}: "
    return bar * (row.depth - 1) + (corner if row.starts else bar)
