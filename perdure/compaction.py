"""Where a compaction cuts, and what the model is asked to summarize."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from perdure.entries import Entry, MessageEntry
from perdure.messages import Message, Role
from perdure.views import kept_part, model_view

DEFAULT_PROMPT = (
    "Summarize the conversation up to here so that it can go on from the summary alone. "
    "Keep what the user wants (the latest request word for word), what was decided and why, "
    "what was done and found (names, numbers, paths, IDs), what is under way, and what comes next. "
    "Write the summary only, without a word about it."
)


@dataclass(frozen=True, slots=True)
class Cut:
    """A path in two: what is to be summarized, as a model is sent it, and where what is kept
    begins.
    """

    messages: list[Message]
    first_kept_id: str
    tokens_before: int


def find_cut(path: Sequence[Entry], keep_turns: int) -> Cut | None:
    """Cut a path before its last `keep_turns` turns; None when nothing new lies before them.

    A turn starts at a user message that is not meta, so the cut never parts a tool call from its
    result. What is to be summarized begins with the summary of the compaction before, if there was
    one, and does not go back behind it.
    """
    end = _start_of_last_turns(path, keep_turns)
    start, latest = kept_part(path)
    if not any(isinstance(entry, MessageEntry) for entry in path[start:end]):
        return None
    before = path[:end]
    if latest is not None and latest not in before:
        before = [*before, latest]
    return Cut(
        messages=model_view(before),
        first_kept_id=path[end].id if end < len(path) else "",
        tokens_before=_tokens(path),
    )


def _start_of_last_turns(path: Sequence[Entry], turns: int) -> int:
    if turns == 0:
        return len(path)
    for place in range(len(path) - 1, -1, -1):
        entry = path[place]
        if isinstance(entry, MessageEntry) and not entry.meta and entry.message.role == Role.USER:
            turns -= 1
            if turns == 0:
                return place
    return 0


def _tokens(path: Sequence[Entry]) -> int:
    """The size of the conversation as its last model call was charged for it; 0 when none says."""
    for entry in reversed(path):
        usage = entry.message.usage if isinstance(entry, MessageEntry) else None
        if usage is not None:
            return usage.input + usage.cache_read + usage.cache_write + usage.output
    return 0
