"""What is safe to print, and how much of it fits."""

from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.cli.screen import Screen, cut, one_line, safe, width_of


@pytest.mark.parametrize(
    "text, shown",
    [
        ("plain\ttext\nof two lines", "plain\ttext\nof two lines"),
        ("red \x1b[31m and \x07", "red ␛[31m and ␇"),
        ("line\r\nends\r", "line\nends␍"),
        ("turned \u202eround", "turned \\u202eround"),
        ("half \ud83d", "half \\ud83d"),
        ("\x7f \x9b", "␡ \\u009b"),
    ],
)
def test_what_would_move_a_cursor_is_shown_instead(text: str, shown: str) -> None:
    assert safe(text) == shown


@given(st.text(), st.integers(1, 40))
def test_what_is_cut_fits(text: str, columns: int) -> None:
    assert width_of(cut(one_line(text), columns)) <= columns


def test_wide_characters_take_two_columns() -> None:
    assert cut("谢谢你们", 5) == "谢谢…"
    assert cut("abcdef", 5) == "abcd…"


def test_a_terminal_without_the_signs_gets_others() -> None:
    bytes_ = io.BytesIO()
    screen = Screen(io.TextIOWrapper(bytes_, encoding="ascii"))
    screen.line("├─ ● it…")
    screen.flush()
    assert bytes_.getvalue() == b"|- * it~\n"


def test_without_a_standard_output_nothing_is_printed() -> None:
    screen = Screen(None)
    screen.line("hello")
    screen.write_bytes(b"hello")
    screen.flush()
