"""Which strings are session IDs, and the workflow IDs that they make."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.errors import InvalidSessionIdError
from perdure.session_id import check_session_id, session_id_of, workflow_id

any_id = st.text(st.characters(exclude_categories=["Cc", "Cs"]), min_size=1, max_size=80)


@pytest.mark.parametrize(
    "session_id",
    [
        "user-42",
        "org/team@example.com",
        "..",
        " ",
        "-rf",
        "a\\b",
        "Ünïcødé",
        "👩‍💻",
        "%2F",
        "\u2028",
    ],
)
def test_any_text_without_control_characters_names_a_session(session_id: str) -> None:
    """1.2: any non-empty string without control characters is valid."""
    assert check_session_id(session_id) == session_id


@pytest.mark.parametrize(
    "session_id,reason",
    [
        ("", "is empty; give it at least one character"),
        ("a\nb", "holds a control character at position 1; leave it out"),
        ("\x00", "holds a control character at position 0; leave it out"),
        ("ab\x7f", "holds a control character at position 2; leave it out"),
        ("\x85", "holds a control character at position 0; leave it out"),
        ("a\ud800", "holds half a surrogate pair at position 1; leave it out"),
    ],
)
def test_what_cannot_name_a_session_is_refused_with_the_reason(
    session_id: str, reason: str
) -> None:
    """1.2: empty, or with control characters, or no Unicode text: a clear error."""
    with pytest.raises(InvalidSessionIdError) as caught:
        check_session_id(session_id)
    assert str(caught.value) == f"session ID {session_id!r} {reason}"
    assert caught.value.session_id == session_id


def test_an_id_that_makes_the_longest_workflow_id_is_taken() -> None:
    """1.2: the engine's limit is 1,000 bytes for `session:` and the encoded ID."""
    assert check_session_id("a" * 992) == "a" * 992
    assert check_session_id("é" * 165 + "aa") == "é" * 165 + "aa"


def test_an_id_too_long_for_the_engine_is_refused_with_both_lengths() -> None:
    """1.2: too long for the engine is a clear error."""
    with pytest.raises(InvalidSessionIdError, match="workflow ID of 1001 bytes, the limit is 1000"):
        check_session_id("a" * 993)
    with pytest.raises(InvalidSessionIdError, match="workflow ID of 1004 bytes, the limit is 1000"):
        check_session_id("é" * 166)
    with pytest.raises(InvalidSessionIdError, match="workflow ID of 1002 bytes, the limit is 1000"):
        workflow_id("a" * 990, "abc")


def test_a_workflow_id_is_readable_and_takes_the_instance() -> None:
    assert workflow_id("user-42") == "session:user-42"
    assert workflow_id("org/team@example.com") == "session:org%2Fteam%40example.com"
    assert workflow_id("user-42", "my phone") == "session:user-42@my%20phone"


@given(any_id, st.one_of(st.just(""), any_id))
def test_a_workflow_id_gives_its_session_id_back(session_id: str, instance: str) -> None:
    name = workflow_id(session_id, instance)
    assert session_id_of(name) == session_id
    assert name.isascii()
    assert name.isprintable()


@pytest.mark.parametrize(
    "text", ["", "session:", "user-42", "session:a b", "session:a@", "session:%61", "session:%FF"]
)
def test_another_workflow_is_not_taken_for_a_session(text: str) -> None:
    with pytest.raises(InvalidSessionIdError, match="is no workflow ID of a session"):
        session_id_of(text)
