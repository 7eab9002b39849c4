"""JSON text to values, as the log needs it.

The standard library's parser is used, since it keeps lone surrogates and integers of any size;
what it lets through by default (`NaN`, infinities, numbers beyond a float) is refused. Only when
it gives up, on deep nesting or integers of thousands of digits, a slower reader takes over.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Callable
from decimal import Decimal
from json import decoder
from typing import Any, Final

from perdure.errors import JsonError

MAX_DEPTH: Final = 10_000
"""Arrays and objects inside one another; what the log's other readers accept too."""

_SPACE: Final = re.compile(r"[ \t\n\r]*")
_NUMBER: Final = re.compile(r"(-?(?:0|[1-9][0-9]*))(\.[0-9]+)?([eE][-+]?[0-9]+)?")
_MINUS_ZERO: Final = re.compile("-0(?![0-9.eE])")
_LITERALS: Final = {"true": True, "false": False, "null": None}
_LITERAL: Final = re.compile("|".join(_LITERALS))
_INFINITY: Final = float("inf")
# The standard library's own reader of strings: not documented, there since Python 2.6.
scan_string: Final[Callable[[str, int, bool], tuple[str, int]]] = vars(decoder)["scanstring"]


class NumberRangeError(JsonError):
    """A number beyond the range of a 64-bit float."""


def loads_json(text: str | bytes, *, allow_overflow: bool = False, exact_zeros: bool = True) -> Any:
    """The value of a JSON text.

    Bytes are UTF-8; each byte that is not becomes U+FFFD. Raises `JsonError` for everything that
    is not one JSON value, for `NaN` and infinities, and for nesting over `MAX_DEPTH`; a number
    beyond a float raises `NumberRangeError`, or reads as an infinity with `allow_overflow`.
    `-0` is a float, as no integer keeps its sign; whoever does not mind saves time without
    `exact_zeros`.
    """
    if isinstance(text, bytes):
        text = text.decode("utf-8", "perdure_replace_bytes")
    try:
        # Nesting too deep to read needs more than two characters a level.
        if len(text) > 2 * MAX_DEPTH and text.count("[") + text.count("{") > MAX_DEPTH:
            return _SlowReader(text, allow_overflow).value()
        if exact_zeros and _MINUS_ZERO.search(text):
            return (_permissive_exact if allow_overflow else _strict_exact).decode(text)
        return (_permissive if allow_overflow else _strict).decode(text)
    except json.JSONDecodeError as error:
        raise JsonError(f"not JSON: {error}") from None
    except JsonError:
        raise
    except (RecursionError, ValueError):
        # A ValueError of the parser itself is an integer with more digits than `int` reads.
        return _SlowReader(text, allow_overflow).value()


def _replace_bytes(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeDecodeError)
    return "\ufffd" * (error.end - error.start), error.end


def _finite(text: str) -> float:
    number = float(text)
    if number in (_INFINITY, -_INFINITY):
        raise NumberRangeError(f"the number {text[:40]} is beyond the range of a float")
    return number


def _refuse_constant(name: str) -> Any:
    raise JsonError(f"not JSON: {name} is no number")


def _integer(text: str) -> int | float:
    return -0.0 if text == "-0" else int(text)


codecs.register_error("perdure_replace_bytes", _replace_bytes)
_strict: Final = json.JSONDecoder(parse_float=_finite, parse_constant=_refuse_constant)
_strict_exact: Final = json.JSONDecoder(
    parse_float=_finite, parse_int=_integer, parse_constant=_refuse_constant
)
_permissive: Final = json.JSONDecoder(parse_constant=_refuse_constant)
_permissive_exact: Final = json.JSONDecoder(parse_int=_integer, parse_constant=_refuse_constant)


class _SlowReader:
    """Reads without recursion, one token at a time."""

    def __init__(self, text: str, allow_overflow: bool) -> None:
        self._text = text
        self._at = 0
        self._float = float if allow_overflow else _finite

    def value(self) -> Any:
        """The one value of the text; raises `JsonError` for anything else."""
        open_containers: list[list[Any] | dict[str, Any]] = []
        keys: list[str] = []
        self._skip_space()
        while True:
            start = self._peek()
            if start in ("[", "{"):
                if len(open_containers) == MAX_DEPTH:
                    raise self._error(f"nesting over {MAX_DEPTH:,} levels")
                self._at += 1
                container: list[Any] | dict[str, Any] = [] if start == "[" else {}
                if self._closes(container):
                    value: Any = container
                else:
                    open_containers.append(container)
                    keys.append(self._key() if start == "{" else "")
                    continue
            else:
                value = self._scalar(start)
            while open_containers:
                parent, key = open_containers[-1], keys[-1]
                if isinstance(parent, list):
                    parent.append(value)
                else:
                    parent[key] = value
                if not self._closes(parent):
                    if self._peek() != ",":
                        raise self._error("a comma is missing")
                    self._at += 1
                    self._skip_space()
                    if isinstance(parent, dict):
                        keys[-1] = self._key()
                    break
                value = open_containers.pop()
                keys.pop()
            else:
                if self._at != len(self._text):
                    raise self._error("there is more after the value")
                return value

    def _peek(self) -> str:
        return self._text[self._at : self._at + 1]

    def _skip_space(self) -> None:
        found = _SPACE.match(self._text, self._at)
        assert found is not None  # it matches nothing too
        self._at = found.end()

    def _closes(self, container: list[Any] | dict[str, Any]) -> bool:
        self._skip_space()
        if self._peek() != ("]" if isinstance(container, list) else "}"):
            return False
        self._at += 1
        self._skip_space()
        return True

    def _key(self) -> str:
        if self._peek() != '"':
            raise self._error("a key is missing")
        key = self._string()
        self._skip_space()
        if self._peek() != ":":
            raise self._error("a colon is missing")
        self._at += 1
        self._skip_space()
        return key

    def _string(self) -> str:
        try:
            text, self._at = scan_string(self._text, self._at + 1, True)
        except json.JSONDecodeError as error:
            raise JsonError(f"not JSON: {error}") from None
        return text

    def _scalar(self, start: str) -> Any:
        if start == '"':
            value: Any = self._string()
        elif literal := _LITERAL.match(self._text, self._at):
            value = _LITERALS[literal[0]]
            self._at = literal.end()
        elif number := _NUMBER.match(self._text, self._at):
            value = self._number(number)
            self._at = number.end()
        else:
            raise self._error("a value is missing")
        self._skip_space()
        return value

    def _number(self, number: re.Match[str]) -> int | float:
        if number[2] or number[3]:
            return self._float(number[0])
        if number[0] == "-0":
            return -0.0
        return int(Decimal(number[0]))  # `int` itself reads no more than some 4,300 digits

    def _error(self, problem: str) -> JsonError:
        return JsonError(f"not JSON: {problem} at character {self._at}")
