"""What stores and models meet at the moment: the conductor says so, all workers feel it."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from chaos.schedule import Fault, Kind


@dataclass(frozen=True, slots=True)
class Weather:
    """Shares of the calls that are struck, from 0 to 1, and how slow the store is, in seconds."""

    store_error_before: float = 0.0
    store_error_after: float = 0.0
    full_disk: float = 0.0
    model_error: float = 0.0
    store_seconds: float = 0.0

    def with_fault(self, fault: Fault) -> Weather:
        """The weather while the fault lasts, on top of what there is."""
        share = 0.2 + 0.6 * fault.strength
        match fault.kind:
            case Kind.STORE_ERROR_BEFORE:
                return replace(self, store_error_before=share)
            case Kind.STORE_ERROR_AFTER:
                return replace(self, store_error_after=share)
            case Kind.FULL_DISK:
                return replace(self, full_disk=share)
            case Kind.MODEL_ERROR:
                return replace(self, model_error=share)
            case Kind.SLOW_STORE:
                return replace(self, store_seconds=0.05 + 1.5 * fault.strength)
            case _:
                return self


CALM = Weather()


class Forecast:
    """The weather in a folder, as workers read it and the conductor writes it."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "weather.json"
        self._torn = folder / "tear-an-append"
        self._read_at = -1
        self._weather = CALM

    def now(self) -> Weather:
        """The weather. Cheap: the file is only read again when it has changed."""
        with suppress(FileNotFoundError):
            changed_at = self._path.stat().st_mtime_ns
            if changed_at != self._read_at:
                self._weather = Weather(**json.loads(self._path.read_text()))
                self._read_at = changed_at
        return self._weather

    def change(self, weather: Weather) -> None:
        """From now on it is like this."""
        draft = self._path.with_suffix(".new")
        draft.write_text(json.dumps(asdict(weather)))
        os.replace(draft, self._path)

    def ask_for_a_torn_append(self) -> None:
        """The next worker that writes to a log dies half-way."""
        self._torn.touch()

    def takes_the_torn_append(self) -> bool:
        """Whether it is this worker that dies; only one is told so."""
        try:
            self._torn.unlink()
        except FileNotFoundError:
            return False
        return True
