"""Which sessions a store has: an operation that the stores of perdure have beside the contract."""

from __future__ import annotations

from pathlib import Path

import pytest

from perdure.errors import StoreError
from perdure.stores import FileStore, MemoryStore
from tests.stores.logs import note

IDS = ["org/team@example.com", "..", "user-42", "user-7", "a%2Fb", "Straße"]


@pytest.fixture(params=["files", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> FileStore | MemoryStore:
    return FileStore(tmp_path / "sessions") if request.param == "files" else MemoryStore()


async def test_all_sessions_are_listed_in_the_order_of_their_ids(
    store: FileStore | MemoryStore,
) -> None:
    assert await store.list_sessions() == []
    for session_id in IDS:
        await store.create_session(session_id)
    assert await store.list_sessions() == sorted(IDS)


async def test_a_prefix_is_one_of_the_id_and_not_of_the_file(
    store: FileStore | MemoryStore,
) -> None:
    for session_id in IDS:
        await store.create_session(session_id)
    assert await store.list_sessions(prefix="user-") == ["user-42", "user-7"]
    assert await store.list_sessions(prefix="org/") == ["org/team@example.com"]
    assert await store.list_sessions(prefix="org%2F") == []


async def test_what_is_no_log_is_not_listed(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    await store.create_session("real")
    await store.append_entries("real", [note("e1")])
    (tmp_path / "real.jsonl.torn-1").touch()
    (tmp_path / ".new-0123456789abcdef").touch()
    (tmp_path / "notes.txt").touch()
    (tmp_path / "folder.jsonl").mkdir()
    (tmp_path / "link.jsonl").symlink_to(tmp_path / "real.jsonl")
    Path(tmp_path, "caf\udce9.jsonl").touch()
    assert await store.list_sessions() == ["real"]


async def test_a_folder_that_cannot_be_listed_is_a_clear_error(tmp_path: Path) -> None:
    store = FileStore(tmp_path / "sessions")
    (tmp_path / "sessions").touch()
    with pytest.raises(StoreError, match="name a folder for the store"):
        await store.list_sessions()
