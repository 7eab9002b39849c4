"""Logs to begin with: those of another program, and small ones of our own."""

from __future__ import annotations

from perdure.codec import encode_entry
from perdure.entries import CompactionEntry, CustomEntry
from tests.stores.logs import FIXTURES, HEADER, log_of, note, notes


def session_of(log: bytes) -> bytes:
    """The same log, as that of the session `s`."""
    _, _, rest = log.partition(b"\n")
    return HEADER + b"\n" + rest


def log_seeds() -> list[bytes]:
    """Whole logs of the session `s`, and damaged ones; the large ones are cut to some lines."""
    found = [*FIXTURES.glob("*.jsonl"), *FIXTURES.glob("damaged/*.jsonl")]
    logs = [session_of(_head(path.read_bytes())) for path in sorted(found)]
    odd = [
        note("e1", "line\u2028 and \u0085 \ud800 é"),
        CompactionEntry(id="e2", parent_id="e1", summary="so far", first_kept_id="e1"),
        CustomEntry(id="e3", parent_id="e2", kind="artifact"),
    ]
    return [*logs, log_of([]), log_of(notes("e1", "e2")), log_of(odd), HEADER, b""]


def line_seeds() -> list[bytes]:
    """Each line of the logs once."""
    lines = {line: None for log in log_seeds() for line in log.split(b"\n") if line}
    return [*lines, encode_entry(note("e", "1e400 -0 \\ud800"))]


def _head(log: bytes, most: int = 20_000) -> bytes:
    if len(log) <= most:
        return log
    return log[: log.rfind(b"\n", 0, most) + 1]
