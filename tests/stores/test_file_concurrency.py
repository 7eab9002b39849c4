"""Many at one log, in one process: who waits for whom."""

from __future__ import annotations

import asyncio
import fcntl
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from perdure.codec import encode_entry
from perdure.stores import FileStore
from perdure.stores.lanes import Lanes
from tests.stores.logs import ids, log_of, note, notes, write_log


@contextmanager
def locked(path: Path) -> Iterator[int]:
    """The log as another process has it that is appending."""
    descriptor = os.open(path, os.O_RDWR | os.O_APPEND)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield descriptor
    finally:
        os.close(descriptor)


async def test_appends_and_loads_of_a_session_wait_for_no_other_session(tmp_path: Path) -> None:
    """2.6: however many wait for a log that somebody holds."""
    store = FileStore(tmp_path)
    for session_id in ("held", "free"):
        await store.create_session(session_id)
    with locked(tmp_path / "held.jsonl"):
        waiting = [
            asyncio.create_task(work)
            for number in range(200)
            for work in (
                store.append_entries("held", [note(f"e{number}")]),
                store.load_entries("held"),
            )
        ]
        await store.append_entries("free", notes("e1"))
        assert ids(await store.load_entries("free")) == ["e1"]
        await store.create_session("new")
        assert not any(task.done() for task in waiting)
    await asyncio.gather(*waiting)
    assert ids(await store.load_entries("held")) == [f"e{number}" for number in range(200)]


async def test_appends_of_a_process_happen_in_the_order_of_their_calls(tmp_path: Path) -> None:
    """2.5: entries come back in append order."""
    store = FileStore(tmp_path)
    await store.create_session("s")
    await asyncio.gather(*(store.append_entries("s", [note(f"e{n}")]) for n in range(50)))
    assert ids(await store.load_entries("s")) == [f"e{number}" for number in range(50)]


async def test_two_stores_in_one_process_exclude_each_other(tmp_path: Path) -> None:
    """2.1: each call in one piece, nothing lost."""
    stores = [FileStore(tmp_path), FileStore(tmp_path)]
    await stores[0].create_session("s")

    async def append(store: FileStore, name: str) -> None:
        for number in range(40):
            await store.append_entries("s", notes(*(f"{name}{number}-{part}" for part in "abc")))

    await asyncio.gather(*(append(store, name) for store, name in zip(stores, "xy", strict=True)))
    found = ids(await FileStore(tmp_path).load_entries("s"))
    assert found == ids(await stores[0].load_entries("s")) == ids(await stores[1].load_entries("s"))
    assert len(found) == 240
    calls = [found[start : start + 3] for start in range(0, 240, 3)]
    assert all([line[-1] for line in call] == ["a", "b", "c"] for call in calls)
    assert sorted({call[0] for call in calls}) == sorted(call[0] for call in calls)


async def test_a_load_sees_whole_appends_only(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """2.1, 2.7: a line that is being written is not torn, and what is not flushed is not there."""
    path = write_log(tmp_path, log_of(notes("e1")))
    store = FileStore(tmp_path)
    await store.load_entries("s")
    lines = b"".join(encode_entry(entry) + b"\n" for entry in notes("e2", "e3"))
    with caplog.at_level(logging.WARNING, "perdure.stores"), locked(path) as descriptor:
        os.write(descriptor, lines[:-30])
        load = asyncio.create_task(store.load_entries("s"))
        record = asyncio.create_task(store.load_session("s"))
        await store.create_session("another")  # a round through the threads
        assert not load.done()
        os.write(descriptor, lines[-30:])
    assert ids(await load) == ["e1", "e2", "e3"]
    assert (await record).id == "s"
    assert caplog.records == []


async def test_an_append_to_a_log_that_was_moved_away_meanwhile_goes_where_it_is_found(
    tmp_path: Path,
) -> None:
    """2.6: what was appended is in the file that is loaded."""
    path = write_log(tmp_path, log_of(notes("e1")))
    store = FileStore(tmp_path)
    await store.load_entries("s")
    with locked(path):
        append = asyncio.create_task(store.append_entries("s", notes("e2")))
        await store.create_session("another")  # a round through the threads
        path.rename(tmp_path / "s.old")
        write_log(tmp_path, log_of(notes("x1", "x2")))
    await append
    assert path.read_bytes() == log_of(notes("x1", "x2", "e2"))
    assert (tmp_path / "s.old").read_bytes() == log_of(notes("e1"))


async def test_a_caller_that_is_cancelled_before_its_turn_appends_nothing(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    await store.create_session("s")
    with locked(tmp_path / "s.jsonl"):
        first, second, third = [
            asyncio.create_task(store.append_entries("s", [note(name)])) for name in ("a", "b", "c")
        ]
        await store.create_session("another")  # a round through the threads
        second.cancel()
        with pytest.raises(asyncio.CancelledError):
            await second
    await asyncio.gather(first, third)
    assert ids(await store.load_entries("s")) == ["a", "c"]


async def test_lists_may_change_while_their_append_waits(tmp_path: Path) -> None:
    """2.3: what was given is taken as it was."""
    store = FileStore(tmp_path)
    await store.create_session("s")
    entries = notes("e1")
    with locked(tmp_path / "s.jsonl"):
        append = asyncio.create_task(store.append_entries("s", entries))
        await store.create_session("another")  # a round through the threads
        entries.append(note("e2"))
    await append
    assert ids(await store.load_entries("s")) == ["e1"]


async def test_a_lane_goes_on_after_a_job_that_fails() -> None:
    lanes = Lanes(1, "test")

    def fail() -> None:
        raise OSError("no")

    outcomes = await asyncio.gather(
        lanes.run(b"a", fail),
        lanes.run(b"a", lambda: 1),
        lanes.run(b"b", lambda: 2),
        return_exceptions=True,
    )
    assert [str(outcome) for outcome in outcomes] == ["no", "1", "2"]
