"""What a model and what a person see of a path, from its root to its leaf."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Self

from perdure.entries import CompactionEntry, Entry, MessageEntry
from perdure.messages import Message, OpaqueBlock, Role, TextBlock
from perdure.repair import repaired

_SPEAKERS: Final = frozenset({Role.USER.value, Role.ASSISTANT.value})
_ROLES: Final = _SPEAKERS | {Role.TOOL_RESULT.value}


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
    placed = _with_ephemeral(path, ephemeral) if ephemeral else path
    return Projection.of(placed).messages


@dataclass(frozen=True, slots=True)
class Projection:
    """A model's view of a path, and what of it remains when the path grows.

    Only what a speaker says closes the results of the calls before it. So the view is settled up
    to the last speaker, whatever comes after; nothing but another compaction changes that.
    """

    leaf: Entry | None
    length: int
    settled: list[Message]
    settled_length: int
    unsettled: list[Message]

    @classmethod
    def of(cls, path: Sequence[Entry], previous: Projection | None = None) -> Self:
        """The projection of a path; `previous` is that of another, perhaps its beginning."""
        if previous is not None and previous._continues_in(path):
            settled, start = previous.settled, previous.settled_length
        else:
            settled, start = _compacted(path)
        middle = _last_speaker(path, start)
        if middle > start:
            settled = settled + repaired(_messages(path[start:middle]))
        unsettled = repaired(_messages(path[middle:]))
        return cls(path[-1] if path else None, len(path), settled, middle, unsettled)

    @property
    def messages(self) -> list[Message]:
        """The whole view."""
        return self.settled + self.unsettled

    def _continues_in(self, path: Sequence[Entry]) -> bool:
        # Paths are walks along the same parents: where they share an entry they share the rest.
        return (
            0 < self.length <= len(path)
            and path[self.length - 1] is self.leaf
            and not any(isinstance(entry, CompactionEntry) for entry in path[self.length :])
        )


def _compacted(path: Sequence[Entry]) -> tuple[list[Message], int]:
    """What stands for the part of the path that a compaction cuts off, and where the rest is."""
    start, compaction = kept_part(path)
    if compaction is None:
        return [], 0
    ephemeral = [entry for entry in path[:start] if _is_ephemeral(entry)]
    return [_summary(compaction), *_messages(ephemeral)], start


def _last_speaker(path: Sequence[Entry], start: int) -> int:
    for position in range(len(path) - 1, start, -1):
        if _speaks(path[position]):
            return position
    return start


def kept_part(path: Sequence[Entry]) -> tuple[int, CompactionEntry | None]:
    """Where the kept part of the path starts, and the compaction that says so."""
    for index in range(len(path) - 1, -1, -1):
        compaction = path[index]
        if isinstance(compaction, CompactionEntry):
            for start in range(index):
                if path[start].id == compaction.first_kept_id:
                    return start, compaction
            return index + 1, compaction
    return 0, None


def holds_view(path_end: Sequence[Entry], wanted_ids: Iterable[str] = ()) -> bool:
    """Whether the end of a path is enough to tell the model view of all of it: it holds what the
    latest compaction keeps, and the entries of these IDs, which ephemeral messages stand after.
    """
    ids = {entry.id for entry in path_end}
    for entry in reversed(path_end):
        if isinstance(entry, CompactionEntry):
            return ids.issuperset(filter(None, (entry.first_kept_id, *wanted_ids)))
    return False


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
            outline = entry.outline
            if outline.role in _ROLES:
                message = entry.message
                messages.append(_without_opaque(message) if outline.has_opaque else message)
    return messages


def _without_opaque(message: Message) -> Message:
    content = tuple(block for block in message.content if not isinstance(block, OpaqueBlock))
    return message.model_copy(update={"content": content})


def _with_ephemeral(path: Sequence[Entry], ephemeral: Sequence[MessageEntry]) -> list[Entry]:
    by_parent: dict[str, list[Entry]] = {}
    for message in ephemeral:
        by_parent.setdefault(message.parent_id, []).append(message)
    placed = by_parent.pop("", [])
    waiting: list[Entry] = []
    for entry in path:
        # A message after the parent closes the stretch in which results may still follow it.
        if waiting and _speaks(entry):
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


def _speaks(entry: Entry) -> bool:
    return isinstance(entry, MessageEntry) and entry.outline.role in _SPEAKERS
