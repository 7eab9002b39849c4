"""A store that encrypts: it keeps the contract, shows the tree, and hides all else."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import count
from pathlib import Path

import pytest

from perdure import (
    CustomEntry,
    EncryptionError,
    Entry,
    EntryEncodeError,
    Transcript,
    decode_entry,
    ephemeral,
    text,
)
from perdure.encryption import Keys
from perdure.stores import EncryptedStore, FileStore, MemoryStore, open_store
from perdure.testing import check_store
from perdure.transcript_cache import Transcripts
from tests.security.conftest import NEW, OLD

FIXTURES = Path(__file__).parents[1] / "fixtures"
LOGS = sorted(FIXTURES.glob("s*.jsonl"))


async def filled(store: FileStore | MemoryStore, keys: Keys) -> EncryptedStore:
    encrypted = EncryptedStore(store, keys)
    await encrypted.create_session("s")
    first = text("the first secret").with_header(id="e1")
    await encrypted.append_entries(
        "s", [first, text("another").with_header(parent_id="e1", id="e2")]
    )
    return encrypted


async def test_it_keeps_the_contract_over_memory(keys: Keys) -> None:
    await check_store(lambda: EncryptedStore(MemoryStore(), keys))


async def test_it_keeps_the_contract_over_files(keys: Keys, tmp_path: Path) -> None:
    number = count()
    await check_store(lambda: EncryptedStore(FileStore(tmp_path / str(next(number))), keys))


@pytest.mark.parametrize("log", LOGS, ids=lambda log: log.stem)
async def test_a_log_comes_back_byte_for_byte_and_its_tree_is_seen_without_keys(
    log: Path, keys: Keys, tmp_path: Path
) -> None:
    lines = log.read_bytes().split(b"\n")[1:-1]
    entries = [decode_entry(line) for line in lines]
    files = FileStore(tmp_path)
    store = EncryptedStore(files, keys)
    await store.create_session("s")
    await store.append_entries("s", entries)

    again = EncryptedStore(FileStore(tmp_path), keys)
    assert [entry.source_line for entry in await again.load_entries("s")] == lines

    kept = await files.load_entries("s")
    headers = [(e.id, e.parent_id, str(e.created_at), e.type) for e in entries]
    assert [
        (e.id, e.parent_id, str(e.created_at), (e.model_extra or {})["entry_type"]) for e in kept
    ] == headers
    assert shape(kept) == shape(entries)
    assert Transcript(kept).model_view() == []


def shape(entries: Sequence[Entry]) -> list[tuple[str, int]]:
    transcript = Transcript(entries)
    return [(leaf, len(transcript.path(leaf))) for leaf in transcript.leaves()]


async def test_nothing_of_an_entry_is_in_the_file(keys: Keys, tmp_path: Path) -> None:
    await filled(FileStore(tmp_path), keys)
    [log] = tmp_path.iterdir()
    assert b"secret" not in log.read_bytes()
    record, line, _ = map(json.loads, log.read_text().splitlines())
    assert record["type"] == "session_init"
    assert list(line) == [  # in byte order, as other programs have custom entries
        *("created_at", "entry_type", "id", "key_id", "kind", "sealed", "type")
    ]
    assert (line["type"], line["kind"], line["entry_type"], line["key_id"]) == (
        *("custom", "perdure.encrypted", "message", "k1"),
    )


async def test_after_a_rotation_old_entries_are_read_and_new_ones_are_under_the_new_key(
    keys: Keys, tmp_path: Path
) -> None:
    files = FileStore(tmp_path)
    await filled(files, keys)
    rotated = EncryptedStore(files, Keys({"k2": NEW, "k1": OLD}))
    await rotated.append_entries("s", [text("new").with_header(id="e3", parent_id="e2")])
    assert len(Transcript(await rotated.load_entries("s")).model_view()) == 3
    kept = await files.load_entries("s")
    assert [(entry.model_extra or {})["key_id"] for entry in kept] == ["k1", "k1", "k2"]

    with pytest.raises(EncryptionError, match=r"key 'k1', and the keys here are 'k2'"):
        await EncryptedStore(files, Keys({"k2": NEW})).load_entries("s")


async def test_what_was_there_before_is_read_as_it_is(keys: Keys) -> None:
    plain = MemoryStore()
    await plain.create_session("s")
    await plain.append_entries("s", [text("before").with_header(id="e0")])
    store = EncryptedStore(plain, keys)
    await store.append_entries("s", [text("after").with_header(id="e1", parent_id="e0")])
    said = [message.text for message in Transcript(await store.load_entries("s")).model_view()]
    assert said == ["before", "after"]


@pytest.mark.parametrize("change", ["session", "id", "parent_id", "entry_type", "created_at"])
async def test_an_entry_cannot_be_passed_off_as_another(keys: Keys, change: str) -> None:
    kept = MemoryStore()
    await filled(kept, keys)
    [_, entry] = await kept.load_entries("s")
    line = entry.model_dump(mode="json", by_alias=True)
    if change == "created_at":
        line[change] = "2020-01-01T00:00:00Z"
    elif change != "session":
        line[change] = "other"
    await kept.create_session("t")
    await kept.append_entries("t" if change == "session" else "s", [entry])
    target = "t" if change == "session" else "u"
    if target == "u":
        await kept.create_session("u")
        await kept.append_entries("u", [CustomEntry.model_validate(line)])
    with pytest.raises(EncryptionError, match="cannot be decrypted"):
        await EncryptedStore(kept, keys).load_entries(target)


async def test_an_entry_that_cannot_be_stored_is_refused_before_anything_is_written(
    keys: Keys,
) -> None:
    store = EncryptedStore(MemoryStore(), keys)
    await store.create_session("s")
    spoken = text("b").with_header(id="e2")
    with pytest.raises(EntryEncodeError, match="ephemeral"):
        await store.append_entries("s", [text("a").with_header(id="e1"), ephemeral(spoken)])
    assert await store.load_entries("s") == []


async def test_another_key_under_the_same_name_opens_nothing(keys: Keys, tmp_path: Path) -> None:
    files = FileStore(tmp_path)
    await filled(files, keys)
    with pytest.raises(EncryptionError) as raised:
        await EncryptedStore(files, Keys({"k1": NEW})).load_entries("s")
    assert str(raised.value) == (
        "what was encrypted with key 'k1' cannot be decrypted with the key of that ID here: either "
        "is another one than it was"
    )
    assert raised.value.key_id == "k1"


async def test_whoever_reads_it_without_keys_is_told_and_shows_no_empty_conversation(
    keys: Keys, tmp_path: Path
) -> None:
    files = FileStore(tmp_path)
    await filled(files, keys)
    with pytest.raises(EncryptionError) as raised:
        await Transcripts(files).latest("s")
    assert str(raised.value) == (
        "session 's' is kept encrypted, under key 'k1', and this store does not decrypt it: name "
        "the store as encrypted:…, or wrap it in EncryptedStore, with that key in PERDURE_KEYS or "
        "PERDURE_KEYS_FILE"
    )
    assert raised.value.key_id == "k1"


async def test_a_transcript_is_brought_up_to_date_and_not_made_anew(keys: Keys) -> None:
    kept = MemoryStore()
    store = await filled(kept, keys)
    transcripts = Transcripts(store)
    before = await transcripts.latest("s")
    new = text("by another process").with_header(id="e3", parent_id="e2")
    await EncryptedStore(kept, keys).append_entries("s", [new])
    after = await transcripts.latest("s")
    assert after is before
    assert [message.text for message in after.model_view()][-1] == "by another process"


async def test_only_so_much_is_kept_decrypted(keys: Keys) -> None:
    store = EncryptedStore(MemoryStore(), keys, cache_size=1000)
    for number in range(5):
        await store.create_session(f"s{number}")
        await store.append_entries(f"s{number}", [text("x" * 300).with_header(id="e1")])
        await store.load_entries(f"s{number}")
    assert list(store._opened) == ["s3", "s4"]
    assert len(await store.load_entries("s0")) == 1


async def test_a_store_is_named_as_encrypted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, keys: Keys
) -> None:
    with pytest.raises(EncryptionError, match="an encrypted store needs keys; set PERDURE_KEYS"):
        open_store(f"encrypted:files:{tmp_path}")
    assert repr(open_store(f"encrypted:files:{tmp_path}", keys=keys)) == (
        f"EncryptedStore(FileStore('{tmp_path}'), Keys(ids=['k1']))"
    )
    monkeypatch.setenv("PERDURE_KEYS", "k9:" + "A" * 43 + "=")
    assert "k9" in repr(open_store("encrypted:memory:"))


async def test_records_and_lists_are_those_of_the_store_below(keys: Keys, tmp_path: Path) -> None:
    store = await filled(FileStore(tmp_path), keys)
    await store.create_session("child", "s")
    record = await store.load_session("child")
    assert (record.id, record.parent_id) == ("child", "s")
