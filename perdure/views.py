"""What a model and what a person see of a path, from its root to its leaf."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from perdure.entries import CompactionEntry, Entry, MessageEntry
from perdure.messages import Message, OpaqueBlock, Role, TextBlock
from perdure.repair import repaired

_ROLES: Final = frozenset(role.value for role in Role)


def transcript_view(path: Sequence[Entry]) -> list[Entry]:
    """What a person reads: everything but messages that are meta or ephemeral."""
    return [
        entry
        for entry in path
        if not (isinstance(entry, MessageEntry) and (entry.meta or entry.ephemeral))
    ]


def model_view(path: Sequence[Entry], ephemeral: Sequence[MessageEntry] = ()) -> list[Message]:
    """What a model is sent, always something that a provider accepts.

    The latest compaction on the path stands for what lies before its first kept entry; if that
    entry is not before it on the path, for everything before it. Ephemeral messages stand right
    after their parent, yet never between a call and its results, and are never compacted away:
    one whose parent is left out comes first of what is kept, one whose parent is not on the path
    comes last.
    """
    if ephemeral:
        path = _with_ephemeral(path, ephemeral)
    start, compaction = _kept(path)
    messages: list[Message] = []
    if compaction is not None:
        messages.append(_summary(compaction))
        messages += _messages(entry for entry in path[:start] if _is_ephemeral(entry))
    messages += _messages(path[start:] if start else path)
    return repaired(messages)


def _kept(path: Sequence[Entry]) -> tuple[int, CompactionEntry | None]:
    """Where the kept part of the path starts, and the compaction that says so."""
    for index in range(len(path) - 1, -1, -1):
        compaction = path[index]
        if isinstance(compaction, CompactionEntry):
            for start in range(index):
                if path[start].id == compaction.first_kept_id:
                    return start, compaction
            return index + 1, compaction
    return 0, None


def _summary(compaction: CompactionEntry) -> Message:
    return Message(
        role=Role.USER.value,
        content=[TextBlock(text=compaction.summary)],
        timestamp=compaction.created_at,
    )


def _messages(entries: Iterable[Entry]) -> list[Message]:
    messages: list[Message] = []
    for entry in entries:
        if isinstance(entry, MessageEntry):
            message = entry.message
            outline = message.outline
            if outline.role in _ROLES:
                messages.append(_without_opaque(message) if outline.has_opaque else message)
    return messages


def _without_opaque(message: Message) -> Message:
    content = tuple(block for block in message.content if not isinstance(block, OpaqueBlock))
    return message.model_copy(update={"content": content})


def _with_ephemeral(path: Sequence[Entry], ephemeral: Sequence[MessageEntry]) -> list[Entry]:
    by_parent: dict[str, list[Entry]] = {}
    for entry in ephemeral:
        by_parent.setdefault(entry.parent_id, []).append(entry)
    placed = by_parent.pop("", [])
    waiting: list[Entry] = []
    for entry in path:
        # A message after the parent closes the stretch in which results may still follow it.
        if waiting and isinstance(entry, MessageEntry) and entry.message.outline.role in _SPEAKERS:
            placed += waiting
            waiting = []
        placed.append(entry)
        if entry.id:
            waiting += by_parent.pop(entry.id, [])
    placed += waiting
    for entries in by_parent.values():
        placed += entries
    return placed


def _is_ephemeral(entry: Entry) -> bool:
    return isinstance(entry, MessageEntry) and entry.ephemeral


_SPEAKERS: Final = frozenset({Role.USER.value, Role.ASSISTANT.value})
