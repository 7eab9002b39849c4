"""Reading a log: where its lines end, which of them are damaged, and what follows the last one.

A line ends with a line feed and nothing else; other characters that some readers cut lines at
occur inside of them. What follows the last line feed is the tail. A crash while the last line was
being written leaves a torn tail; everything before it was whole once, and is damaged if it is not
now.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field

from perdure.codec import decode_entries, decode_record, loads_json
from perdure.entries import Entry, SessionRecord
from perdure.errors import DamagedLogError, EntryDecodeError

BLOCK_SIZE = 1024 * 1024
"""Bytes read at a time: the text of a log is in memory once, as lines, and never twice."""

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
BLANK = b" \t\r"


@dataclass(frozen=True, slots=True)
class Tail:
    """What follows the last line end of a log.

    `data` is empty, blank, a torn piece (`is_torn`), or a whole line that only lacks its line end
    (`entry`, or the record when the log has no other line).
    """

    data: bytes = b""
    entry: Entry | None = None
    is_torn: bool = False


@dataclass(slots=True)
class LogPiece:
    """What was read of a log from some line on. `record` is there if that was the first line."""

    end: int
    """Offset behind the last line end, in bytes from the start of the file."""
    line_count: int
    """Number of lines before `end`, in the whole file."""
    record: SessionRecord | None = None
    entries: list[Entry] = field(default_factory=list)
    tail: Tail = Tail()


class NoRecordError(Exception):
    """The file holds no complete first line: its session was never created."""


class LogReader:
    """Reads one open log and names it in its errors.

    `descriptor` is left where it was, `path` is only named, `session_id` is the session that the
    file is named for.
    """

    def __init__(self, descriptor: int, path: str, session_id: str) -> None:
        self.descriptor = descriptor
        self.path = path
        self.session_id = session_id

    def read(self, start: int, line_count: int, size: int) -> LogPiece:
        """Read the log from `start`, which stands behind `line_count` lines, up to `size` bytes.

        Raises:
            NoRecordError: `start` is 0 and the file holds no complete first line.
            DamagedLogError: a line is damaged; the error names the file and the line.
        """
        piece = LogPiece(end=start, line_count=line_count)
        blocks = _Blocks(self.descriptor, start, size)
        awaits_record = start == 0
        for lines in blocks:
            if awaits_record:
                awaits_record = self._take_record(piece, lines)
            piece.entries += self._decode(lines, piece.line_count)
            piece.line_count += len(lines)
        piece.end = blocks.position - len(blocks.rest)
        if awaits_record:
            piece.record = self._record_without_line_end(blocks.rest, piece.line_count)
            piece.tail = Tail(blocks.rest)
        else:
            piece.tail = self._judge(blocks.rest, piece.line_count)
        return piece

    def read_record(self, size: int) -> SessionRecord:
        """Read the first line alone; errors as of `read`."""
        blocks = _Blocks(self.descriptor, 0, size, first=4096)
        line_count = 0
        for lines in blocks:
            piece = LogPiece(end=0, line_count=line_count)
            self._take_record(piece, lines)
            if piece.record is not None:
                return piece.record
            line_count += len(lines)
        return self._record_without_line_end(blocks.rest, line_count)

    def _take_record(self, piece: LogPiece, lines: list[bytes]) -> bool:
        """Cut the record off the first lines of a file; return whether it is still to come."""
        if piece.line_count == 0:
            lines[0] = lines[0].removeprefix(BYTE_ORDER_MARK)
        for index, line in enumerate(lines):
            if line.strip(BLANK):
                piece.record = self._record(line, piece.line_count + index + 1)
                lines[index] = b""
                return False
        return True

    def _record(self, line: bytes, number: int) -> SessionRecord:
        try:
            record = decode_record(line)
        except EntryDecodeError as error:
            found = line[:60].decode(errors="replace")
            reason = f"no session_init but {found!r}: {error}"
            raise DamagedLogError(self.path, number, reason) from error
        if record.id != self.session_id:
            raise DamagedLogError(
                self.path,
                number,
                f"this is the record of session {record.id!r},"
                f" the file is named for {self.session_id!r}",
            )
        return record

    def _record_without_line_end(self, data: bytes, line_count: int) -> SessionRecord:
        line = data if line_count else data.removeprefix(BYTE_ORDER_MARK)
        if not is_whole(line):
            raise NoRecordError
        return self._record(line, line_count + 1)

    def _decode(self, lines: list[bytes], line_count: int) -> list[Entry]:
        texts = [line for line in lines if line.strip(BLANK)]
        try:
            return decode_entries(texts)
        except EntryDecodeError as error:
            # The codec counts without the blank lines.
            numbers = [n for n, line in enumerate(lines, line_count + 1) if line.strip(BLANK)]
            raise DamagedLogError(self.path, numbers[error.index], str(error)) from error

    def _judge(self, data: bytes, line_count: int) -> Tail:
        if not data.strip(BLANK):
            return Tail(data)
        if is_whole(data):
            return Tail(data, entry=self._decode([data], line_count)[0])
        return Tail(data, is_torn=True)


class _Blocks:
    """The whole lines of a part of a file, a block at a time; then `rest` is what follows them."""

    def __init__(self, descriptor: int, start: int, end: int, first: int = BLOCK_SIZE) -> None:
        self._descriptor = descriptor
        self.position = start
        self._end = end
        self._size = first
        self.rest = b""

    def __iter__(self) -> Iterator[list[bytes]]:
        pieces: list[bytes] = []
        while block := self._next_block():
            pieces.append(block)
            if b"\n" in block:
                lines = b"".join(pieces).split(b"\n")
                pieces = [lines.pop()]
                yield lines
        self.rest = b"".join(pieces)

    def _next_block(self) -> bytes:
        size = min(self._size, self._end - self.position)
        block = os.pread(self._descriptor, size, self.position) if size > 0 else b""
        self.position += len(block)
        self._size = BLOCK_SIZE
        return block


def is_whole(line: bytes) -> bool:
    """Whether this is a JSON object from brace to brace: no piece of one is."""
    try:
        return isinstance(loads_json(line), dict)
    except ValueError:
        return False
