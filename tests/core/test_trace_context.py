"""Trace contexts: what is read, and which IDs follow from what."""

from __future__ import annotations

import pytest

from perdure.trace_context import TraceContext

GIVEN = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def test_a_context_is_read_and_written_as_w3c_has_it() -> None:
    context = TraceContext.parse(GIVEN)
    assert context == TraceContext("0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331", "01")
    assert str(context) == GIVEN


def test_one_of_a_later_version_is_read_as_far_as_it_is_known() -> None:
    assert TraceContext.parse(f"01{GIVEN[2:]}-more") == TraceContext.parse(GIVEN)


@pytest.mark.parametrize(
    "given",
    [
        "",
        None,
        7,
        "00-abc",
        GIVEN.upper(),
        f"{GIVEN}-more",
        f"ff{GIVEN[2:]}",
        GIVEN.replace("b7ad6b7169203331", "0" * 16),
        GIVEN.replace("0af7651916cd43dd8448eb211c80319c", "0" * 32),
        f"{GIVEN}\n",
    ],
)
def test_whatever_else_is_none(given: object) -> None:
    assert TraceContext.parse(given) is None


def test_a_span_is_known_by_what_it_is_about() -> None:
    """So it is the same, whoever computes it, and another one for anything else."""
    root = TraceContext.root("default", "session:a", "run-1")
    assert root == TraceContext.root("default", "session:a", "run-1")
    assert root != TraceContext.root("default", "session:a", "run-2")
    child = root.child("call", "1")
    assert child == root.child("call", "1")
    assert (child.trace_id, child.flags) == (root.trace_id, root.flags)
    assert len({root.span_id, child.span_id, root.child("call", "2").span_id}) == 3
    assert TraceContext.parse(str(child)) == child
