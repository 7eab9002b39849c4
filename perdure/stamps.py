"""Headers for new entries: who they are, what they follow, when they came to be."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from perdure.codec import dumps_json
from perdure.protocol import Appended, EntryJson


@dataclass(frozen=True, slots=True)
class Stamped:
    """Entries with their headers: those to store, in a chain, and those that live for one run
    only.
    """

    stored: list[EntryJson]
    ephemeral: list[EntryJson]
    leaf_id: str

    def date(self, appended: Appended) -> None:
        """Give entries that an earlier attempt had stored the time that they have in the log."""
        for entry in self.stored:
            entry["created_at"] = appended.stored_at.get(entry["id"], entry["created_at"])


def stamp(
    entries: Sequence[EntryJson],
    *,
    session_id: str,
    command_id: str,
    parent_id: str,
    created_at: str,
) -> Stamped:
    """Chain new entries to the leaf.

    An ID is a digest of everything that makes the entry what it is: session, command, parent and
    content. A workflow task that is lost after the store took its append is done again, perhaps
    with another command before this one: the same entry in the same place then has the same ID, so
    that the append adds nothing, and anything else has another ID, so that nothing is taken for
    what it is not. Ephemeral entries hang off the leaf without becoming it.
    """
    stored: list[EntryJson] = []
    ephemeral: list[EntryJson] = []
    leaf_id = parent_id
    for number, entry in enumerate(entries):
        body = {key: value for key, value in entry.items() if key not in _HEADER}
        entry_id = _digest(session_id, command_id, str(number), leaf_id, dumps_json(body))
        header: EntryJson = {"type": entry.get("type"), "id": entry_id}
        if leaf_id:
            header["parent_id"] = leaf_id
        header["created_at"] = created_at
        if entry.get("ephemeral") is True:
            ephemeral.append(header | body)
        else:
            stored.append(header | body)
            leaf_id = entry_id
    return Stamped(stored, ephemeral, leaf_id)


_HEADER = frozenset({"type", "id", "parent_id", "created_at", "ephemeral"})


def _digest(*parts: str | bytes) -> str:
    digest = hashlib.sha256()
    for part in parts:
        data = part if isinstance(part, bytes) else part.encode("utf-8", "surrogatepass")
        digest.update(len(data).to_bytes(8, "big"))
        digest.update(data)
    return digest.hexdigest()[:16]
