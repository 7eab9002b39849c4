"""The map in CONTRIBUTING.md: it names what is there, and nothing of the library is missing."""

import re
from pathlib import Path

from tests.packaging.source import ROOT, modules


def mapped() -> dict[str, set[Path]]:
    """Each place that the map names, in perdure/ or at the root, and the files there."""
    text = (ROOT / "CONTRIBUTING.md").read_text()
    section = text.partition("## The map")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (`.*?) \|", section, re.MULTILINE)
    places = re.findall(r"`([^`]+)`", " ".join(rows))
    return {place: _files_at(place) for place in places}


def _files_at(place: str) -> set[Path]:
    pattern = f"{place}**/*.py" if place.endswith("/") else place
    return {file.resolve() for base in (ROOT / "perdure", ROOT) for file in base.glob(pattern)}


def test_every_place_on_the_map_is_there() -> None:
    assert [place for place, files in mapped().items() if not files] == []


def test_every_module_is_on_the_map() -> None:
    on_the_map = set[Path]().union(*mapped().values())
    files = {path.resolve(): name for name, path in modules().items() if name != "perdure"}
    assert [name for file, name in files.items() if file not in on_the_map] == []
