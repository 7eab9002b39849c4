"""Text as it can be sent: the log keeps lone surrogates as it got them, UTF-8 has none."""

from __future__ import annotations

import json
from typing import Any


def valid_text(text: str) -> str:
    """The text with U+FFFD for each lone surrogate."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def valid_json(value: Any) -> Any:
    """The JSON value with U+FFFD for each lone surrogate in its text and its keys."""
    text = json.dumps(value, ensure_ascii=False)
    valid = valid_text(text)
    return value if valid is text else json.loads(valid)
