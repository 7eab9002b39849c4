"""A seed is a schedule: the same one strikes again as it did."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from chaos.schedule import Fault, Kind, schedule
from chaos.weather import CALM, Forecast


def test_a_seed_gives_the_same_faults_and_another_seed_gives_others() -> None:
    assert schedule(7, 60) == schedule(7, 60)
    assert schedule(7, 60) != schedule(8, 60)


@pytest.mark.parametrize("seed", range(20))
def test_in_a_minute_every_kind_of_fault_strikes(seed: int) -> None:
    faults = schedule(seed, 60)
    assert {fault.kind for fault in faults} == set(Kind)
    assert [fault.at for fault in faults] == sorted(fault.at for fault in faults)


def test_no_kind_strikes_much_more_often_than_another() -> None:
    counts = Counter(fault.kind for fault in schedule(3, 1_000))
    assert max(counts.values()) - min(counts.values()) <= 1


def test_the_weather_is_what_the_faults_that_last_make_of_it(tmp_path: Path) -> None:
    forecast = Forecast(tmp_path)
    assert forecast.now() == CALM
    slow = Fault(at=0, kind=Kind.SLOW_STORE, seconds=1, target=0, strength=1)
    full = Fault(at=0, kind=Kind.FULL_DISK, seconds=1, target=0, strength=0.5)
    forecast.change(CALM.with_fault(slow).with_fault(full))
    assert (forecast.now().store_seconds, forecast.now().full_disk) == (1.55, 0.5)
    forecast.change(CALM)
    assert Forecast(tmp_path).now() == CALM


def test_one_worker_is_told_to_tear_its_append(tmp_path: Path) -> None:
    forecast = Forecast(tmp_path)
    forecast.ask_for_a_torn_append()
    assert [forecast.takes_the_torn_append() for _ in range(3)] == [True, False, False]
