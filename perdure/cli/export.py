"""`perdure export`: a session as one file."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from perdure.cli.entry_lines import (
    block_line,
    fields_of,
    plain_json,
    role_of,
    tokens_of,
)
from perdure.cli.place import Where
from perdure.cli.screen import err, one_line, out
from perdure.cli.stored import load
from perdure.cli.tree import chosen_leaf
from perdure.codec import encode_entry, encode_record
from perdure.entries import CompactionEntry, Entry, MessageEntry, SessionRecord
from perdure.errors import StoreError
from perdure.messages import TextBlock, ThinkingBlock, ToolCallBlock
from perdure.transcript import Transcript

Exporter = Callable[[SessionRecord, Transcript, str], Iterable[bytes]]


def export_session(
    session_id: str,
    *,
    where: Where,
    format: str,
    leaf: str | None,
    output: Path | None,
    as_json: bool,
) -> None:
    """Write a stored session to a file, or to standard output.

    Raises SessionNotFoundError, DamagedLogError, EntryNotFoundError for the leaf; StoreError when
    the file cannot be written, and then it is as it was.
    """
    record, transcript = load(where, session_id)
    leaf_id = chosen_leaf(transcript, leaf)
    pieces = EXPORTERS[format](record, transcript, leaf_id)
    if output is None:
        screen = out()
        for piece in pieces:
            screen.write_bytes(piece)
        screen.flush()
        return
    size = _write(output, pieces)
    told = {
        "session_id": session_id,
        "format": format,
        "path": str(output),
        "bytes": size,
        "entries": len(transcript),
    }
    if as_json:
        out().json(told)
    else:
        err().line(f"{one_line(str(output))}: {size:,} bytes")


def _write(path: Path, pieces: Iterable[bytes]) -> int:
    """Write the whole file, or leave what was there."""
    if not path.name:  # the root, or the folder that we are in
        raise StoreError(f"{path}: it is a folder; choose another file with --output")
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with draft.open("wb") as file:
            size = sum(map(file.write, pieces))
        draft.replace(path)
    except OSError as error:
        with suppress(OSError):
            draft.unlink()
        raise StoreError(
            f"{path}: {error.strerror or error}; choose another file with --output"
        ) from error
    return size


def _jsonl(record: SessionRecord, transcript: Transcript, leaf_id: str) -> Iterator[bytes]:
    """The log, line by line, as another store would have it."""
    yield encode_record(record) + b"\n"
    seen: set[str] = set()
    for entry in transcript.entries:
        if entry.id not in seen:
            seen.add(entry.id)
            yield encode_entry(entry) + b"\n"


def _html(record: SessionRecord, transcript: Transcript, leaf_id: str) -> Iterator[bytes]:
    from perdure.cli.export_html import html_page

    for piece in html_page(record, transcript, leaf_id):
        yield piece.encode(errors="replace")


def _markdown(record: SessionRecord, transcript: Transcript, leaf_id: str) -> Iterator[bytes]:
    """The active path, as a person reads it."""
    origin = f"\n\nForked from {_inline(record.parent_id)}." if record.parent_id else ""
    yield f"# {_inline(record.id)}{origin}\n".encode(errors="replace")
    for entry in transcript.transcript_view(leaf_id):
        yield _section(entry).encode(errors="replace")


def _section(entry: Entry) -> str:
    details = [str(entry.created_at)]
    if isinstance(entry, MessageEntry):
        details += [_inline(entry.message.model), tokens_of(entry.message.usage)]
    head = f"\n## {_inline(role_of(entry))}\n\n<sub>{' · '.join(filter(None, details))}</sub>\n"
    return head + "".join(f"\n{part}\n" for part in _parts(entry) if part)


def _parts(entry: Entry) -> Iterator[str]:
    if isinstance(entry, CompactionEntry):
        yield entry.summary
        return
    if not isinstance(entry, MessageEntry):
        yield _fenced(plain_json(fields_of(entry)), "json")
        return
    message = entry.message
    if message.role == "tool_result":
        sign = "✗" if message.is_error else "✓"
        yield f"{sign} {_inline(message.tool_name)}"
        yield _fenced(message.text)
    for block in message.content:
        match block:
            case TextBlock():
                if message.role != "tool_result":
                    yield block.text
            case ThinkingBlock():
                yield "> " + block.thinking.replace("\n", "\n> ")
            case ToolCallBlock():
                yield f"→ {_inline(block.name)}"
                yield _fenced(plain_json(block.arguments), "json")
            case _:
                yield _inline(block_line(block))
    if message.error:
        yield f"**✗ {_inline(message.error)}**"


def _fenced(text: str, language: str = "") -> str:
    longest = max((len(found) for found in re.findall(r"`{3,}", text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}{language}\n{text}\n{fence}"


def _inline(text: str) -> str:
    """A text of one line in which no character means anything to Markdown."""
    return re.sub(r"([\\`*_{}\[\]<>#|])", r"\\\1", one_line(text))


EXPORTERS: dict[str, Exporter] = {"jsonl": _jsonl, "md": _markdown, "html": _html}
