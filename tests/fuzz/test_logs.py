"""Logs that were damaged in any way: never a crash, a hang, or a silent loss before the tail."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.fuzz.effort import effort
from tests.fuzz.log_checks import check_line, check_log
from tests.fuzz.mutations import mutated
from tests.fuzz.seeds import line_seeds, log_seeds


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    logging.disable(logging.WARNING)
    yield
    logging.disable(logging.NOTSET)


@effort(400)
@given(mutated(line_seeds()) | st.binary(max_size=60))
@example(b"")
@example(b"[" * 200_000)
@example(b'{"type":"message","id":"e","message":{"role":"user","content":' + b"[" * 5_000)
def test_a_line_of_any_bytes_is_an_entry_or_refused_by_name(data: bytes) -> None:
    """2.9: and what was read is written so that it is read again."""
    check_line(data)


@effort(150)
@given(mutated(log_seeds()))
@example(b"")
@example(b"\n\n\n")
def test_a_damaged_log_is_read_whole_or_refused_with_its_line(data: bytes) -> None:
    """2.7: nothing before the tail is lost without a sign, and the session goes on or says why."""
    check_log(data)
