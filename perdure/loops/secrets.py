"""Keeping the secrets of a command's environment out of what is told of it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping

_SECRET = re.compile(r"KEY|TOKEN|SECRET|PASSW|CREDENTIAL|AUTH", re.IGNORECASE)
_SHORTEST = 4


def secrets_of(given: Mapping[str, str | None]) -> list[str]:
    """The values that must not be told: all that the command is given of its own, and of this
    process's variables those whose names say that they are secret.
    """
    named = (value for name, value in os.environ.items() if _SECRET.search(name))
    values = {value for value in (*given.values(), *named) if value and len(value) >= _SHORTEST}
    return sorted(values, key=len, reverse=True)


def scrubbed(text: str, secrets: Iterable[str]) -> str:
    """The text with each secret replaced."""
    for secret in secrets:
        text = text.replace(secret, "***")
    return text
