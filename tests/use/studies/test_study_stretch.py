"""Gaps, restarts and counter resets end a stretch; jitter and months do not."""

import json
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from nodescope.use.studies import STUDIES, Series, changepoint, trend
from nodescope.use.studies.maths.stretch import interpolated, split_stretches

MakeSeries = Callable[..., Series]


def test_a_time_gap_starts_a_new_segment() -> None:
    times_at = np.concatenate((np.arange(100.0), 500 + np.arange(100.0)))
    assert [len(stretch) for stretch in split_stretches(Series(times_at, np.ones(200)))] == [100, 100]


def test_a_run_of_missing_values_is_a_gap_too(series: MakeSeries) -> None:
    values = np.ones(300)
    values[100:200] = np.nan
    assert [len(stretch) for stretch in split_stretches(series(values))] == [100, 100]


def test_a_few_missing_samples_stay_inside_as_missing(series: MakeSeries) -> None:
    values = np.arange(50.0)
    values[10:15] = np.nan
    (stretch,) = split_stretches(series(values))
    assert (len(stretch), stretch.present) == (50, 45)
    assert interpolated(stretch.values) == pytest.approx(np.arange(50.0))


def test_a_named_restart_starts_a_new_segment() -> None:
    times_at = np.arange(100.0)
    parts = split_stretches(Series(times_at, np.ones(100), restarts_at=(40.0,)))
    assert [(part.times_at[0], part.times_at[-1]) for part in parts] == [(0, 39), (40, 99)]


def test_a_counter_is_its_rate_and_a_reset_a_new_segment() -> None:
    counted = np.concatenate((np.arange(0, 100, 2.0), np.arange(0, 100, 2.0)))
    parts = split_stretches(Series(np.arange(100.0), counted, "counter", "bytes"))
    assert [len(part) for part in parts] == [49, 49]
    assert all(np.all(part.values == 2.0) for part in parts)
    assert parts[0].unit == "bytes/s"


def test_months_are_evenly_spaced() -> None:
    months = np.arange("2000-01", "2020-01", dtype="datetime64[M]").astype("datetime64[s]").astype(np.float64)
    (stretch,) = split_stretches(Series(months, np.ones(len(months))))
    assert len(stretch) == 240


def test_a_level_across_a_gap_is_no_change_within_one(series: MakeSeries) -> None:
    """Two lives of a container are two stories: neither has a change in it."""
    random = np.random.default_rng(1)
    times_at = np.concatenate((np.arange(600.0), 4000 + np.arange(600.0)))
    values = np.where(times_at < 1000, 1.0, 5.0) + 0.1 * random.standard_normal(1200)
    assert changepoint.study(Series(times_at, values)).findings == ()


def test_a_trend_is_that_of_the_newest_life() -> None:
    """A leak, a restart, flat since: no trend now."""
    random = np.random.default_rng(2)
    values = np.concatenate((np.linspace(0, 100, 600), np.full(600, 3.0))) + random.standard_normal(1200)
    answer = trend.study(Series(np.arange(1200.0), values, restarts_at=(600.0,)))
    assert answer.status == "none"


times = st.lists(st.floats(0, 1e9, allow_nan=False), max_size=40)
anything = st.lists(st.one_of(st.floats(), st.just(float("nan"))), max_size=40)


@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning")
@pytest.mark.parametrize("name", [name for name in STUDIES if name != "correlation"])
@settings(max_examples=50, deadline=None)
@given(times_at=times, values=anything)
@example(times_at=[0.0, 5e-324, 1e-323, 1e9], values=[1.0, 2.0, 3.0, 4.0])
def test_any_samples_get_an_answer_that_is_json(
    name: str, times_at: list[float], values: list[float]
) -> None:
    """forall times, values: a study answers, and says why where it finds nothing."""
    count = min(len(times_at), len(values))
    with np.errstate(all="ignore"):
        answer = STUDIES[name].run(Series(np.array(times_at[:count]), np.array(values[:count])))
    json.dumps(answer.to_json(), allow_nan=False)
    assert answer.sentence
    assert (answer.reason is not None) == (answer.status in {"not_enough_data", "not_collected"})
