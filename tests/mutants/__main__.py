"""`make mutants`: break each safeguard, and print who noticed.

python -m tests.mutants            all of them
python -m tests.mutants lock log   those whose name has one of these words
"""

from __future__ import annotations

import sys

from tests.mutants.catalogue import MUTANTS
from tests.mutants.trial import Verdict, tried


def main(words: list[str]) -> int:
    """The exit status: 1 when a test did not notice."""
    chosen = [m for m in MUTANTS if not words or any(word in m.name for word in words)]
    unnoticed = 0
    for mutant in chosen:
        print(f"\n{mutant.name}  ({mutant.file})", flush=True)
        for verdict in tried(mutant):
            unnoticed += not verdict.is_noticed
            print(_row(verdict), flush=True)
    print(f"\n{len(chosen)} mutants; tests that did not notice: {unnoticed}")
    return 1 if unnoticed else 0


def _row(verdict: Verdict) -> str:
    sign = "noticed    " if verdict.is_noticed else "NOT NOTICED"
    return f"  {sign}  {verdict.test.removeprefix('tests/')}"


sys.exit(main(sys.argv[1:]))
