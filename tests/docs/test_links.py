"""The pages lead to what there is, and leave nothing out."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import pytest

import perdure
from perdure.telemetry import conventions
from tests.docs.markdown import PAGES, Page
from tests.packaging.source import ROOT

FILE = re.compile(r"[\w.*/-]+(\.(py|md|toml|sh|jsonl|json)|/)(::\w+)?|Makefile|LICENSE")
MADE = {"dist/", "sessions/customer-42.jsonl", "support.py", "temporal.toml"}
"""What a reader of the pages has or makes."""

pages = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)


@pages
def test_internal_links_lead_somewhere(page: Page) -> None:
    inside = [link for link in page.links if "://" not in link]
    assert [link for link in inside if not _leads_somewhere(page, link)] == []


def _leads_somewhere(page: Page, link: str) -> bool:
    path, _, anchor = link.partition("#")
    target = (page.path.parent / path).resolve() if path else page.path
    if not target.exists():
        return False
    return not anchor or anchor in Page(target.relative_to(ROOT).as_posix()).anchors


def test_every_page_can_be_reached_from_the_readme() -> None:
    by_name = {page.name: page for page in PAGES}
    reached: set[str] = set()
    waiting = ["README.md"]
    while waiting:
        name = waiting.pop()
        if name in by_name and name not in reached:
            reached.add(name)
            folder = by_name[name].path.parent
            links = [link.partition("#")[0] for link in by_name[name].links if "://" not in link]
            waiting += [
                (folder / link).resolve().relative_to(ROOT).as_posix() for link in links if link
            ]
    assert reached == by_name.keys()


@pages
def test_files_that_a_page_names_are_there(page: Page) -> None:
    named = [name for name in page.names if FILE.fullmatch(name)]
    assert [name for name in named if not _is_there(page, name)] == []


def _is_there(page: Page, name: str) -> bool:
    path, _, test = name.partition("::")
    if path in MADE:
        return True
    files = [file for base in _places(page) for file in base.glob(path)]
    return any(not test or f"def {test}(" in file.read_text() for file in files)


def _places(page: Page) -> list[Path]:
    return [ROOT, ROOT / "perdure", page.path.parent]


@pages
def test_names_of_the_library_that_a_page_uses_are_there(page: Page) -> None:
    dotted = {name.partition("(")[0] for name in page.names if name.startswith("perdure.")}
    files = {name for name in dotted if FILE.fullmatch(name)}
    told = {value for value in vars(conventions).values() if isinstance(value, str)}
    assert [name for name in sorted(dotted - files - told) if not _can_be_had(name)] == []


def _can_be_had(name: str) -> bool:
    parts = name.split(".")
    for count in range(len(parts), 0, -1):
        try:
            found: object = import_module(".".join(parts[:count]))
        except ModuleNotFoundError:
            continue
        for part in parts[count:]:
            found = getattr(found, part, None)
        return found is not None
    return False


def test_every_exported_name_is_in_the_docs() -> None:
    text = "\n".join(page.path.read_text("utf-8") for page in PAGES if page.name != "README.md")
    words = set(re.findall(r"\w+", text))
    assert [name for name in perdure.__all__ if name not in words] == []
