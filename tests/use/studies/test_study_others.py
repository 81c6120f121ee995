"""Summary, anomaly and correlation: figures, unusual windows, and who moved with whom."""

from collections.abc import Callable

import numpy as np
import pytest
from bench import studies_sets as sets

from nodescope.use.studies import STUDIES, Series, anomaly, correlation, summary
from nodescope.use.studies.maths.tail_probability import student_tail
from nodescope.use.studies.series import FloatArray

MakeSeries = Callable[..., Series]


def test_the_figures_are_those_of_the_measured_values(series: MakeSeries) -> None:
    values = np.array([1.0, 2.0, np.nan, 3.0, 4.0])
    measures = summary.study(series(values)).findings[0].measures
    assert (measures["average"], measures["min"], measures["max"]) == (2.5, 1.0, 4.0)
    assert measures["p95"] == pytest.approx(3.85)
    assert measures["stddev"] == pytest.approx(np.std([1, 2, 3, 4], ddof=1))
    assert measures["trend"] == "unknown"


@pytest.mark.parametrize(
    ("values", "word"),
    [
        (np.linspace(1, 2, 300), "increasing"),
        (np.linspace(2, 1, 300), "decreasing"),
        (1 + 0.01 * np.random.default_rng(1).standard_normal(300), "stable"),
        (1 + 0.9 * np.random.default_rng(1).standard_normal(300), "volatile"),
    ],
)
def test_the_trend_class_is_one_word(series: MakeSeries, values: FloatArray, word: str) -> None:
    assert summary.study(series(values)).findings[0].measures["trend"] == word


def test_being_near_the_limit_is_said(series: MakeSeries) -> None:
    values = np.where(np.arange(100) < 75, 10.0, 95.0)
    assert "for 25 % of the time" in summary.study(series(values, limit=100.0)).sentence


def test_throttling_is_saturation_without_a_limit() -> None:
    throttled = Series(
        np.arange(100.0),
        np.where(np.arange(100) < 50, 0.0, 0.4),
        unit="share of periods",
        metric="cpu_throttled",
    )
    assert "above 10 %" in summary.study(throttled).sentence


def test_an_unusual_window_is_told_with_its_beginning(series: MakeSeries) -> None:
    random = np.random.default_rng(2)
    values = random.standard_normal(3600)
    values[-100:] += 4
    finding = anomaly.study(series(values)).findings[0]
    assert finding.start_at == pytest.approx(1_700_003_500, abs=70)
    assert finding.magnitude == pytest.approx(4, abs=1.5)


def test_the_stated_rate_of_false_alarms_holds(series: MakeSeries) -> None:
    """1 % is stated; at most 3 % of 240 usual windows are called unusual."""
    random = np.random.default_rng(3)
    names = ("white", "heavy tails", "Poisson", "autoregressive 0.5", "autoregressive 0.9", "pink")
    usual = [sets.BACKGROUNDS[name](random, 900) for name in names for _ in range(40)]
    assert sum(anomaly.study(series(values)).status == "found" for values in usual) <= 7


def test_the_same_hour_of_earlier_days_is_what_is_usual(series: MakeSeries) -> None:
    """A nightly job is usual at night and unusual at noon."""
    random = np.random.default_rng(4)
    minutes = np.arange(5 * 1440)
    values = np.where(minutes % 1440 >= 1380, 10.0, 1.0) + 0.3 * random.standard_normal(len(minutes))
    midnight = Series(np.floor(1_700_000_000 / 86400) * 86400 + 60.0 * minutes, values)
    assert anomaly.study(midnight, window_seconds=3600).status == "none"
    noon = Series(midnight.times_at[: -11 * 60], np.append(values[: -12 * 60], np.full(60, 10.0)))
    finding = anomaly.study(noon, window_seconds=3600).findings[0]
    assert finding.evidence["compared_with"] == "same hour of earlier days"


def test_the_planted_cause_is_among_the_first_three() -> None:
    """In 90 % (measured 100 %), with its lag."""
    random = np.random.default_rng(5)
    times_at = np.arange(1200.0)
    first_three = 0
    for _ in range(20):
        case = sets.cause_case(random)
        others = [Series(times_at, values, metric=str(place)) for place, values in enumerate(case.others)]
        told = correlation.study(Series(times_at, case.target), others).findings[:3]
        match = [finding for finding in told if finding.measures["other"] == str(case.cause)]
        first_three += bool(match) and match[0].measures["lag_seconds"] == pytest.approx(case.lag, abs=2)
    assert first_three >= 18


def test_random_walks_do_not_correlate_by_being_slow() -> None:
    """Of 300 pairs of independent walks at most 5 % are called related."""
    random = np.random.default_rng(6)
    times_at = np.arange(600.0)
    told = 0
    for _ in range(10):
        walks = [Series(times_at, sets.random_walk(random, 600), metric=str(place)) for place in range(31)]
        told += len(correlation.study(walks[0], walks[1:]).findings)
    assert told <= 15


def test_without_others_there_is_nothing_to_compare(series: MakeSeries) -> None:
    answer = STUDIES["correlation"].run(series(np.random.default_rng(7).standard_normal(100)))
    assert answer.status == "not_enough_data"


def test_what_was_not_collected_says_why() -> None:
    empty = Series(np.empty(0), np.empty(0), not_collected="the pressure source is absent: Linux before 4.20")
    for study in STUDIES.values():
        answer = study.run(empty)
        assert (answer.status, answer.reason) == ("not_collected", empty.not_collected)


@pytest.mark.parametrize(
    ("t", "freedom", "expected"), [(2.228, 10, 0.05), (2.571, 5, 0.05), (3.169, 10, 0.01)]
)
def test_the_student_tail_is_that_of_the_tables(t: float, freedom: int, expected: float) -> None:
    assert student_tail(t, freedom) == pytest.approx(expected, rel=0.03)
