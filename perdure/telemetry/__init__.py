"""OpenTelemetry: traces, metrics and logs of sessions, for those who ask for them.

Nothing of OpenTelemetry is loaded unless it is turned on, by `otel=True`, `--otel` or PERDURE_OTEL.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from perdure.errors import TelemetryError

if TYPE_CHECKING:
    from perdure.telemetry.setup import Telemetry

VARIABLE = "PERDURE_OTEL"
"""Turns telemetry on, with 1, true, yes or on."""

_ON = ("1", "true", "yes", "on")
_OFF = ("", "0", "false", "no", "off")

_active: Telemetry | None = None


def telemetry(wanted: bool | None = None) -> Telemetry | None:
    """The telemetry of this process, if it is wanted, or if PERDURE_OTEL says so; the same each
    time.

    Raises TelemetryError when a package is missing, or when a setting is none.
    """
    global _active
    if not (_is_on() if wanted is None else wanted):
        return None
    if _active is None:
        try:
            from perdure.telemetry.setup import set_up
        except ImportError as error:
            raise TelemetryError(
                f"telemetry needs the package {error.name}: pip install 'perdure[otel]'"
            ) from error
        _active = set_up()
    return _active


def close_telemetry() -> None:
    """Send what has not been sent yet, within a few seconds; to be called when a process ends."""
    if _active is not None:
        _active.close()


def _is_on() -> bool:
    text = os.environ.get(VARIABLE, "").strip().lower()
    if text not in (*_ON, *_OFF):
        raise TelemetryError(f"{VARIABLE} is {text!r}; set it to 1 or 0")
    return text in _ON
