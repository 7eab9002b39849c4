"""How long to look. `PERDURE_FUZZ` is how many times more examples are tried than by default; the
examples are new ones then, and the same ones at each run otherwise.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

TIMES = int(os.environ.get("PERDURE_FUZZ", "0"))


def effort(examples: int) -> settings:
    """So many examples in the tests."""
    return settings(
        max_examples=examples * max(TIMES, 1),
        derandomize=TIMES == 0,
        deadline=None,
        database=None,
        print_blob=True,
        suppress_health_check=list(HealthCheck),
    )
