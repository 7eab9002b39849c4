"""The numbers in docs/limits.md are those of the code."""

from __future__ import annotations

import re
from datetime import timedelta
from importlib import import_module

import pytest

from tests.packaging.source import ROOT

ROW = re.compile(
    r"^\| (?P<what>.+?) \| (?P<value>[\d,]+) \| `(?P<name>perdure[\w.]+)` \|$", re.MULTILINE
)
ROWS = list(ROW.finditer((ROOT / "docs/limits.md").read_text("utf-8")))


@pytest.mark.parametrize("row", [pytest.param(row, id=row["what"][:50]) for row in ROWS])
def test_a_limit_is_the_one_that_holds(row: re.Match[str]) -> None:
    module, _, name = row["name"].rpartition(".")
    constant = getattr(import_module(module), name)
    if isinstance(constant, timedelta):
        constant = constant.total_seconds()
    assert row["value"] == f"{constant:,.0f}"


def test_the_limits_were_found() -> None:
    assert len(ROWS) >= 12
