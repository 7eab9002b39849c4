"""Values to JSON text, in the form that the log's other writers use.

`<`, `>`, `&`, U+2028 and U+2029 are escaped, controls too, lone surrogates as well; all other
characters stand as they are. A whole float has no `.0`, exponents are for very small and very
large floats only. Written without recursion, so that whatever could be read can be written.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal
from json.encoder import encode_basestring
from math import isfinite
from typing import Any, Final

from perdure.errors import JsonError
from perdure.json_reader import MAX_DEPTH

_UNSAFE: Final = re.compile("[<>&\u2028\u2029\ud800-\udfff]")
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_ESCAPES: Final = tuple((character, f"\\u{ord(character):04x}") for character in "<>&\u2028\u2029")


def dumps_json(value: Any, *, sort_keys: bool = False) -> bytes:
    """One line of JSON in UTF-8, without the newline. With `sort_keys` equal values have one text,
    in whichever order the keys of their objects came.

    Raises `JsonError` for what JSON cannot carry: `NaN` and infinities, keys that are not text,
    other objects than text, numbers, booleans, None, lists, tuples and dicts, nesting over
    `MAX_DEPTH`.
    """
    parts: list[str] = []
    add = parts.append
    # One frame a container: what is left of it, its closing bracket.
    frames: list[tuple[Iterator[Any], str]] = [(iter((value,)), "")]
    separator = ""
    while frames:
        rest, closing = frames[-1]
        for item in rest:
            if closing == "}":
                key, item = item
                if not isinstance(key, str):
                    raise JsonError(f"the key {key!r:.80} is not text")
                add(f"{separator}{quoted(key)}:")
            else:
                add(separator)
            scalar = _scalar(item)
            if scalar is None:
                if len(frames) > MAX_DEPTH:
                    raise JsonError(f"nesting over {MAX_DEPTH:,} levels")
                frames.append(_open(item, add, sort_keys))
                separator = ""
                break
            add(scalar)
            separator = "," if closing else ""
        else:
            add(closing)
            frames.pop()
            separator = ","
    return "".join(parts).encode()


def _open(container: Any, add: Any, sort_keys: bool) -> tuple[Iterator[Any], str]:
    if isinstance(container, dict):
        add("{")
        return iter(sorted(container.items(), key=_key) if sort_keys else container.items()), "}"
    if isinstance(container, (list, tuple)):
        add("[")
        return iter(container), "]"
    raise JsonError(f"JSON cannot carry {type(container).__name__} {container!r:.80}")


def _key(item: tuple[Any, Any]) -> str:
    return str(item[0])


def _scalar(value: Any) -> str | None:
    if isinstance(value, str):
        return quoted(value)
    if value is None:
        return "null"
    if value is True:
        return "true"
    if value is False:
        return "false"
    if isinstance(value, int):
        return _integer(value)
    if isinstance(value, float):
        return _float(value)
    return None


def quoted(text: str) -> str:
    """The text as a JSON string."""
    written = encode_basestring(text)
    if not _UNSAFE.search(written):
        return written
    # Each in one go: megabytes of markup would otherwise take seconds, which the thread of a
    # workflow does not have.
    for character, escape in _ESCAPES:
        written = written.replace(character, escape)
    return _SURROGATE.sub(_escape, written) if _SURROGATE.search(written) else written


def _escape(found: re.Match[str]) -> str:
    return f"\\u{ord(found[0]):04x}"


def _integer(value: int) -> str:
    try:
        return int.__repr__(value)
    except ValueError:  # `int` itself writes no more than some 4,300 digits
        return str(Decimal(value))


def _float(value: float) -> str:
    if not isfinite(value):
        raise JsonError(f"JSON has no number for {value!r}")
    text = float.__repr__(value)  # a subclass may have another
    if value and not 1e-6 <= abs(value) < 1e21:
        mantissa, _, exponent = text.partition("e")
        return f"{mantissa.removesuffix('.0')}e{_exponent(exponent)}"
    if "e" in text:
        text = f"{Decimal(text):f}"
    return text.removesuffix(".0")


def _exponent(text: str) -> str:
    # Two digits at least in Python, only as many as needed below 1e-6 on the wire.
    return f"-{int(text[1:])}" if text.startswith("-") else f"+{int(text)}"
