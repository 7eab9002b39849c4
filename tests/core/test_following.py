"""Where a leaf is by now, told by what was appended since."""

from __future__ import annotations

import pytest

from perdure import Transcript
from perdure.following import followed
from tests.core.building import said

LOG = [
    said("root", "root"),
    said("a1", "a1", "root"),
    said("a2", "a2", "a1"),
    said("b1", "b1", "root"),
    said("b2", "b2", "b1"),
    said("a3", "a3", "a2"),
]


@pytest.mark.parametrize(
    "leaf_id, seen_id, may_have_branched, expected",
    [
        ("a3", "a3", True, "a3"),  # nothing came
        ("a2", "a2", False, "a3"),  # what goes on from the leaf is its own, others between or not
        ("a1", "a1", False, "a3"),
        ("b1", "b1", False, "b2"),
        ("b2", "b2", True, "b2"),  # a3 goes on from elsewhere: another instance's
        ("a2", "a2", True, "a3"),
        ("root", "a2", True, "b2"),  # it was at an earlier entry, and went on from there
        ("a2", "b1", False, "a3"),
        ("", "", True, "a3"),  # a handle that has seen nothing
        ("a1", "a2", False, "a1"),  # it rewound and rests, whatever others do
        ("gone", "a3", True, "gone"),
    ],
)
def test_a_leaf_is_followed_along_its_own_branch(
    leaf_id: str, seen_id: str, may_have_branched: bool, expected: str
) -> None:
    found = followed(Transcript(LOG), leaf_id, seen_id, may_have_branched=may_have_branched)
    assert found == expected


def test_who_branched_unseen_is_found_on_its_old_path() -> None:
    """The same instance, moved by another process."""
    log = [*LOG[:3], said("c1", "c1", "a1"), said("c2", "c2", "c1")]
    assert followed(Transcript(log), "a2", "a2", may_have_branched=True) == "c2"
    assert followed(Transcript(log), "a2", "a2", may_have_branched=False) == "a2"
