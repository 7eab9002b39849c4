"""The files that the demo's tools work on: those of this checkout, or of the installed package."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

LARGEST: Final = 500_000
"""Bytes; larger files are no text that anyone wants to read here."""


@dataclass(frozen=True, slots=True)
class Project:
    """A folder that can be looked at, and nothing outside of it.

    Hidden files are left out, and where the folder is shared with other packages, so are they.
    """

    root: Path
    only: str = ""
    """The one name in the root that may be seen; empty: all of them."""

    @classmethod
    def here(cls) -> Self:
        """The checkout that perdure runs from, or perdure alone when it was installed."""
        package = Path(__file__).resolve().parents[1]
        if (package.parent / "pyproject.toml").is_file():
            return cls(package.parent)
        return cls(package.parent, only=package.name)

    def find(self, path: str) -> Path:
        """The file or folder at a path relative to the root.

        Raises ValueError for what is not in the project, with words that a model understands.
        """
        steps = [step for step in path.replace("\\", "/").split("/") if step not in ("", ".")]
        found = self.root.joinpath(*steps)
        if not all(map(_is_shown, steps)) or not self._holds(found):
            raise ValueError(f"{path!r} is not in this project; list_files('.') shows what is")
        return found

    def children(self, folder: Path) -> list[str]:
        """The names in a folder, sorted; folders end in a slash."""
        if self.only and folder == self.root:
            return [f"{self.only}/"]
        return [
            entry.name + ("/" if entry.is_dir() else "")
            for entry in sorted(folder.iterdir())
            if _is_shown(entry.name)
        ]

    def texts(self, start: Path) -> Iterator[tuple[str, list[str]]]:
        """The text files at or below a path: where each is, and its lines. Links are followed, but
        not out of the project, and no file comes twice.
        """
        seen: set[Path] = set()
        for path in self._files(start):
            target = path.resolve()
            if target in seen or not self._holds(path) or path.stat().st_size > LARGEST:
                continue
            seen.add(target)
            try:
                yield path.relative_to(self.root).as_posix(), path.read_text("utf-8").splitlines()
            except (OSError, UnicodeDecodeError):
                continue

    def _files(self, start: Path) -> Iterator[Path]:
        waiting, entered = [start], set()
        while waiting:
            path = waiting.pop()
            if path.is_file():
                yield path
            elif path.is_dir() and path.resolve() not in entered:
                entered.add(path.resolve())
                with contextlib.suppress(PermissionError):
                    names = reversed(self.children(path))
                    waiting.extend(path / name.rstrip("/") for name in names)

    def _holds(self, found: Path) -> bool:
        if not found.exists():
            return False
        target = found.resolve()
        return target.is_relative_to(self.root / self.only) or target == self.root


def _is_shown(name: str) -> bool:
    return not name.startswith((".", "__pycache__"))
