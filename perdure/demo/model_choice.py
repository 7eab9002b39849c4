"""Which model the demo talks to: the one that was asked for, a provider's whose key is there, or
none.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from perdure.demo.agent import SCRIPT
from perdure.errors import ModelSpecError
from perdure.models import check_model, resolve_model

DEFAULTS: Final = {
    "ANTHROPIC_API_KEY": "anthropic:claude-haiku-5-5",
    "OPENAI_API_KEY": "openai:gpt-5.6-luna",
    "GOOGLE_API_KEY": "google:gemini-3.8-flash",
    "GEMINI_API_KEY": "google:gemini-3.8-flash",
}
"""The model for each provider's key, small ones: what the demo asks is easy."""


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """A model's spec, or `script`, and why it is that one."""

    spec: str
    reason: str

    @property
    def is_script(self) -> bool:
        """Whether nobody is asked."""
        return self.spec == SCRIPT


def choose_model(wanted: str | None, environment: Mapping[str, str]) -> ModelChoice:
    """The model for this demo.

    Raises ModelSpecError or AgentError when the one that is wanted cannot be used. One that nobody
    named is passed over.
    """
    if wanted is not None:
        if wanted != SCRIPT:
            check_model(wanted)
            resolve_model(wanted)
        return ModelChoice(wanted, "as --model says")
    for key, spec in DEFAULTS.items():
        if not environment.get(key):
            continue
        try:
            resolve_model(spec)
        except ModelSpecError:
            return ModelChoice(
                SCRIPT,
                f"{key} is set, but its provider's package is not installed: "
                f"pip install 'perdure[{spec.partition(':')[0]}]'",
            )
        return ModelChoice(spec, f"{key} is set; --model script needs none")
    return ModelChoice(SCRIPT, "no API key needed; --model SPEC talks to a real one")
