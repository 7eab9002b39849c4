"""What is said in a run: every text holds a word that occurs nowhere else, so that each entry of a
log can be traced to who produced it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

_ORDER = re.compile(r" do=([a-z_,]*) rounds=(\d+)$")


def unique_word() -> str:
    """A word that nobody said before."""
    return os.urandom(6).hex()


def question(tools: Sequence[str] = (), rounds: int = 1) -> str:
    """What a client asks; the model calls these tools, so many times over."""
    return f"ask {unique_word()} do={','.join(tools)} rounds={rounds}"


def order_of(text: str) -> tuple[list[str], int]:
    """The tools that a question asks for, and how many times."""
    found = _ORDER.search(text)
    if found is None:
        return [], 0
    return [name for name in found[1].split(",") if name], int(found[2])
