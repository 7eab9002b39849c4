"""docs/cli.md shows what the commands that read really print."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from tests.cli.test_command_line import perdure
from tests.docs.markdown import PAGES

READERS = {"log", "tree", "verify"}
[PAGE] = [page for page in PAGES if page.name == "docs/cli.md"]
SHOWN = [
    (shlex.split(asked.text)[1:], told.text)
    for asked, told in zip(PAGE.blocks, PAGE.blocks[1:], strict=False)
    if (asked.language, told.language) == ("sh", "text")
]


@pytest.mark.parametrize(
    "arguments, shown", [shown for shown in SHOWN if shown[0][0] in READERS], ids=str
)
def test_the_page_shows_what_is_printed(folder: Path, arguments: list[str], shown: str) -> None:
    status, printed, _ = perdure(*arguments, cwd=folder, TZ="UTC")
    assert (status, printed.strip()) == (0, shown.strip())
