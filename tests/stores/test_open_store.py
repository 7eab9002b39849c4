"""Stores by the text that names them, as the environment does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from perdure.errors import StoreError
from perdure.stores import FileStore, MemoryStore, PostgresStore, Store, given_store, open_store


def test_a_folder_is_named_by_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    store = open_store("files:sessions/of mine")
    monkeypatch.chdir("/")
    assert isinstance(store, FileStore)
    assert store.root == tmp_path / "sessions" / "of mine"


def test_the_home_folder_has_its_short_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    store = open_store("files:~/sessions")
    assert isinstance(store, FileStore)
    assert store.root == tmp_path / "sessions"


async def test_memory_is_a_fresh_store_each_time() -> None:
    first, second = open_store("memory:"), open_store("memory:")
    await first.create_session("s")
    await second.create_session("s")
    assert isinstance(first, MemoryStore)
    assert isinstance(first, Store)


@pytest.mark.parametrize("spec", ["", "memory:x", "sessions", "/var/lib", "redis://pw@h"])
def test_a_text_that_names_no_store_is_refused_with_what_is_accepted(spec: str) -> None:
    kind = spec.partition(":")[0]
    with pytest.raises(StoreError) as caught:
        open_store(spec)
    assert str(caught.value) == (
        f"{kind!r} is no kind of store; name a store as files:DIR, postgresql://… or memory:"
    )


def test_files_need_a_folder() -> None:
    with pytest.raises(StoreError) as caught:
        open_store("files:")
    assert str(caught.value) == (
        "'files:' names no folder; write files:DIR, for example files:./sessions"
    )


@pytest.mark.parametrize("given", [5, None, FileStore, object()])
def test_what_has_not_the_three_operations_is_no_store(given: Any) -> None:
    with pytest.raises(StoreError, match="is no store: it needs create_session, load_entries and"):
        given_store(given)


@pytest.mark.parametrize("spec", ["postgresql://me:secret@db/sessions", "postgres://db/sessions"])
def test_postgresql_is_named_by_a_url_and_not_connected_to_before_it_is_used(spec: str) -> None:
    store = open_store(spec)
    assert isinstance(store, PostgresStore)
    assert repr(store) == "PostgresStore('db/sessions', schema='perdure')"


def test_a_file_is_no_folder_for_sessions(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match="file is not a folder; name a folder for the store"):
        open_store(f"files:{tmp_path}/file")
