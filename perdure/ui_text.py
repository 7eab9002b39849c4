"""Whether what is said in sessions is seen in the Temporal UI."""

from __future__ import annotations

import os
from typing import Final

from perdure.errors import ServerError

VARIABLE = "PERDURE_UI_TEXT"
"""The environment variable that says so."""

_WORDS: Final = {"": True, "on": True, "off": False}


def given_ui_text(shown: bool | None) -> bool:
    """Whether a worker shows in details and summaries what is said: as it was told, or as
    PERDURE_UI_TEXT says (on or off), or yes. Raises ServerError for another word.
    """
    if shown is not None:
        return shown
    word = os.environ.get(VARIABLE, "").strip().lower()
    if word not in _WORDS:
        raise ServerError(f"{VARIABLE} is on or off, not {word[:80]!r}")
    return _WORDS[word]
