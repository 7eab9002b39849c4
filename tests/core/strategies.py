"""Arbitrary text, JSON values, messages and logs."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from perdure.entries import CompactionEntry, CustomEntry, Entry, MessageEntry
from perdure.messages import (
    ContentBlock,
    FileBlock,
    ImageBlock,
    Message,
    OpaqueBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolOutput,
)
from perdure.timestamps import Timestamp
from perdure.usage import Cost, Usage


def _with_pairs_joined(text: str) -> str:
    """Two halves side by side are one character in JSON."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")


# Not `st.text` of both: it would make one alphabet of them, in which the second counts for nothing.
any_text = st.lists(
    st.characters(exclude_categories=()) | st.sampled_from('\0\n\x85\u2028<&"\\\ud800\udfff'),
    max_size=8,
).map(lambda characters: _with_pairs_joined("".join(characters)))
"""Any characters, and often those that need care: NUL and lone surrogates among them."""

# A whole float from 2^53 on is written in its shortest digits, as an integer that rounds to it.
floats = st.floats(allow_nan=False, allow_infinity=False).filter(
    lambda number: not 2**53 <= abs(number) < 1e21
)

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | floats | any_text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(any_text, inner, max_size=3),
    max_leaves=8,
)

timestamps = st.builds(
    lambda moment, digits, zone: Timestamp.parse(
        f"{moment:%H:%M:%S}".join((f"{moment.year:04d}-{moment:%m-%d}T", f".{digits:09d}{zone}"))
    ),
    st.datetimes(),
    st.integers(0, 10**9 - 1),
    st.sampled_from(["Z", "+05:30", "-03:00", "+00:00"]),
)

_flags = st.booleans()
_counts = st.integers(-(2**63), 2**63 - 1)
_amounts = floats
_objects = st.dictionaries(any_text, json_values, max_size=3)

costs = st.builds(Cost, input=_amounts, cache_write=_amounts, output_audio=_amounts)
usages = st.builds(Usage, input=st.integers(1, 2**63 - 1), output=_counts, cost=costs)

blocks: st.SearchStrategy[ContentBlock] = st.one_of(
    st.builds(TextBlock, text=any_text, signature=any_text),
    st.builds(ThinkingBlock, thinking=any_text, signature=any_text),
    st.builds(ImageBlock, data=any_text, mime_type=any_text),
    st.builds(FileBlock, data=any_text, url=any_text, file_id=any_text, filename=any_text),
    st.builds(ToolCallBlock, id=any_text, name=any_text, arguments=_objects, signature=any_text),
    st.builds(
        ToolCallBlock,
        id=any_text,
        arguments=_objects,
        server=st.just(True),
        server_type=any_text,
        output=st.builds(ToolOutput, content=st.text(min_size=1), raw=json_values, is_error=_flags),
    ),
    st.builds(OpaqueBlock, type=st.sampled_from(["video", "\ud800"]), data=json_values),
)

messages = st.builds(
    Message,
    role=st.sampled_from(["user", "assistant", "tool_result", "", "judge"]) | any_text,
    content=st.lists(blocks, max_size=3),
    api=any_text,
    provider=any_text,
    model=any_text,
    usage=st.none() | usages,
    stop_reason=any_text,
    error=any_text,
    tool_call_id=any_text,
    tool_name=any_text,
    is_error=_flags,
    timestamp=st.none() | timestamps,
)

_header: dict[str, st.SearchStrategy[Any]] = {
    "id": any_text,
    "parent_id": any_text,
    "created_at": timestamps,
}
_unknown_keys = st.dictionaries(
    any_text.map(lambda key: f"x-{key}"), json_values, max_size=2
)  # no key that perdure knows starts like that

entries: st.SearchStrategy[Entry] = st.one_of(
    st.builds(
        lambda unknown, **keys: MessageEntry(**keys, **unknown),
        _unknown_keys,
        **_header,
        message=messages,
        meta=_flags,
    ),
    st.builds(
        lambda unknown, **keys: CompactionEntry(**keys, **unknown),
        _unknown_keys,
        **_header,
        summary=any_text,
        first_kept_id=any_text,
        tokens_before=_counts,
    ),
    st.builds(
        lambda unknown, **keys: CustomEntry(**keys, **unknown),
        _unknown_keys,
        **_header,
        kind=any_text,
    ),
)
