"""Session IDs and the files that they name."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.errors import InvalidSessionIdError
from perdure.stores import FileStore
from perdure.stores.file_names import log_file_name, session_id_of_log
from tests.stores.logs import ids, note

any_id = st.text(st.characters(exclude_categories=["Cc", "Cs"]), min_size=1, max_size=40)
# IDs that are near to each other, and to what encoding makes of them.
tricky_id = st.text(st.sampled_from("./\\%25Fa"), min_size=1, max_size=8)


@pytest.mark.parametrize(
    "session_id,name",
    [
        ("user-42", "user-42.jsonl"),
        ("a:b c@d", "a:b c@d.jsonl"),
        (".hidden", ".hidden.jsonl"),
        ("...", "....jsonl"),
        ("-rf", "-rf.jsonl"),
        ("100%", "100%.jsonl"),
        ("Straße", "Straße.jsonl"),
        ("org/team@example.com", "org%2Fteam%40example.com.jsonl"),
        ("a\\b", "a%5Cb.jsonl"),
        ("a%2Fb", "a%252Fb.jsonl"),
        (".", "%2E.jsonl"),
        ("..", "%2E%2E.jsonl"),
        ("../../etc/passwd", "..%2F..%2Fetc%2Fpasswd.jsonl"),
    ],
)
def test_a_safe_id_keeps_its_name_and_another_is_encoded(session_id: str, name: str) -> None:
    """1.2: logs of other programs are found by their plain names."""
    assert log_file_name(session_id) == name


@given(st.lists(st.one_of(any_id, tricky_id), unique=True, max_size=30))
def test_no_two_ids_share_a_file(session_ids: list[str]) -> None:
    """1.2: the mapping from IDs to files is one to one."""
    assert len({log_file_name(session_id) for session_id in session_ids}) == len(session_ids)


@given(st.one_of(any_id, tricky_id))
def test_a_file_name_is_one_name_in_the_folder(session_id: str) -> None:
    """1.2: no ID can reach a file outside the store's folder."""
    name = log_file_name(session_id)
    assert Path("/a/root", name).resolve().parent == Path("/a/root")
    assert name.endswith(".jsonl")
    assert len(name.encode()) <= 255


@given(st.one_of(any_id, tricky_id))
def test_a_file_name_tells_its_id(session_id: str) -> None:
    assert session_id_of_log(log_file_name(session_id)) == session_id


@pytest.mark.parametrize(
    "name", ["user-42", "a%2fb.jsonl", "user%2D42.jsonl", ".jsonl", "%0A.jsonl", "a\nb.jsonl"]
)
def test_a_file_that_no_id_names_has_none(name: str) -> None:
    assert session_id_of_log(name) is None


def test_an_id_too_long_for_a_file_name_is_refused_with_both_lengths() -> None:
    """1.2: too long for the store is a clear error."""
    assert log_file_name("a" * 249) == "a" * 249 + ".jsonl"
    with pytest.raises(InvalidSessionIdError, match="file name of 256 bytes, the limit is 255"):
        log_file_name("a" * 250)
    with pytest.raises(InvalidSessionIdError, match="file name of 262 bytes, the limit is 255"):
        log_file_name("数/" + "a" * 244)


@pytest.mark.parametrize(
    "session_id", ["../outside", "..", "/etc/passwd", "a/../../outside", "..\\outside", "a\\..\\b"]
)
async def test_no_id_leaves_the_folder(tmp_path: Path, session_id: str) -> None:
    """1.2: no ID can reach a file outside the store's folder."""
    store = FileStore(tmp_path / "root")
    await store.create_session(session_id)
    await store.append_entries(session_id, [note("e1")])
    assert ids(await store.load_entries(session_id)) == ["e1"]
    assert [path.parent for path in tmp_path.rglob("*.jsonl")] == [tmp_path / "root"]


@pytest.mark.parametrize("session_id", ["", "a\x00b", "new\nline", "\ud800", "a" * 2000])
async def test_an_invalid_id_is_refused_by_every_operation(tmp_path: Path, session_id: str) -> None:
    """1.2: a clear error, and nothing is made."""
    store = FileStore(tmp_path / "root")
    for attempt in (
        store.create_session(session_id),
        store.load_entries(session_id),
        store.load_session(session_id),
        store.append_entries(session_id, [note("e1")]),
        store.create_session("child", session_id or "\n"),
    ):
        with pytest.raises(InvalidSessionIdError):
            await attempt
    assert not (tmp_path / "root").exists()
