"""`make model`: explore the large scenarios as well, and say how many states there were.

python -m tests.model                  all of them
python -m tests.model "every fault"    those whose name has these words
"""

from __future__ import annotations

import logging
import sys
import time

from tests.model.explorer import explore
from tests.model.scenarios import LARGE, SMALL


def main(words: str) -> int:
    """The exit status: 1 when a promise was broken."""
    logging.disable(logging.WARNING)
    states = failed = 0
    for scenario in [*SMALL, *LARGE]:
        if words not in scenario.name:
            continue
        began = time.monotonic()
        explored = explore(scenario)
        states += explored.states
        print(
            f"{explored.states:>8,} states {explored.steps:>8,} steps"
            f" {time.monotonic() - began:>6.0f} s  {scenario.name}",
            flush=True,
        )
        if explored.counterexample is not None:
            failed = 1
            print(explored.counterexample)
    print(f"{states:>8,} states")
    return failed


sys.exit(main(" ".join(sys.argv[1:])))
