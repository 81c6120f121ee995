"""Series of kinds that no generator of the bench has: would somebody on call agree with the sentence?"""

from collections.abc import Callable

import numpy as np
import pytest

from nodescope.use.studies import Series, changepoint, periodicity, summary, trend

MakeSeries = Callable[..., Series]
MIB = 2.0**20
MONDAY_AT = 1_699_833_600.0


def old_and_young(random: np.random.Generator, leak: float, hours: float) -> np.ndarray:
    """A heap that is cleared of its young every half minute, and of its old twice an hour; leak in MiB an hour."""
    live, old, young = 150.0, 150.0, 0.0
    values = np.empty(int(3600 * hours))
    for second in range(len(values)):
        live += leak / 3600
        young += max(0.0, random.normal(4, 1.5))
        if young > 120:
            young, old = 0.0, old + random.uniform(0.5, 4)
        old = live if old > live + 120 else max(old, live)
        values[second] = 80 + young + old
    return values * MIB


def test_a_leak_shows_in_the_crests_of_the_crests(series: MakeSeries) -> None:
    random = np.random.default_rng(61)
    asked = series(old_and_young(random, 100.0, 6), unit="bytes", limit=1500 * MIB)
    finding = trend.study(asked).findings[0]
    slope = finding.measures["slope_per_second"]
    assert isinstance(slope, float)
    assert finding.measures["verdict"] == "leak"
    assert slope * 3600 / MIB == pytest.approx(100, rel=0.05)
    # 80 + 120 of young and 120 of old above what lives.
    true = (1500 - 80 - 120 - 120 - 150 - 600) / 100 * 3600
    assert finding.measures["time_to_limit_seconds"] == pytest.approx(true, rel=0.1)


def test_the_old_of_a_heap_that_fills_until_it_is_cleared_is_no_leak(series: MakeSeries) -> None:
    random = np.random.default_rng(62)
    for hours in (2, 6):
        asked = series(old_and_young(random, 0.0, hours), unit="bytes", limit=900 * MIB)
        findings = trend.study(asked).findings
        assert [one.measures["verdict"] for one in findings if one.measures["verdict"] == "leak"] == []


def test_a_short_look_at_a_collector_says_that_a_fuller_collection_may_come(series: MakeSeries) -> None:
    random = np.random.default_rng(63)
    asked = series(old_and_young(random, 0.0, 1 / 3), unit="bytes", limit=900 * MIB)
    finding = trend.study(asked).findings[0]
    assert "a fuller collection to come is not excluded" in finding.sentence
    assert "may be collected" in str(finding.measures["caution"])


def working_week(random: np.random.Generator, leak: float, days: int, zone_hours: float = 0.0) -> Series:
    """A sample a minute from a Monday on; weekends carry a third of the load; leak in MiB a day."""
    minutes = np.arange(days * 1440, dtype=np.float64)
    here_days = minutes / 1440 + zone_hours / 24
    load = np.exp(-0.5 * ((here_days % 1 * 24 - 14) / 4) ** 2) * np.where(here_days % 7 >= 5, 0.3, 1.0)
    values = 200 + leak * minutes / 1440 + 150 * load + 4 * random.standard_normal(len(minutes))
    return Series(
        np.asarray(MONDAY_AT + 60.0 * minutes), values * MIB, unit="bytes", limit=800 * MIB, metric="memory"
    )


@pytest.mark.parametrize(("days", "zone_hours"), [(7, 0.0), (10, 0.0), (10, 9.0), (15, -5.0)])
def test_a_leak_below_a_working_week_is_told(days: int, zone_hours: float) -> None:
    """Without a weekend of its own, a load of 10 days had "neither rises nor falls"."""
    random = np.random.default_rng(64)
    finding = trend.study(working_week(random, 12.0, days, zone_hours)).findings[0]
    slope = finding.measures["slope_per_second"]
    assert isinstance(slope, float)
    assert finding.measures["verdict"] == "leak"
    assert slope * 86400 / MIB == pytest.approx(12, rel=0.1)


@pytest.mark.parametrize("days", [7, 10, 15])
def test_a_working_week_does_not_rise(days: int) -> None:
    assert trend.study(working_week(np.random.default_rng(65), 0.0, days)).findings == ()


def test_a_rise_that_is_over_is_no_leak(series: MakeSeries) -> None:
    """What is left of its slope is on one side of zero by chance."""
    for seed in range(70, 76):
        random = np.random.default_rng(seed)
        values = 200 + np.minimum(np.arange(3600) * 0.1, 150) + 2 * random.standard_normal(3600)
        asked = series(values * MIB, unit="bytes", limit=500 * MIB)
        assert trend.study(asked).findings == ()
        assert "before, it rose by" in summary.study(asked).sentence


def test_a_value_that_was_set_once_has_no_trend(series: MakeSeries) -> None:
    asked = series(np.where(np.arange(3600) > 2000, 9.0, 7.0))
    assert trend.study(asked).findings == ()
    assert "rose from 7 to 9" in summary.study(asked).sentence


def test_a_limit_that_was_passed_is_told_with_its_moment(series: MakeSeries) -> None:
    random = np.random.default_rng(66)
    values = 300 + 0.1 * np.arange(3600) + 0.5 * random.standard_normal(3600)
    asked = series(values * MIB, unit="bytes", limit=500 * MIB)
    # 2,000 s after 22:13:20.
    assert "it has been at its limit since 2023-11-14 22:46:4" in trend.study(asked).sentence


def test_a_few_counts_among_zeros_are_no_error(series: MakeSeries) -> None:
    """Their steps have no size."""
    values = np.zeros(3600)
    values[[300, 301, 900, 1500, 2200, 2900]] = 1.0
    assert trend.study(series(values)).findings == ()


def test_errors_of_two_minutes_are_a_level_and_no_peaks(series: MakeSeries) -> None:
    """ "Short dips began" was said of them, and "peaks come about every 43 s"."""
    random = np.random.default_rng(67)
    values = np.zeros(3600)
    values[3000:3120] = random.poisson(3, 120)
    findings = changepoint.study(series(values)).findings
    assert {one.evidence["change"] for one in findings} == {"level"}
    assert sorted(round(one.start_at - 1_700_000_000) for one in findings if one.confidence >= 0.5) == [
        pytest.approx(3000, abs=3),
        pytest.approx(3120, abs=3),
    ]


def test_peaks_on_a_slope_are_peaks(series: MakeSeries) -> None:
    """The baseline moves below them, but not where they begin."""
    random = np.random.default_rng(68)
    values = 0.02 * np.arange(3600) + random.standard_normal(3600)
    values[1800:] += 12 * (random.random(1800) < 0.05)
    found = [one for one in changepoint.study(series(values)).findings if one.evidence["change"] == "pattern"]
    assert [round(one.start_at - 1_700_000_000) for one in found] == [pytest.approx(1800, abs=60)]


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("half at zero", "volatile"),
        ("errors until now", "rose from 0 to 3 at"),
        ("errors for two minutes", "and is back at 0"),
        ("falling back slowly", ", now "),
    ],
)
def test_what_is_usual_is_no_spike(series: MakeSeries, name: str, says: str) -> None:
    random = np.random.default_rng(69)
    second = np.arange(3600)
    values = {
        "half at zero": np.maximum(0, random.standard_normal(3600)),
        "errors until now": np.where(second >= 3300, random.poisson(3, 3600), 0),
        "errors for two minutes": np.where((second >= 3000) & (second < 3120), random.poisson(3, 3600), 0),
        "falling back slowly": 10
        + random.standard_normal(3600)
        + np.where(second > 3100, 12 * np.exp(-(second - 3100) / 400), 0),
    }[name]
    assert says in summary.study(series(values)).sentence


@pytest.mark.parametrize(("name", "swing"), [("staircase", 20.0), ("half on, half off", 3.0)])
def test_what_stays_up_is_no_pulse(series: MakeSeries, name: str, swing: float) -> None:
    """ "For 100 s, rising by 6" was said of steps of 20, and "for 4 min" of a quarter of an hour."""
    random = np.random.default_rng(71)
    second = np.arange(7200)
    values = {
        "staircase": 200 + 20.0 * (second // 600),
        "half on, half off": np.where(second // 900 % 2 == 1, 3.1, 0.1),
    }[name]
    noise = swing / 40 * random.standard_normal(len(values))
    finding = periodicity.study(series(values + noise)).findings[0]
    assert finding.magnitude == pytest.approx(swing, rel=0.05)
    assert "each time rising by" in finding.sentence
    assert "pulse_seconds" not in finding.measures
