"""The sources of agents, and their changes."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncGenerator, Sequence
from importlib.machinery import PathFinder
from importlib.util import find_spec
from pathlib import Path

from perdure.errors import CommandError, ServerMissingError


def folders_of(spec: str, more: Sequence[Path] = ()) -> list[Path]:
    """The folders whose sources are watched: the current one, those of the agents' modules, and
    those that were named. Raises CommandError for one that is not there.
    """
    found = [Path.cwd()]
    for place in spec.split(","):
        name = place.partition(":")[0].strip().partition(".")[0]
        module = PathFinder.find_spec(name, [os.getcwd(), *sys.path]) if name else None
        if module is not None and module.origin is not None:
            found.append(Path(module.origin).resolve().parent)
    for path in more:
        if not path.exists():
            raise CommandError(f"{str(path)!r} cannot be watched: it is not there")
        found.append(path.resolve())
    # One that lies in another is watched with it.
    return [
        path
        for path in dict.fromkeys(found)
        if not any(path != other and path.is_relative_to(other) for other in found)
    ]


def check_watching() -> None:
    """Raise ServerMissingError when the package that watches files is not installed."""
    if find_spec("watchfiles") is None:
        raise ServerMissingError(
            "sources are watched with `watchfiles`: install perdure with its extra `local`"
        )


async def changes(paths: Sequence[Path]) -> AsyncGenerator[list[str]]:
    """Which files have changed, each time that some have: Python's, and those that were named.

    Needs what `check_watching` looks for.
    """
    from watchfiles import PythonFilter, awatch

    here = Path.cwd()
    async for changed in awatch(*paths, watch_filter=PythonFilter(), debounce=200, step=50):
        yield sorted(_shown(Path(path), here) for _, path in changed)


def _shown(path: Path, here: Path) -> str:
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)
