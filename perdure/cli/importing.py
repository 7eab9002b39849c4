"""`perdure import`: a session log of another program as a session."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from pathlib import Path

from perdure.cli.claude_code_log import is_claude_code, read_claude_code
from perdure.cli.entry_lines import plural
from perdure.cli.foreign_logs import ForeignLogError, Imported, Json
from perdure.cli.pi_log import is_pi, read_pi
from perdure.cli.place import Where
from perdure.cli.screen import one_line, out
from perdure.cli.stored import opened
from perdure.codec import entry_from_json, loads_json
from perdure.errors import EntryDecodeError
from perdure.session_id import check_session_id
from perdure.transcript import Transcript

STANDARD_INPUT = "-"
"""Stands for standard input where a file could be named."""


def import_log(path: Path, *, session_id: str | None, where: Where, as_json: bool) -> None:
    """Make a session of a log. Without an ID it gets the one that the log has.

    Raises SessionExistsError when the ID is taken, ForeignLogError for what is no log, StoreError;
    then nothing was made.
    """
    imported = read_log(path)
    chosen = check_session_id(session_id or imported.session_id or _named_by(path))
    asyncio.run(_store(imported, chosen, where))
    transcript = Transcript(imported.entries)
    left_out = dict(sorted(imported.left_out.items()))
    screen = out()
    if as_json:
        screen.json(
            {
                "session_id": chosen,
                "entries": len(imported.entries),
                "leaves": transcript.leaves(),
                "leaf_id": transcript.leaf_id,
                "left_out": left_out,
            }
        )
        return
    size = plural(len(imported.entries), "entry", "entries")
    branches = plural(len(transcript.leaves()), "branch", "branches")
    screen.line(screen.fit(f"{one_line(chosen)} · {size}, {branches}"))
    if left_out:
        told = ", ".join(f"{number:,} {one_line(kind)}" for kind, number in left_out.items())
        screen.line(screen.styled(screen.fit(f"left out: {told}"), "dim"))


async def _store(imported: Imported, session_id: str, where: Where) -> None:
    store = opened(where)
    await store.create_session(session_id)
    await store.append_entries(session_id, imported.entries)


def read_log(path: Path) -> Imported:
    """The entries of a log, of whichever program it is. Raises ForeignLogError."""
    data = _read(path)
    lines = list(_lines(path, data))
    values = [value for _, value in lines]
    if is_pi(values):
        return read_pi(lines)
    if is_claude_code(values):
        return read_claude_code(lines)
    if values and values[0].get("type") == "session_init":
        return _read_own(lines)
    raise ForeignLogError(
        f"{path} is no session log of Claude Code, pi or perdure; what can be imported is a file "
        "of JSON lines that one of these wrote"
    )


def _read(path: Path) -> bytes:
    if str(path) == STANDARD_INPUT:
        return sys.stdin.buffer.read() if sys.stdin is not None else b""
    try:
        return path.read_bytes()
    except OSError as error:
        raise ForeignLogError(f"{path}: {error.strerror or error}; name a file") from None


def _named_by(path: Path) -> str:
    if str(path) == STANDARD_INPUT:
        raise ForeignLogError("the log does not name its session; do it with --session")
    return path.stem


def _read_own(lines: list[tuple[int, Json]]) -> Imported:
    imported = Imported(session_id=str(lines[0][1].get("id") or ""))
    for number, value in lines[1:]:
        try:
            imported.entries.append(entry_from_json(value))
        except EntryDecodeError as error:
            raise ForeignLogError(f"line {number} cannot be imported: {error}") from None
    return imported


def _lines(path: Path, data: bytes) -> Iterator[tuple[int, Json]]:
    texts = data.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    for number, text in enumerate(texts, 1):
        if not text.strip():
            continue
        try:
            value = loads_json(text)
        except ValueError as error:
            if number == len(texts):
                return  # torn off while it was written
            raise ForeignLogError(f"{path}, line {number}: {error}") from None
        if isinstance(value, dict):
            yield number, value
