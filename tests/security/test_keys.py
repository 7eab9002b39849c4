"""Keys: how they are written down, what they decrypt, and that nothing tells them."""

from __future__ import annotations

import base64
import copy
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

from perdure import EncryptionError
from perdure.encryption import Keys
from tests.security.conftest import NEW, OLD


def written(key_id: str, key: bytes) -> str:
    return f"{key_id}:{base64.b64encode(key).decode()}"


def test_the_first_key_encrypts_and_each_decrypts_its_own() -> None:
    before = Keys.parse(written("k1", OLD))
    after = Keys.parse(f"{written('k2', NEW)},{written('k1', OLD)}")
    old, new = before.seal(b"secret", b"here"), after.seal(b"secret", b"here")

    assert (before.current, after.current, after.ids) == ("k1", "k2", ("k2", "k1"))
    assert after.open("k1", old, b"here") == after.open("k2", new, b"here") == b"secret"
    assert old != before.seal(b"secret", b"here")
    assert b"secret" not in old + new


def test_a_file_has_a_key_a_line_and_comments(tmp_path: Path) -> None:
    path = tmp_path / "keys"
    path.write_text(f"# since May\n{written('k2', NEW)}  # current\n\n  {written('k1', OLD)}\n")
    assert Keys.from_file(path).ids == ("k2", "k1")


def test_a_key_may_be_in_the_alphabet_of_urls() -> None:
    key = b"\xfb\xff" * 16
    text = base64.urlsafe_b64encode(key).decode().rstrip("=")
    assert Keys({"k": key}).open("k", Keys.parse(f"k:{text}").seal(b"x", b""), b"") == b"x"


def test_a_missing_key_is_named(keys: Keys) -> None:
    sealed = keys.seal(b"secret", b"")
    with pytest.raises(EncryptionError, match=r"key 'k1', and the keys here are 'k2'") as raised:
        Keys({"k2": NEW}).open("k1", sealed, b"")
    assert raised.value.key_id == "k1"


@pytest.mark.parametrize("change", ["key", "context", "data", "cut"])
def test_another_key_or_place_or_changed_data_is_an_error_that_names_the_key(
    keys: Keys, change: str
) -> None:
    sealed, context = keys.seal(b"secret", b"here"), b"here"
    if change == "key":
        keys = Keys({"k1": NEW})
    elif change == "context":
        context = b"there"
    else:
        sealed = sealed[:5] if change == "cut" else sealed[:-1] + bytes([sealed[-1] ^ 1])
    with pytest.raises(EncryptionError, match="encrypted with key 'k1'") as raised:
        keys.open("k1", sealed, context)
    assert raised.value.__cause__ is None


SECRET = base64.b64encode(NEW).decode()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "# nothing",
        SECRET,
        f":{SECRET}",
        f"k1:{SECRET[:-4]}",
        f"k1:{SECRET}!",
        f"{SECRET}:k1",
        f"k1:{SECRET},k1:{SECRET}",
        f"k 1:{SECRET}",
        f"k1:{SECRET};k2:{SECRET}",
        "k1:" + "é" * 43,
    ],
)
def test_what_cannot_be_read_as_keys_is_refused_and_not_repeated(
    text: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "keys").write_text(text)
    with pytest.raises(EncryptionError, match="write keys as ID:KEY") as raised:
        Keys.from_file(tmp_path / "keys")
    assert SECRET[:8] not in str(raised.value)
    if text:
        monkeypatch.setenv("PERDURE_KEYS", text)
        with pytest.raises(EncryptionError, match=r"^PERDURE_KEYS: ") as raised:
            Keys.from_environment()
        assert SECRET[:8] not in str(raised.value)


def test_the_environment_says_where_keys_are(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert Keys.from_environment() is None
    monkeypatch.setenv("PERDURE_KEYS_FILE", str(tmp_path / "keys"))
    with pytest.raises(EncryptionError, match="cannot be read: No such file"):
        Keys.from_environment()
    (tmp_path / "keys").write_text(written("k1", OLD))
    assert repr(Keys.from_environment()) == "Keys(ids=['k1'])"
    monkeypatch.setenv("PERDURE_KEYS", written("k1", OLD))
    with pytest.raises(EncryptionError, match="both PERDURE_KEYS and PERDURE_KEYS_FILE are set"):
        Keys.from_environment()


def test_keys_are_not_shown_and_do_not_leave_the_process(keys: Keys) -> None:
    assert repr(keys) == str(keys) == "Keys(ids=['k1'])"
    assert not hasattr(keys, "__dict__")
    for attempt in (pickle.dumps, copy.copy):
        with pytest.raises(TypeError, match="not pickled"):
            attempt(keys)


def test_a_mark_tells_a_text_apart_but_not_what_it_is(keys: Keys) -> None:
    assert keys.mark("yes") == Keys({"k1": OLD}).mark("yes") != keys.mark("no")
    assert keys.mark("yes") != Keys({"k1": NEW}).mark("yes")


def test_a_fresh_key_is_printed_as_it_is_written_down() -> None:
    command = [sys.executable, "-m", "perdure.encryption"]
    made = subprocess.run([*command, "k1"], capture_output=True, text=True, check=True).stdout
    assert Keys.parse(made).ids == ("k1",)
    refused = subprocess.run([*command, "a b"], capture_output=True, text=True, check=False)
    assert (refused.returncode, refused.stdout) == (1, "")
