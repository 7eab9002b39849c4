"""All benchmarks, each in a process of its own, and one table at the end.

A budget that is missed is printed; the exit status is 0 unless a benchmark broke.
"""

from __future__ import annotations

import dataclasses
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.report import Figure, command_line, print_table, read_json, write_json

BENCHMARKS = (
    "turn_history",
    "turn_latency",
    "long_run",
    "takeover",
    "cancel",
    "open_and_view",
    "store_appends",
    "postgres_appends",
    "sizing",
)


def main() -> int:
    """Run those that are named, or all of them."""
    parser = command_line("The benchmarks, in one table.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(BENCHMARKS)}")
    arguments = parser.parse_args()
    if unknown := set(arguments.names) - set(BENCHMARKS):
        parser.error(f"no benchmark {', '.join(sorted(unknown))}; there are {BENCHMARKS}")
    options = [f"--{name}" for name in ("quick", "long") if getattr(arguments, name)]
    figures: list[Figure] = []
    broken: list[str] = []
    for name in arguments.names or BENCHMARKS:
        print(f"… {name}", file=sys.stderr, flush=True)
        measured = _run(name, options)
        if measured is None:
            broken.append(name)
        else:
            figures += measured
    print_table("Budgets", figures)
    if arguments.json:
        write_json(arguments.json, figures)
    if broken:
        print(f"these broke: {', '.join(broken)}", file=sys.stderr)
    return 1 if broken else 0


def _run(name: str, options: list[str]) -> list[Figure] | None:
    """The figures of one benchmark; None when it broke, after it has said why."""
    with tempfile.TemporaryDirectory(prefix="perdure-bench-") as folder:
        target = Path(folder) / "figures.json"
        command = [sys.executable, "-m", f"benchmarks.{name}", "--json", str(target), *options]
        finished = subprocess.run(command, stdout=subprocess.DEVNULL, check=False)
        if finished.returncode != 0:
            return None
        return [dataclasses.replace(figure, benchmark=name) for figure in read_json(target)]


if __name__ == "__main__":
    sys.exit(main())
