"""Anomaly, and what is common to all studies."""

from collections.abc import Callable

import numpy as np
import pytest
from bench import studies_sets as sets

from nodescope.use.studies import STUDIES, Series, anomaly
from nodescope.use.studies.maths.tail_probability import student_tail

MakeSeries = Callable[..., Series]


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
