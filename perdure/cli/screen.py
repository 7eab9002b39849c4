"""What commands print: lines for people, as wide and as colourful as their terminal, and JSON for
programs.
"""

from __future__ import annotations

import os
import re
import select
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TextIO

from perdure.errors import PerdureError

READER_LEFT = 141
"""The exit status when nobody reads the output any more, as the system gives it to others."""

STATE_COLOURS = {
    "running": "green",
    "waiting": "magenta",
    "idle": "cyan",
    "opening": "yellow",
    "closed": "dim",
    "stored": "dim",
}

_CODES = {
    "bold": 1,
    "dim": 2,
    "red": 31,
    "green": 32,
    "yellow": 33,
    "blue": 34,
    "magenta": 35,
    "cyan": 36,
}

# Characters that would do something to a terminal, or to the order of what is read on it. A log
# holds what models and tools wrote.
_UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")

_PLAIN_SIGNS = str.maketrans(
    {
        "●": "*",
        "○": "o",
        "◆": "=",
        "▶": ">",
        "│": "|",
        "├": "|",
        "─": "-",
        "⋮": ":",
        "⑂": "Y",
        "…": "~",
        "·": "-",
        "→": ">",
        "✓": "+",
        "✗": "x",
        "↳": ">",
    }
)


_PIECE = 32_768
"""Characters or bytes written at a time. Without buffers (PYTHONUNBUFFERED) Python does not notice
that nobody took the rest of a large piece.
"""


@contextmanager
def _output() -> Iterator[None]:
    """End the command when nobody reads what it prints, or it cannot be printed."""
    try:
        yield
    except BrokenPipeError:
        raise SystemExit(READER_LEFT) from None
    except OSError as error:
        raise OutputError(f"cannot print: {error.strerror or error}") from None


class OutputError(PerdureError):
    """What a command prints cannot be written."""


class Screen:
    """Where a command prints.

    `columns` is the width that lines are cut and wrapped to; None when they are left alone, because
    a program or a file takes them.
    """

    def __init__(self, stream: TextIO | None, environment: Mapping[str, str] | None = None) -> None:
        environment = os.environ if environment is None else environment
        self._stream = stream
        self.is_terminal = stream is not None and stream.isatty()
        self.columns = _columns(stream, environment) if self.is_terminal else None
        self.has_colour = (
            self.is_terminal
            and not environment.get("NO_COLOR")
            and environment.get("TERM") != "dumb"
        )
        self._has_signs = _can_show(stream, "│├●…")

    def line(self, text: str = "") -> None:
        """Print a line. Ends the command when nobody reads any more."""
        self.write(text + "\n")

    def write(self, text: str) -> None:
        """Print as it is, apart from signs that the terminal does not have."""
        if self._stream is None:
            return
        if not self._has_signs:
            text = text.translate(_PLAIN_SIGNS)
        with _output():
            for start in range(0, len(text), _PIECE):
                self._stream.write(text[start : start + _PIECE])

    def write_bytes(self, data: bytes) -> None:
        """Print bytes as they are."""
        binary = getattr(self._stream, "buffer", None)
        if binary is None:
            return
        with _output():
            for start in range(0, len(data), _PIECE):
                binary.write(data[start : start + _PIECE])

    def flush(self) -> None:
        """Hand over what was printed."""
        if self._stream is not None:
            with _output():
                self._stream.flush()

    def check_reader(self) -> None:
        """End the command if nobody reads any more, though there is nothing to print now."""
        if self._stream is None or not hasattr(select, "poll"):
            return
        poll = select.poll()
        try:
            poll.register(self._stream.fileno(), 0)
        except (OSError, ValueError):  # it is no file
            return
        if any(found & (select.POLLERR | select.POLLHUP) for _, found in poll.poll(0)):
            raise SystemExit(READER_LEFT)

    def json(self, value: Any) -> None:
        """Print a value as one line of JSON, at once."""
        from perdure.json_writer import dumps_json

        self.write(dumps_json(value).decode(errors="surrogatepass") + "\n")
        self.flush()

    def styled(self, text: str, *styles: str) -> str:
        """The text in colour, where there is any."""
        if not self.has_colour or not text:
            return text
        codes = ";".join(str(_CODES[style]) for style in styles)
        return f"\x1b[{codes}m{text}\x1b[0m"

    def fit(self, text: str, taken: int = 0) -> str:
        """The text cut to what is left of a line of which `taken` columns are used."""
        return text if self.columns is None else cut(text, max(self.columns - taken, 1))


def out() -> Screen:
    """What is asked for goes here."""
    return Screen(sys.stdout)


def err() -> Screen:
    """What is said beside it goes here."""
    return Screen(sys.stderr)


def safe(text: str) -> str:
    """The text without what would move a terminal's cursor, or hide something."""
    text = text.replace("\r\n", "\n")
    return _UNSAFE.sub(_shown, text) if _UNSAFE.search(text) else text


def one_line(text: str, limit: int = 400) -> str:
    """The start of the text as one safe line."""
    return safe(" ".join(text[: 2 * limit].split()))[:limit]


def width_of(text: str) -> int:
    """The columns that a text takes."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def cut(text: str, columns: int) -> str:
    """The text, cut to so many columns; an ellipsis says so."""
    if len(text) <= columns // 2 or width_of(text) <= columns:
        return text
    if columns <= 1:
        return "…"[:columns]
    if text.isascii():
        return text[: columns - 1] + "…"
    from rich.cells import get_character_cell_size

    taken = 0
    for position, character in enumerate(text):
        taken += get_character_cell_size(character)
        if taken > columns - 1:
            return text[:position] + "…"
    return text


def _shown(found: re.Match[str]) -> str:
    code = ord(found[0])
    if code < 0x20:
        return chr(0x2400 + code)
    return "\N{SYMBOL FOR DELETE}" if code == 0x7F else f"\\u{code:04x}"


def _columns(stream: TextIO | None, environment: Mapping[str, str]) -> int | None:
    wanted = environment.get("COLUMNS", "")
    if wanted.isdecimal() and int(wanted) > 0:
        return int(wanted)
    try:
        assert stream is not None
        return os.get_terminal_size(stream.fileno()).columns or 80
    except (OSError, ValueError):
        return 80


def _can_show(stream: TextIO | None, characters: str) -> bool:
    try:
        characters.encode(getattr(stream, "encoding", None) or "utf-8")
    except (UnicodeEncodeError, LookupError):
        return False
    return True
