"""Fuzzing that looks for new ways through perdure's code, with atheris; `make fuzz` runs it.

    python -m tests.fuzz lines 60    any bytes as a line of a log, for a minute
    python -m tests.fuzz logs 60     any bytes as a log

What was found to be interesting is kept in `.fuzz/`, and goes on from there the next time. Bytes
that break something are left in `crash-…`; write a test with them.
"""

from __future__ import annotations

import hashlib
import logging
import sys
from pathlib import Path
from typing import Any


def main(target: str, seconds: str) -> None:
    """Run one target, which does not return."""
    try:
        import atheris
    except ImportError:
        sys.exit("atheris is not installed; install it with: pip install -e '.[fuzz]'")
    with atheris.instrument_imports(include=["perdure"]):
        from tests.fuzz import log_checks, seeds
    logging.disable(logging.WARNING)
    checks: dict[str, tuple[Any, list[bytes]]] = {
        "lines": (log_checks.check_line, seeds.line_seeds()),
        "logs": (log_checks.check_log, seeds.log_seeds()),
    }
    if target not in checks:
        sys.exit(f"no target {target!r}; the targets are: {', '.join(checks)}")
    check, found = checks[target]
    corpus = Path(".fuzz") / target
    corpus.mkdir(parents=True, exist_ok=True)
    for data in found:
        (corpus / hashlib.sha1(data, usedforsecurity=False).hexdigest()).write_bytes(data)
    limits = [f"-max_total_time={seconds}", "-timeout=20", "-rss_limit_mb=2048", "-max_len=20000"]
    atheris.Setup([sys.argv[0], str(corpus), *limits], check)
    atheris.Fuzz()


main(*(sys.argv[1:] + ["lines", "60"][len(sys.argv) - 1 :]))
