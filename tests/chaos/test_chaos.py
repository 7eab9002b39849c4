"""A short run of the whole harness: real processes, killed and frozen; `make chaos` runs longer."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from chaos.__main__ import run_chaos
from chaos.fleet import Size

SEED = int(os.environ.get("PERDURE_CHAOS_SEED", "8"))
SECONDS = float(os.environ.get("PERDURE_CHAOS_SECONDS", "30"))


@pytest.mark.timeout(900)
async def test_a_fleet_of_sessions_keeps_its_promises_under_faults(tmp_path: Path) -> None:
    """1.5, 2.6, 2.7, 2.8, 4.5, 5.3, 6.3, 6.6: once more with PERDURE_CHAOS_SEED, and longer with
    PERDURE_CHAOS_SECONDS.
    """
    size = Size(workers=2, clients=2, sessions=6)
    report = await run_chaos(tmp_path / "run", size=size, seed=SEED, seconds=SECONDS)
    found = {finding.property: finding.violations[:5] for finding in report.findings}
    assert {name: broken for name, broken in found.items() if broken} == {}, f"seed {SEED}"
    assert report.numbers["receipts"] > 0
    assert sum(report.faults.values()) > 10
