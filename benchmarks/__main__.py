"""All benchmarks, each in a process of its own, and one table at the end.

A benchmark that breaks is named, and the others go on. The exit status is 1 when one broke or a
budget was missed.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.budgets import BENCHMARKS
from benchmarks.machine import facts
from benchmarks.report import (
    Figure,
    Scale,
    command_line,
    missed_budgets,
    read_figures,
    scale_of,
    write_json,
)
from benchmarks.table import print_table

TIMEOUT = 1_200
"""Seconds that a benchmark may take."""


def main() -> int:
    """Run those that are named, or all of them."""
    parser = command_line("The benchmarks, in one table.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(BENCHMARKS)}")
    arguments = parser.parse_args()
    if unknown := set(arguments.names) - set(BENCHMARKS):
        parser.error(f"no benchmark {', '.join(sorted(unknown))}; there are {BENCHMARKS}")
    machine, scale = facts(), scale_of(arguments)
    figures: list[Figure] = []
    broken: list[str] = []
    for name in arguments.names or BENCHMARKS:
        started = time.monotonic()
        measured = _run(name, scale)
        figures += measured
        if not measured:
            broken.append(name)
        ended = f"{time.monotonic() - started:.0f} s" if measured else "broke"
        print(f"… {name}: {ended}", file=sys.stderr, flush=True)
    print_table("Budgets", figures)
    for name in broken:
        print(f"{name} broke; what it said is above")
    if arguments.json:
        write_json(arguments.json, figures, machine, scale, broken)
        print(f"written to {arguments.json}")
    return 1 if broken else missed_budgets(figures)


def _run(name: str, scale: Scale) -> list[Figure]:
    """The figures of one benchmark; none when it broke, after it has said why."""
    with tempfile.TemporaryDirectory(prefix="perdure-bench-") as folder:
        target = Path(folder) / "figures.json"
        command = [sys.executable, "-m", f"benchmarks.{name}", "--json", str(target)]
        if scale is Scale.QUICK:
            command.append("--quick")
        # In a group of its own, so that its servers and workers end with it.
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, start_new_session=True)
        try:
            # Its status tells of missed budgets as well; whether it broke, the file tells.
            process.wait(TIMEOUT)
        except BaseException as error:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            if not isinstance(error, subprocess.TimeoutExpired):
                raise
            print(f"{name} took more than {TIMEOUT} s", file=sys.stderr)
        return read_figures(target) if target.exists() else []


if __name__ == "__main__":
    sys.exit(main())
