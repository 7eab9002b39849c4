"""`make chaos`: a fleet of sessions under faults, and what came of it.

    python -m chaos --seed 123 --minutes 10

The same seed strikes with the same faults at the same times, and sends the same verbs. What meets
what is the machine's affair, so that a seed that failed may have to be tried more than once.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import shutil
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from chaos.conductor import Conductor
from chaos.evidence import read_evidence
from chaos.fleet import Size
from chaos.report import Report, print_report, report_of

FULL = Size(workers=3, clients=3, sessions=12)


async def run_chaos(folder: Path, *, size: Size, seed: int, seconds: float) -> Report:
    """Let it happen in the folder, which is made, and check what is left."""
    await Conductor(folder, size, seed, seconds).run()
    return report_of(read_evidence(folder), seed)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run it, print the report. Exit status 1 when a property does not hold."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seed", type=int, default=random.randrange(1_000_000))
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--workers", type=int, default=FULL.workers)
    parser.add_argument("--clients", type=int, default=FULL.clients)
    parser.add_argument("--sessions", type=int, default=FULL.sessions)
    parser.add_argument("--json", type=Path, help="write the report to this file")
    parser.add_argument("--keep", type=Path, help="leave logs and journals in this new folder")
    parser.add_argument("--check", type=Path, help="only check what a run left in this folder")
    given = parser.parse_args(arguments)
    if given.check:
        report = report_of(read_evidence(given.check), given.seed)
    else:
        print(f"seed {given.seed}, {given.minutes:g} minutes", flush=True)
        size = replace(FULL, workers=given.workers, clients=given.clients, sessions=given.sessions)
        folder = given.keep or Path(tempfile.mkdtemp(prefix="perdure-chaos-")) / "run"
        report = asyncio.run(
            run_chaos(folder, size=size, seed=given.seed, seconds=60 * given.minutes)
        )
        if report.is_good and not given.keep:
            shutil.rmtree(folder.parent)
        else:
            print(f"logs and journals are in {folder}")
    print_report(report)
    if given.json:
        given.json.write_text(json.dumps(report.to_json(), indent=1))
    if not report.is_good:
        print(f"once more: make chaos SEED={report.seed} MINUTES={given.minutes:g}")
    return 0 if report.is_good else 1


if __name__ == "__main__":
    sys.exit(main())
