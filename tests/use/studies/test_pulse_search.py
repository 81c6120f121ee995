"""Trains of pulses are found by the times of their events, and events at random times are none."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from nodescope.use.studies.maths.pulse_search import PulseTrain, find_pulse_trains
from nodescope.use.studies.series import FloatArray

COUNT = 3600


def noise(seed: int, count: int = COUNT) -> FloatArray:
    return np.random.default_rng(seed).standard_normal(count)


def with_pulses(values: FloatArray, starts: NDArray[Any], width: int, height: float) -> FloatArray:
    for start in np.round(starts).astype(int):
        values[max(0, start) : max(0, start + width)] += height
    return values


def periods(trains: tuple[PulseTrain, ...]) -> list[float]:
    return [train.period_seconds for train in trains]


@pytest.mark.parametrize("jitter", [0.0, 1.0, 2.5])
def test_a_second_of_work_every_minute_is_one_train(jitter: float) -> None:
    """The spectrum of 1 s in 60 has thirty equal harmonics; the times of the events have one distance."""
    random = np.random.default_rng(1)
    starts = 17 + 60 * np.arange(60) + random.normal(0, jitter, 60)
    trains = find_pulse_trains(with_pulses(noise(2), starts, 1, 9.0))
    assert periods(trains) == [pytest.approx(60, abs=0.2)]
    (train,) = trains
    assert train.is_exact
    assert train.width_seconds == 1
    assert len(train.starts) >= 55
    assert train.jitter_seconds == pytest.approx(jitter * np.sqrt(2), abs=0.4 * jitter + 0.1)
    assert train.false_alarm < 1e-20


def test_a_second_is_the_step_that_is_given() -> None:
    values = with_pulses(noise(3), 17 + 60.0 * np.arange(60), 2, 9.0)
    (train,) = find_pulse_trains(values, 15.0)
    assert train.period_seconds == pytest.approx(900, rel=0.001)
    assert train.width_seconds == 30
    assert train.phase_seconds == pytest.approx(17 * 15, abs=5)
    assert list(train.starts[:3]) == [17, 77, 137]


@pytest.mark.parametrize("later", [0, 20], ids=["same second", "twenty seconds later"])
def test_a_longer_job_within_a_shorter_one_is_told_too(later: int) -> None:
    values = with_pulses(noise(4, 7200), 5 + 60.0 * np.arange(120), 3, 9.0)
    values = with_pulses(values, 5 + later + 600.0 * np.arange(12), 15, 9.0)
    assert sorted(periods(find_pulse_trains(values))) == [
        pytest.approx(60, abs=0.1),
        pytest.approx(600, abs=1),
    ]


def test_missing_and_extra_events_do_not_hide_a_train() -> None:
    random = np.random.default_rng(5)
    kept = np.delete(30.0 * np.arange(120), random.choice(120, 20, replace=False))
    values = with_pulses(noise(6), kept, 2, 9.0)
    values = with_pulses(values, random.uniform(0, COUNT, 15), 2, 9.0)
    (train,) = find_pulse_trains(values)
    assert train.period_seconds == pytest.approx(30, abs=0.1)
    assert 0.75 < train.share < 0.95


def test_jitter_that_adds_up_loses_its_phase() -> None:
    """A loop with a sleep: every distance is near 20 s, and after a thousand nobody knows the phase."""
    random = np.random.default_rng(7)
    starts = np.cumsum(random.normal(20, 0.8, 1000))
    values = with_pulses(noise(8, 20_100), starts, 3, 9.0)
    (train,) = find_pulse_trains(values)
    assert train.period_seconds == pytest.approx(20, abs=0.3)
    assert train.drift_seconds > 5 * train.jitter_seconds


def test_a_collector_falls_at_the_end_of_each_cycle() -> None:
    random = np.random.default_rng(9)
    edges = np.concatenate(([0.0], np.cumsum(random.normal(90, 3, 60))))
    cycle = np.searchsorted(edges, np.arange(COUNT), side="right") - 1
    values = (np.arange(COUNT) - edges[cycle]) / np.diff(edges)[cycle] * 12 + noise(10)
    (train,) = find_pulse_trains(values)
    assert train.kind == "fall"
    assert train.period_seconds == pytest.approx(90, rel=0.03)


def test_a_job_of_one_hour_in_a_day_has_that_hour_as_its_events() -> None:
    values = with_pulses(noise(11, 86_400), 30_000 + 60.0 * np.arange(60), 4, 6.0)
    (train,) = find_pulse_trains(values)
    assert train.period_seconds == pytest.approx(60, abs=0.1)
    assert train.starts[0] == pytest.approx(30_000, abs=1)
    assert train.starts[-1] == pytest.approx(33_540, abs=1)


def test_events_at_random_times_are_no_train() -> None:
    """Poisson events, as many as a cron job would have, in a hundred series."""
    random = np.random.default_rng(12)
    told = 0
    for seed in range(100):
        starts = random.uniform(0, COUNT, random.poisson(40))
        told += bool(find_pulse_trains(with_pulses(noise(seed), starts, 2, 9.0)))
    assert told <= 2


@pytest.mark.parametrize(
    "values",
    [np.zeros(1200), np.full(1200, np.nan), np.linspace(0, 1, 1200), noise(13), np.arange(10.0)],
    ids=["zero", "missing", "ramp", "white", "short"],
)
def test_what_has_no_events_has_no_train(values: FloatArray) -> None:
    assert find_pulse_trains(values) == ()
