"""Stores over another have what it has beside the contract, and nothing more."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from perdure.encryption import Keys
from perdure.entries import SessionRecord
from perdure.errors import SessionExistsError, SessionNotFoundError
from perdure.stores import EncryptedStore, FileStore, MemoryStore, PostgresStore, TenantStore
from perdure.stores.contract import Store
from perdure.stores.copying import Copied, copy_sessions
from perdure.stores.extensions import path_loader
from perdure.testing import check_store
from perdure.transcript import Transcript
from tests.security.conftest import OLD
from tests.stores.logs import ids, notes
from tests.stores.postgres_server import PostgresServer

WRAPPERS: list[Callable[[Store], Store]] = [
    lambda store: EncryptedStore(store, Keys({"k1": OLD})),
    lambda store: TenantStore(store, "acme"),
    lambda store: EncryptedStore(TenantStore(store, "acme"), Keys({"k1": OLD})),
]
over = pytest.mark.parametrize("wrapped", WRAPPERS, ids=["encrypted", "tenant", "both"])


class Bare:
    """The three operations and nothing else."""

    def __init__(self) -> None:
        kept = MemoryStore()
        self.create_session = kept.create_session
        self.load_entries = kept.load_entries
        self.append_entries = kept.append_entries


@over
async def test_what_the_store_below_lacks_is_lacking(
    wrapped: Callable[[Store], Store], tmp_path: Path
) -> None:
    """So copies, caches and the like do without, as over a store of one's own."""
    names = ("load_path", "restore_session")
    assert [hasattr(wrapped(Bare()), name) for name in names] == [False, False]
    assert [hasattr(wrapped(FileStore(tmp_path)), name) for name in names] == [False, True]
    assert path_loader(wrapped(FileStore(tmp_path))) is None


async def test_the_contract_and_paths_over_a_database(postgres: PostgresServer) -> None:
    made: list[PostgresStore] = []

    def make() -> Store:
        made.append(postgres.new_store())
        return WRAPPERS[-1](made[-1])

    assert path_loader(make()) is not None
    await check_store(make)
    for store in made:
        await store.close()


@over
async def test_a_path_comes_back_in_words_and_lies_there_as_it_should(
    postgres: PostgresServer, wrapped: Callable[[Store], Store]
) -> None:
    async with postgres.new_store() as below:
        store: Any = wrapped(below)
        await store.create_session("s")
        log = notes("e1", "e2", "e3")
        log = [log[0], *(note.with_header(parent_id="e1") for note in log[1:])]
        await store.append_entries("s", log)
        assert await store.load_path("s", "e2") == Transcript(log).path("e2")
        assert ids(await store.load_path("s", limit=1)) == ["e3"]
        with pytest.raises(SessionNotFoundError, match="session 'nobody'"):
            await store.load_path("nobody", "e1")
        if isinstance(store, TenantStore):
            return
        [session_id] = await below.list_sessions()
        rows = await below.load_path(session_id, "e2")
        assert [b"this is" in (row.source_line or b"") for row in rows] == [False, False]


@over
async def test_a_record_is_restored_with_its_time(
    wrapped: Callable[[Store], Store], tmp_path: Path
) -> None:
    source, target = FileStore(tmp_path / "from"), wrapped(FileStore(tmp_path / "to"))
    await source.create_session("parent")
    await source.create_session("child", "parent")
    await source.append_entries("child", notes("e1"))
    told: list[Copied] = []
    witness = wrapped(FileStore(tmp_path / "to"))
    await copy_sessions(source, target, witness, ["parent", "child"], told.append)
    assert [copied.problem for copied in told] == ["", ""]
    records: Any = target
    found: list[SessionRecord] = [await records.load_session(x) for x in ("parent", "child")]
    assert found == [await source.load_session(x) for x in ("parent", "child")]
    with pytest.raises(SessionExistsError, match="session 'child'"):
        await records.restore_session(found[1])
