"""A session's log as a tree of entries, and the views of its paths.

Pure: no I/O, no clock. Whatever the log holds, nothing here raises.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from perdure import tree, views
from perdure.codec import encode_entry
from perdure.entries import Entry, MessageEntry
from perdure.errors import EntryEncodeError
from perdure.messages import Message
from perdure.tree import TreeNode
from perdure.views import Projection

__all__ = ["Transcript", "TreeNode"]


class Transcript:
    """The entries of a log, in append order.

    The first entry with an ID stands for it in paths and as a parent; an entry without an ID is
    neither the leaf nor a parent.
    """

    def __init__(self, entries: Iterable[Entry] = ()) -> None:
        self._entries: list[Entry] = []
        self._index: dict[str, Entry] = {}
        self._leaf_id = ""
        self._sized = 0
        self._size_bytes = 0
        self._recent_path: list[Entry] = []
        self._recent_view: Projection | None = None
        self.extend(entries)

    def extend(self, entries: Iterable[Entry]) -> None:
        """Add entries that were appended to the log."""
        added = list(entries)
        self._entries += added
        for entry in added:
            if entry.id:
                self._index.setdefault(entry.id, entry)
                self._leaf_id = entry.id

    @property
    def entries(self) -> Sequence[Entry]:
        """All entries, in append order, duplicates and those without an ID included."""
        return self._entries

    @property
    def leaf_id(self) -> str:
        """The ID of the last appended entry that has one; empty in an empty log."""
        return self._leaf_id

    @property
    def size_bytes(self) -> int:
        """What the lines of the log take, newlines not counted."""
        for entry in self._entries[self._sized :]:
            self._size_bytes += _line_size(entry)
        self._sized = len(self._entries)
        return self._size_bytes

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, entry_id: object) -> bool:
        return entry_id in self._index

    def get(self, entry_id: str) -> Entry | None:
        """The entry of that ID."""
        return self._index.get(entry_id)

    def leaves(self) -> list[str]:
        """The IDs of the entries that no other one with an ID follows, in append order."""
        parents = {
            parent_id
            for entry_id, entry in self._index.items()
            if (parent_id := entry.parent_id) != entry_id
        }
        return [entry_id for entry_id in self._index if entry_id not in parents]

    def path(self, leaf_id: str | None = None) -> list[Entry]:
        """The entries from the root to the leaf, or to the last appended entry.

        Empty for an ID that is not in the log. A parent that is not there, or that is on the
        path already, ends the walk.
        """
        return list(self._path(leaf_id))

    def model_view(
        self, leaf_id: str | None = None, *, ephemeral: Sequence[MessageEntry] = ()
    ) -> list[Message]:
        """What a model is sent of the path: compacted, repaired, valid for a provider.

        `ephemeral` are messages of the current run, which are shown after their parents.
        """
        path = self._path(leaf_id)
        if ephemeral:
            return views.model_view(path, ephemeral)
        self._recent_view = Projection.of(path, self._recent_view)
        return self._recent_view.messages

    def transcript_view(self, leaf_id: str | None = None) -> list[Entry]:
        """What a person reads of the path: no meta messages, custom entries kept."""
        return views.transcript_view(self._path(leaf_id))

    def tree(self) -> list[TreeNode]:
        """The roots of the tree; every entry of the log is in it once."""
        return tree.tree_of(self._entries)

    def _path(self, leaf_id: str | None) -> list[Entry]:
        if leaf_id is None:
            leaf_id = self._leaf_id
        index = self._index
        recent = self._recent_path
        recent_id = recent[-1].id if recent else ""
        upwards: list[Entry] = []
        seen: set[str] = set()
        entry_id = leaf_id
        while entry_id != recent_id and entry_id not in seen and entry_id in index:
            seen.add(entry_id)
            entry = index[entry_id]
            upwards.append(entry)
            entry_id = entry.parent_id
        upwards.reverse()
        if recent and entry_id == recent_id:
            path = recent + upwards if upwards else recent
        else:
            path = upwards
        # A path that ends at a real root stays what it is, whatever is appended.
        if path and not path[0].parent_id:
            self._recent_path = path
        return path


def _line_size(entry: Entry) -> int:
    if (line := entry.source_line) is not None:
        return len(line)
    try:
        return len(encode_entry(entry))
    except EntryEncodeError:
        return 0
