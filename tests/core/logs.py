"""The logs that another program wrote, and arbitrary ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from perdure.codec import decode_entries
from perdure.entries import CompactionEntry, CustomEntry, Entry, MessageEntry, OpaqueEntry
from perdure.messages import ContentBlock, Message, OpaqueBlock, TextBlock, ToolCallBlock
from perdure.timestamps import Timestamp

FIXTURES = Path(__file__).parent.parent / "fixtures"


def logged(name: str) -> list[Entry]:
    """The entries of a log among the fixtures; a torn tail is dropped."""
    _, *lines, _ = (FIXTURES / f"{name}.jsonl").read_bytes().split(b"\n")
    return decode_entries(lines)


def expected(name: str) -> dict[str, Any]:
    """What the other program read in that log."""
    found: dict[str, Any] = json.loads((FIXTURES / f"{name}.expected.json").read_text())
    return found


# A few IDs only, so that parents are found, missing, shared, repeated and run in circles.
_ids = st.sampled_from(["", *"abcdefgh"])
_parents = st.sampled_from(["", *"abcdefgh", "gone"])
_times = st.integers(0, 3).map(
    lambda nanoseconds: Timestamp.parse(f"2026-01-01T00:00:00.00000000{nanoseconds}Z")
)
_call_ids = st.sampled_from(["", "x", "y"])

_blocks: st.SearchStrategy[ContentBlock] = st.one_of(
    st.builds(TextBlock, text=st.sampled_from("abc")),
    st.builds(ToolCallBlock, id=_call_ids, name=st.sampled_from("pq")),
    st.builds(ToolCallBlock, id=_call_ids, server=st.just(True)),
    st.just(OpaqueBlock(type="video")),
)
_messages = st.builds(
    Message,
    role=st.sampled_from(["user", "assistant", "assistant", "tool_result", "tool_result", "judge"]),
    content=st.lists(_blocks, max_size=3),
    tool_call_id=_call_ids,
)


def _entries(ids: st.SearchStrategy[str], parents: st.SearchStrategy[str]) -> Any:
    header: dict[str, Any] = {"id": ids, "parent_id": parents, "created_at": _times}
    messages = st.builds(MessageEntry, **header, message=_messages, meta=st.booleans())
    return st.one_of(
        messages,
        messages,
        messages,
        st.builds(CompactionEntry, **header, summary=st.just("s"), first_kept_id=parents),
        st.builds(CustomEntry, **header, kind=st.just("note")),
        st.builds(OpaqueEntry, **header, type=st.just("vote")),
    )


strange_logs: st.SearchStrategy[list[Entry]] = st.lists(_entries(_ids, _parents), max_size=12)
"""Logs with duplicates, circles, missing parents and entries without an ID."""


@st.composite
def chains(draw: st.DrawFn) -> list[Entry]:
    """A log without branches, whose entries are named by numbers."""
    numbered = draw(st.lists(_entries(st.just(""), _parents), max_size=14))
    kept = st.integers(-1, len(numbered)).map(str)
    return [
        entry.model_copy(
            update={"id": str(number), "parent_id": str(number - 1) if number else ""}
            | ({"first_kept_id": draw(kept)} if isinstance(entry, CompactionEntry) else {})
        )
        for number, entry in enumerate(numbered)
    ]


@st.composite
def runs_of_ephemeral(draw: st.DrawFn, entries: list[Entry]) -> list[MessageEntry]:
    """Ephemeral messages that hang off entries of the log, off nothing, or off a missing one."""
    parents = st.sampled_from(["", "gone", *(entry.id for entry in entries)])
    return draw(
        st.lists(
            st.builds(
                MessageEntry,
                id=st.just("eph"),
                parent_id=parents,
                message=st.builds(Message, role=st.just("user"), content=st.text(max_size=3)),
                ephemeral=st.just(True),
            ),
            max_size=3,
        )
    )
