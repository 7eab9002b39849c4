"""What the operating system is asked for, seen from the outside."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def disk_calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The calls that write, flush or link a file, each with the name of the file, in order."""
    calls: list[str] = []

    def name_of(file: int | bytes) -> str:
        path = os.readlink(f"/dev/fd/{file}") if isinstance(file, int) else os.fsdecode(file)
        name = Path(path).name
        return ".new" if name.startswith(".new-") else name

    def watch(function: str, verb: str, files: int) -> None:
        real: Callable[..., Any] = getattr(os, function)

        def call(*arguments: Any) -> Any:
            result = real(*arguments)
            calls.append(" ".join([verb, *map(name_of, arguments[:files])]))
            return result

        monkeypatch.setattr(os, function, call)

    watch("write", "write", 1)
    watch("fsync", "flush", 1)
    watch("fdatasync", "flush", 1)
    watch("link", "link", 2)
    return calls
