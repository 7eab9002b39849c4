"""The numbers of docs/promises.md are those that the tests name."""

from __future__ import annotations

import re

from tests.packaging.source import ROOT

NAMED = re.compile(r'"""(\d\.\d+(?:, \d\.\d+)*)[:.]')
LISTED = re.compile(r"^- \*\*(\d\.\d+)\*\* ", re.MULTILINE)


def test_every_promise_has_a_test_and_every_number_in_a_test_is_a_promise() -> None:
    texts = [path.read_text("utf-8") for path in (ROOT / "tests").rglob("test_*.py")]
    named = {
        number
        for text in texts
        for numbers in NAMED.findall(text)
        for number in numbers.split(", ")
    }
    listed = LISTED.findall((ROOT / "docs/promises.md").read_text("utf-8"))
    assert len(listed) == len(set(listed))
    assert named == set(listed)
