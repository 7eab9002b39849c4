from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given

from perdure.entries import Entry, MessageEntry
from perdure.transcript import Transcript
from perdure.tree import TreeNode
from tests.core.building import at, said
from tests.core.logs import strange_logs

Shape = tuple[str, list["Shape"]]


def shape(nodes: Sequence[TreeNode]) -> list[Shape]:
    return [(node.entry.id, shape(node.children)) for node in nodes]


def tree(*entries: Entry) -> list[Shape]:
    return shape(Transcript(entries).tree())


def stamped(entry_id: str, parent: str, nanosecond: int) -> MessageEntry:
    return said(entry_id, "", parent).with_header(created_at=at(0, nanosecond))


def test_an_empty_log_has_no_tree() -> None:
    assert tree() == []


def test_children_hang_from_their_parents() -> None:
    """2.5: the tree comes from the parent pointers."""
    log = [said("a", ""), said("b", "", "a"), said("c", "", "b"), said("d", "", "a")]
    assert tree(*log) == [("a", [("b", [("c", [])]), ("d", [])])]


def test_siblings_and_roots_are_ordered_by_the_nanosecond_then_as_appended() -> None:
    """2.5: a microsecond is not exact enough."""
    log = [
        stamped("late root", "", 5),
        stamped("a", "", 1),
        stamped("c", "a", 3),
        stamped("b1", "a", 2),
        stamped("b2", "a", 2),
        stamped("d", "a", 1),
    ]
    assert tree(*log) == [
        ("a", [("d", []), ("b1", []), ("b2", []), ("c", [])]),
        ("late root", []),
    ]


def test_an_entry_whose_parent_is_missing_is_a_root() -> None:
    assert tree(said("a", ""), said("b", "", "gone"), said("c", "", "b")) == [
        ("a", []),
        ("b", [("c", [])]),
    ]


def test_a_parent_may_stand_after_its_children() -> None:
    assert tree(said("b", "", "a"), said("a", "")) == [("a", [("b", [])])]


def test_an_entry_that_is_its_own_parent_is_a_root() -> None:
    assert tree(said("a", "", "a"), said("b", "", "a")) == [("a", [("b", [])])]


def test_a_circle_hangs_from_its_first_entry_and_nothing_is_invisible() -> None:
    log = [
        said("tail", "", "c"),
        said("a", "", "b"),
        said("b", "", "c"),
        said("c", "", "a"),
        said("root", ""),
    ]
    assert tree(*log) == [("a", [("c", [("tail", []), ("b", [])])]), ("root", [])]


def test_every_entry_of_one_id_is_shown_and_the_first_is_the_parent() -> None:
    first = said("a", "first")
    second = said("a", "second", "b")
    roots = Transcript([first, said("b", "", "a"), second]).tree()
    assert shape(roots) == [("a", [("b", [("a", [])])])]
    assert roots[0].entry is first
    assert roots[0].children[0].children[0].entry is second


def test_an_entry_without_an_id_is_shown_and_is_nobodys_parent() -> None:
    assert tree(said("", "x"), said("a", ""), said("", "y", "a"), said("b", "")) == [
        ("", []),
        ("a", [("", [])]),
        ("b", []),
    ]


def test_a_chain_of_a_hundred_thousand_entries_is_a_tree() -> None:
    """4.1: depth is unlimited."""
    log = [said("0", "")]
    log += [log[0].with_header(id=str(n), parent_id=str(n - 1)) for n in range(1, 100_000)]
    (root,) = Transcript(log).tree()
    depths = [depth for depth, _ in root.walk()]
    assert depths == list(range(100_000))
    assert repr(root).startswith("TreeNode(entry=")
    assert root != Transcript(log).tree()[0]
    del root


@given(strange_logs)
def test_the_tree_is_that_of_the_plain_recursive_one(log: list[Entry]) -> None:
    found = Transcript(log).tree()
    assert [
        [(depth, id(node.entry)) for depth, node in root.walk()] for root in found
    ] == _plain_tree(log)


@given(strange_logs)
def test_every_entry_is_in_the_tree_once(log: list[Entry]) -> None:
    shown = [id(node.entry) for root in Transcript(log).tree() for _, node in root.walk()]
    assert sorted(shown) == sorted(id(entry) for entry in log)


def _plain_tree(log: list[Entry]) -> list[list[tuple[int, int]]]:
    positions = range(len(log))

    def parent(child: int) -> int | None:
        named = [at for at in positions if log[at].id and log[at].id == log[child].parent_id]
        return named[0] if named else None

    def ancestors(child: int) -> list[int]:
        found: list[int] = []
        above = parent(child)
        while above is not None and above not in found:
            found.append(above)
            above = parent(above)
        return found

    def is_root(at: int) -> bool:
        above = ancestors(at)
        return not above or (at in above and at == min(above))

    def ordered(found: list[int]) -> list[int]:
        return sorted(found, key=lambda at: (log[at].created_at.nanoseconds, at))

    def preorder(at: int, depth: int) -> list[tuple[int, int]]:
        children = ordered([other for other in positions if parent(other) == at])
        below = [preorder(other, depth + 1) for other in children if not is_root(other)]
        return [(depth, id(log[at])), *(item for part in below for item in part)]

    return [preorder(root, 0) for root in ordered([at for at in positions if is_root(at)])]
