"""Stores that break one promise each, to see that the kit says which."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from perdure.codec import decode_entries, encode_entry
from perdure.entries import Entry, MessageEntry, OpaqueEntry, SessionRecord
from perdure.errors import EntryEncodeError, SessionExistsError, SessionNotFoundError
from perdure.stores import MemoryStore
from perdure.stores.lines import storable_lines
from perdure.transcript import Transcript


class ReplacesASession(MemoryStore):
    async def create_session(self, session_id: str, parent_id: str = "") -> None:
        self._logs.pop(session_id, None)
        self._records.pop(session_id, None)
        await super().create_session(session_id, parent_id)


class LetsEveryCreatorWin(MemoryStore):
    async def create_session(self, session_id: str, parent_id: str = "") -> None:
        if session_id in self._logs:
            raise SessionExistsError(session_id)
        await asyncio.sleep(0)
        self._records.pop(session_id, None)
        await super().create_session(session_id, parent_id)


class CreatesOnAppend(MemoryStore):
    async def append_entries(self, session_id: str, entries: Sequence[Entry]) -> None:
        if session_id not in self._logs:
            await self.create_session(session_id)
        await super().append_entries(session_id, entries)


class FindsNothingForTheUnknown(MemoryStore):
    async def load_entries(self, session_id: str) -> list[Entry]:
        try:
            return await super().load_entries(session_id)
        except SessionNotFoundError:
            return []


class IgnoresCase(MemoryStore):
    async def create_session(self, session_id: str, parent_id: str = "") -> None:
        await super().create_session(session_id.lower(), parent_id)

    async def load_entries(self, session_id: str) -> list[Entry]:
        return await super().load_entries(session_id.lower())

    async def append_entries(self, session_id: str, entries: Sequence[Entry]) -> None:
        await super().append_entries(session_id.lower(), entries)


class SortsByTime(MemoryStore):
    async def load_entries(self, session_id: str) -> list[Entry]:
        return sorted(await super().load_entries(session_id), key=lambda entry: entry.created_at)


class LeavesOutWhatItDoesNotKnow(MemoryStore):
    async def load_entries(self, session_id: str) -> list[Entry]:
        entries = await super().load_entries(session_id)
        return [entry for entry in entries if not isinstance(entry, OpaqueEntry)]


class ForgetsMeta(MemoryStore):
    async def append_entries(self, session_id: str, entries: Sequence[Entry]) -> None:
        plain = [
            entry.model_copy(update={"meta": False}) if isinstance(entry, MessageEntry) else entry
            for entry in entries
        ]
        await super().append_entries(session_id, plain)


class CutsTextAtNul(MemoryStore):
    async def append_entries(self, session_id: str, entries: Sequence[Entry]) -> None:
        await super().append_entries(session_id, [_without(entry, rb"\u0000") for entry in entries])


class RoundsNumbers(MemoryStore):
    async def append_entries(self, session_id: str, entries: Sequence[Entry]) -> None:
        big, rounded = b"12345678901234567890", b"12345678901234567000"
        await super().append_entries(
            session_id, [_without(entry, big, rounded) for entry in entries]
        )


class AppendsOneByOne(MemoryStore):
    """Also lets others in between."""

    async def append_entries(self, session_id: str, entries: Sequence[Entry]) -> None:
        await super().append_entries(session_id, [])
        for entry in entries:
            await asyncio.sleep(0)
            await super().append_entries(session_id, [entry])


class StoresWithoutId(MemoryStore):
    async def append_entries(self, session_id: str, entries: Sequence[Entry]) -> None:
        named = [e if e.id else e.with_header(id=f"made-up-{n}") for n, e in enumerate(entries)]
        await super().append_entries(session_id, named)


class StoresEphemeral(MemoryStore):
    async def append_entries(self, session_id: str, entries: Sequence[Entry]) -> None:
        stored = [
            entry.model_copy(update={"ephemeral": False})
            if isinstance(entry, MessageEntry) and entry.ephemeral
            else entry
            for entry in entries
        ]
        await super().append_entries(session_id, stored)


class RefusesToAppendNothing(MemoryStore):
    async def append_entries(self, session_id: str, entries: Sequence[Entry]) -> None:
        await super().append_entries(session_id, entries)
        if not entries:
            raise EntryEncodeError("there is nothing to append")


class ListStore(MemoryStore):
    """Keeps lists of lines, and so every way to get repetition wrong."""

    def __init__(self) -> None:
        super().__init__()
        self.lists: dict[str, list[bytes]] = {}

    async def create_session(self, session_id: str, parent_id: str = "") -> None:
        await super().create_session(session_id, parent_id)
        self.lists[session_id] = []

    async def load_entries(self, session_id: str) -> list[Entry]:
        await super().load_entries(session_id)
        return decode_entries(self.lists[session_id])

    async def append_entries(self, session_id: str, entries: Sequence[Entry]) -> None:
        new = storable_lines(entries)
        known = set(self._log(session_id))
        await super().append_entries(session_id, entries)
        self.add(self.lists[session_id], [line.data for line in new.values()], new.keys() & known)

    def add(self, log: list[bytes], lines: list[bytes], known: set[str]) -> None:
        log += lines


class DoublesARetry(ListStore):
    pass


class DropsAKnownCall(ListStore):
    def add(self, log: list[bytes], lines: list[bytes], known: set[str]) -> None:
        if not known:
            log += lines


class KeepsTheLast(MemoryStore):
    async def append_entries(self, session_id: str, entries: Sequence[Entry]) -> None:
        lines = storable_lines(reversed(entries))
        log = self._log(session_id)
        for entry in entries:
            log[entry.id] = lines[entry.id].data


class KeepsTheObjects(MemoryStore):
    def __init__(self) -> None:
        super().__init__()
        self.objects: dict[str, dict[str, Entry]] = {}

    async def load_entries(self, session_id: str) -> list[Entry]:
        await super().load_entries(session_id)
        return list(self.objects.get(session_id, {}).values())

    async def append_entries(self, session_id: str, entries: Sequence[Entry]) -> None:
        await super().append_entries(session_id, entries)
        for entry in entries:
            self.objects.setdefault(session_id, {}).setdefault(entry.id, entry)


class ReturnsItsOwnList(MemoryStore):
    def __init__(self) -> None:
        super().__init__()
        self.returned: dict[str, list[Entry]] = {}

    async def load_entries(self, session_id: str) -> list[Entry]:
        entries = await super().load_entries(session_id)
        return self.returned.setdefault(session_id, entries)

    async def append_entries(self, session_id: str, entries: Sequence[Entry]) -> None:
        await super().append_entries(session_id, entries)
        self.returned.pop(session_id, None)


class LosesAnAppendToAnother(MemoryStore):
    async def append_entries(self, session_id: str, entries: Sequence[Entry]) -> None:
        before = dict(self._log(session_id))
        lines = storable_lines(entries)
        await asyncio.sleep(0)
        self._logs[session_id] = {**{key: line.data for key, line in lines.items()}, **before}
        self._logs[session_id] = {**before, **self._logs[session_id]}


class ReturnsAThousand(MemoryStore):
    async def load_entries(self, session_id: str) -> list[Entry]:
        return (await super().load_entries(session_id))[:1000]


class ForgetsTheParent(MemoryStore):
    async def load_session(self, session_id: str) -> SessionRecord:
        record = await super().load_session(session_id)
        return SessionRecord(id=record.id, created_at=record.created_at)


class ForgetsTheLimit(MemoryStore):
    async def load_path(
        self, session_id: str, leaf_id: str | None = None, *, limit: int | None = None
    ) -> list[Entry]:
        return Transcript(await self.load_entries(session_id)).path(leaf_id)


class CannotBeReached(MemoryStore):
    async def create_session(self, session_id: str, parent_id: str = "") -> None:
        raise ConnectionError("the database is down")


def _without(entry: Entry, part: bytes, other: bytes = b"") -> Entry:
    if part not in encode_entry(entry):
        return entry
    return decode_entries([encode_entry(entry).replace(part, other)])[0]
