"""A transcript in memory: that of a whole log, or of some paths of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from perdure.entries import Entry
from perdure.transcript import Transcript

Enough = Callable[[Sequence[Entry]], bool]
"""Whether the end of a path is all that is needed of it."""


class KeptTranscript:
    """A log's transcript, or a part of one: the ends of some paths.

    A part has its entries in the order in which they were loaded, so nothing but paths may be asked
    of its transcript.
    """

    def __init__(self, transcript: Transcript | None = None) -> None:
        self.is_whole = transcript is not None
        self.transcript = transcript if transcript is not None else Transcript()
        self._beginnings: set[str] = set()

    def has_path(self, leaf_id: str, enough: Enough | None) -> bool:
        """Whether the path to the leaf is here, from its beginning on or as much as is enough."""
        path = self.transcript.path(leaf_id)
        if not path:
            return False
        first = path[0]
        if not first.parent_id or first.id in self._beginnings:
            return True
        # A walk that stops before an entry that is here has come full circle.
        return first.parent_id in self.transcript or (enough is not None and enough(path))

    def first_of(self, leaf_id: str) -> Entry | None:
        """The first entry of the path to the leaf that is here."""
        path = self.transcript.path(leaf_id)
        return path[0] if path else None

    def add(self, entries: Iterable[Entry]) -> None:
        """Add those of the entries that are not here."""
        self.transcript.extend([entry for entry in entries if entry.id not in self.transcript])

    def note_beginning(self, entry: Entry) -> None:
        """Paths begin with this entry: the log has no parent of it."""
        self._beginnings.add(entry.id)
