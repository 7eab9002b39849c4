"""One line about an activity, for whoever watches the session in the Temporal UI."""

from __future__ import annotations

from perdure.codec import dumps_json
from perdure.protocol import ActiveRun, PlannedCall

_LONGEST = 120


def model_summary(run: ActiveRun) -> str:
    """Which model, which turn."""
    return _short(f"{run.model} · turn {run.turn}")


def loop_summary(run: ActiveRun) -> str:
    """Which loop."""
    return _short(f"{run.model} · a loop of its own")


def tool_summary(call: PlannedCall) -> str:
    """The call, as one would type it."""
    arguments = ", ".join(
        f"{name}={dumps_json(value).decode('utf-8', 'replace')}"
        for name, value in call.arguments.items()
    )
    return _short(f"{call.name}({arguments})")


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
