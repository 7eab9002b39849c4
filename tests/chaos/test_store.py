"""The faults are what they say: the store fails before or after, the disk is full half-way."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from chaos.clock import MovableClock, build_clock
from chaos.journal import Journal, read_notes
from chaos.processes import ChildProcess
from chaos.store import FailingStore, spoil_the_disk
from chaos.weather import CALM, Forecast, Weather
from perdure.entries import text
from perdure.errors import StoreError
from perdure.stores import FileStore, log_writer

ENTRY = text("here").with_header(id="e1")


@pytest.mark.parametrize(
    "weather, stored",
    [(Weather(store_error_before=1.0), 0), (Weather(store_error_after=1.0), 1)],
    ids=["before the commit", "after it"],
)
async def test_an_append_fails_before_or_after_its_commit(
    tmp_path: Path, weather: Weather, stored: int
) -> None:
    forecast, journal = Forecast(tmp_path), Journal(tmp_path, "worker")
    files = FileStore(tmp_path / "sessions")
    store = FailingStore(files, forecast, journal)
    await store.create_session("s")
    forecast.change(weather)
    with pytest.raises(StoreError, match="chaos"):
        await store.append_entries("s", [ENTRY])
    assert len(await files.load_entries("s")) == stored
    forecast.change(CALM)
    await store.append_entries("s", [ENTRY])
    assert await store.load_entries("s") == [ENTRY]
    assert [note["call"] for note in read_notes(journal.path)] == ["append"]


async def test_a_full_disk_takes_half_of_a_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_writer, "_write_all", log_writer._write_all)  # put back at the end
    forecast = Forecast(tmp_path)
    store = FileStore(tmp_path / "sessions")
    await store.create_session("s")
    spoil_the_disk(forecast, Journal(tmp_path, "worker"))
    forecast.change(Weather(full_disk=1.0))
    with pytest.raises(StoreError, match="No space left"):
        await store.append_entries("s", [ENTRY])
    forecast.change(CALM)
    await store.append_entries("s", [ENTRY])
    assert await store.load_entries("s") == [ENTRY]


async def test_the_clock_of_a_process_is_moved_while_it_runs(tmp_path: Path) -> None:
    library = build_clock(tmp_path)
    if library is None:
        pytest.skip("there is no C compiler")
    clock = MovableClock(library, tmp_path / "clock")
    clock.set(86_400)
    output = tmp_path / "time"
    code = "import sys, time; sys.stderr.write(str(time.time()))"
    process = ChildProcess([sys.executable, "-c", code], output, environment=clock.environment())
    await process.start()
    await process.ended()
    assert float(output.read_text()) - output.stat().st_mtime == pytest.approx(86_400, abs=60)
