"""The verbs that change a session, and how their outcome is told."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from perdure.cli.connection import check_store, existing, is_running, running, sessions_of
from perdure.cli.place import Place
from perdure.cli.screen import one_line, out
from perdure.cli.stored import entry_id, record_of
from perdure.codec import encode_entry, entry_from_json, loads_json
from perdure.entries import Entry
from perdure.errors import CommandError, EntryDecodeError, JsonError
from perdure.transcript import Transcript


def append(place: Place, entries: Sequence[Entry], *, agent: str | None, as_json: bool) -> None:
    """Record entries without a run; the session is created when it is not there."""

    async def work() -> None:
        sessions = await sessions_of(place)
        session = await sessions.open(place.session_id, agent=agent, instance=place.instance)
        await check_store(sessions, place)
        stored = await session.append(*entries)
        told = {
            "session_id": session.id,
            "entries": [loads_json(encode_entry(entry)) for entry in stored],
        }
        _tell(as_json, told, *(one_line(entry.id) for entry in stored))

    asyncio.run(work())


def branch(place: Place, target: str, *, before: bool, as_json: bool) -> None:
    """Move the leaf. Raises EntryNotFoundError, with nothing moved."""

    async def work() -> None:
        sessions = await sessions_of(place)
        session = await existing(sessions, place)
        await check_store(sessions, place)
        transcript = Transcript(await session.entries())
        leaf_id = entry_id(transcript, target)
        if before:
            # An unknown one is left to the session, which says so.
            entry = transcript.get(leaf_id)
            leaf_id = entry.parent_id if entry is not None else leaf_id
        await session.branch(leaf_id)
        place_told = one_line(leaf_id) or "before the first entry"
        _tell(as_json, {"session_id": session.id, "leaf_id": leaf_id}, f"leaf: {place_told}")

    asyncio.run(work())


def fork(place: Place, child_id: str, *, at: str | None, as_json: bool) -> None:
    """Make a child session. Raises SessionExistsError, EntryNotFoundError."""

    async def work() -> None:
        sessions = await sessions_of(place)
        session = await existing(sessions, place)
        if at is not None:
            await check_store(sessions, place)
        at_id = None if at is None else entry_id(Transcript(await session.entries()), at)
        child = await session.fork(child_id, at=at_id)
        leaf_id = await child.leaf_id()
        told = {"session_id": child.id, "parent_id": session.id, "leaf_id": leaf_id}
        _tell(as_json, told, f"forked to {one_line(child.id)}, leaf: {one_line(leaf_id) or '-'}")

    asyncio.run(work())


def compact(place: Place, *, keep_turns: int, prompt: str | None, as_json: bool) -> None:
    """Have the path summarized. Raises ModelError when the model fails."""

    async def work() -> None:
        sessions = await sessions_of(place)
        session = await existing(sessions, place)
        await check_store(sessions, place)
        entry = await session.compact(keep_turns=keep_turns, prompt=prompt)
        wire = None if entry is None else loads_json(encode_entry(entry))
        line = "nothing to summarize" if entry is None else f"summary: {one_line(entry.summary)}"
        _tell(as_json, {"session_id": session.id, "entry": wire}, line)

    asyncio.run(work())


def cancel(place: Place, run_id: str | None, *, as_json: bool) -> None:
    """Stop a run. Raises CommandError when there is nothing to cancel."""

    async def work() -> None:
        session = await running(await sessions_of(place), place)
        await session.cancel(run_id)
        told = {"session_id": session.id, "run_id": run_id}
        _tell(as_json, told, "cancelled; the session is ready for the next run")

    asyncio.run(work())


def close(place: Place, *, as_json: bool) -> None:
    """End the session's workflow; one that does not run is closed already."""

    async def work() -> None:
        sessions = await sessions_of(place)
        was_running = await is_running(sessions.client, place)
        if was_running:
            await (await running(sessions, place)).close()
        else:
            await record_of(sessions.store, place.session_id)
        told = {"session_id": place.session_id, "was_running": was_running}
        _tell(as_json, told, "closed; the store keeps it" if was_running else "it was not running")

    asyncio.run(work())


def read_entries(texts: Sequence[str], lines: Sequence[str], *, meta: bool) -> list[Entry]:
    """The entries that a command line gives: texts of a person, and JSON as in a log.

    Raises CommandError for JSON that is no entry.
    """
    from perdure.entries import text

    entries: list[Entry] = [text(said, meta=meta) for said in texts]
    for line in lines:
        try:
            value = loads_json(line.encode())
            entries.append(entry_from_json({"id": "", "created_at": _NO_TIME, **value}))
        except (EntryDecodeError, JsonError, TypeError, UnicodeEncodeError) as error:
            raise CommandError(f"{line[:60]!r} is no entry: {error}") from None
    return entries


_NO_TIME = "0001-01-01T00:00:00Z"


def _tell(as_json: bool, value: dict[str, Any], *lines: str) -> None:
    screen = out()
    if as_json:
        screen.json(value)
        return
    for line in lines:
        screen.line(line)
