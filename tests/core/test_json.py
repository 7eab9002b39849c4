from __future__ import annotations

import json
import math
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.errors import JsonError
from perdure.json_reader import MAX_DEPTH, NumberRangeError, loads_json
from perdure.json_writer import dumps_json
from tests.core.strategies import any_text, json_values


@given(json_values)
def test_what_is_written_is_read_back(value: Any) -> None:
    assert loads_json(dumps_json(value)) == value


@given(json_values)
def test_the_standard_library_reads_the_same(value: Any) -> None:
    assert json.loads(dumps_json(value)) == value


@given(st.floats(2.0**53, 1e21))
def test_a_large_whole_float_is_read_as_an_integer_that_rounds_to_it(number: float) -> None:
    assert float(loads_json(dumps_json(number))) == number


@given(any_text)
def test_any_text_is_written_as_one_line_of_utf_8(text: str) -> None:
    line = dumps_json(text)
    assert b"\n" not in line
    assert loads_json(line.decode()) == text


@pytest.mark.parametrize(
    "value, text",
    [
        (3.0, "3"),
        (-0.0, "-0"),
        (0.1, "0.1"),
        (1e-6, "0.000001"),
        (1e-7, "1e-7"),
        (2.5e-10, "2.5e-10"),
        (5e-324, "5e-324"),
        (1e16, "10000000000000000"),
        (1e20, "100000000000000000000"),
        (1e21, "1e+21"),
        (1.5e300, "1.5e+300"),
        (123456789.125, "123456789.125"),
        (12345678901234567890, "12345678901234567890"),
        (True, "true"),
        (None, "null"),
        ([], "[]"),
        ({}, "{}"),
        ((1, [2, {"a": ()}]), '[1,[2,{"a":[]}]]'),
        ({"b": 1, "a": {"d": 2, "c": 3}}, '{"b":1,"a":{"d":2,"c":3}}'),
        ("<&>", r'"\u003c\u0026\u003e"'),
        ("\u2028\u2029", r'"\u2028\u2029"'),
        ("\b\t\n\f\r\x00\x1f", r'"\b\t\n\f\r\u0000\u001f"'),
        ('"\\/', r'"\"\\/"'),
        ("\x7f\x85\ufeff\uffff\U0001f600é", '"\x7f\x85\ufeff\uffff\U0001f600é"'),
        ("a\ud800b\udfff", r'"a\ud800b\udfff"'),
    ],
)
def test_values_have_the_written_form_of_the_format(value: Any, text: str) -> None:
    assert dumps_json(value).decode() == text


@pytest.mark.parametrize(
    "value",
    [math.nan, math.inf, -math.inf, {"a": [math.nan]}, {1: 2}, {None: 1}, b"x", {1}, object()],
)
def test_what_json_cannot_carry_is_not_written(value: Any) -> None:
    with pytest.raises(JsonError):
        dumps_json(value)


class Celsius(float):
    def __repr__(self) -> str:
        return f"{float(self)} °C"


def test_a_float_of_another_class_is_written_as_a_float() -> None:
    assert dumps_json([Celsius(3.5), Celsius(1e-9)]) == b"[3.5,1e-9]"


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "{",
        "[1,]",
        '{"a":1,}',
        "[1 2]",
        "1 2",
        "01",
        "+1",
        "-",
        "1.",
        ".5",
        "nul",
        "NaN",
        "Infinity",
        "-Infinity",
        '{"a":NaN}',
        '"\x01"',
        '"\n"',
        '"\\x"',
        "'a'",
        "{1:2}",
        '{"a" 1}',
        '{"a":}',
        "\ufeff1",
        '{"a":1}}',
    ],
)
def test_what_is_not_json_is_refused_by_both_readers(text: str) -> None:
    deep = "[" * 3000 + (text.strip() or ",") + "]" * 3000
    for damaged in (text, deep):
        with pytest.raises(JsonError, match="not JSON"):
            loads_json(damaged)


@given(json_values)
def test_deep_values_are_read_as_shallow_ones_are(value: Any) -> None:
    text = "[" * 2000 + dumps_json(value).decode() + "]" * 2000
    found = loads_json(text)
    for _ in range(2000):
        (found,) = found
    assert found == value
    assert repr(found) == repr(loads_json(dumps_json(value)))


@pytest.mark.parametrize("opening, closing", [("[", "]"), ('{"a":', "}")])
def test_ten_thousand_levels_are_read_and_written_and_one_more_is_not(
    opening: str, closing: str
) -> None:
    innermost = opening[0] + closing
    text = opening * (MAX_DEPTH - 1) + innermost + closing * (MAX_DEPTH - 1)
    value = loads_json(text)
    assert dumps_json(value).decode() == text
    with pytest.raises(JsonError, match="nesting"):
        loads_json(opening * MAX_DEPTH + innermost + closing * MAX_DEPTH)
    with pytest.raises(JsonError, match="nesting"):
        dumps_json([value])


def test_scalars_may_stand_on_the_deepest_level_and_not_below_it() -> None:
    text = "[" * MAX_DEPTH + '1.5,"x",null' + "]" * MAX_DEPTH
    value = loads_json(text)
    assert dumps_json(value).decode() == text
    with pytest.raises(JsonError, match="nesting"):
        loads_json(f"[{text}]")
    with pytest.raises(JsonError, match="nesting"):
        dumps_json([value])


def test_a_number_beyond_a_float_is_refused_unless_it_is_allowed() -> None:
    for text in ("1e400", "[" * 2000 + "-1e400" + "]" * 2000):
        with pytest.raises(NumberRangeError):
            loads_json(text)
    assert loads_json("[1e400, 1e-400]", allow_overflow=True) == [math.inf, 0.0]


@pytest.mark.parametrize("digits", [20, 4300, 4301, 100_000])
def test_integers_of_any_size_are_kept(digits: int) -> None:
    text = "-" + "7" * digits
    number = loads_json(text)
    assert Decimal(number) == Decimal(text)
    assert dumps_json({"n": number}).decode() == f'{{"n":{text}}}'


@pytest.mark.parametrize("text", ["-0", "[-0,0,-0.0,-1]", '{"-0":-0}'])
def test_minus_zero_keeps_its_sign(text: str) -> None:
    expected = text.replace("-0.0", "-0")
    assert dumps_json(loads_json(text)).decode() == expected
    assert dumps_json(loads_json(text, allow_overflow=True)).decode() == expected
    deep = "[" * 2000 + text + "]" * 2000
    assert dumps_json(loads_json(deep)).decode() == deep.replace("-0.0", "-0")


def test_of_duplicate_keys_the_last_one_wins() -> None:
    assert loads_json('{"a":1,"b":2,"a":3}') == {"a": 3, "b": 2}


def test_each_byte_that_is_not_utf_8_becomes_a_replacement_character() -> None:
    assert loads_json(b'"a\xe2\x80b\xff\xed\xa0\x80"') == "a\ufffd\ufffdb\ufffd\ufffd\ufffd\ufffd"
