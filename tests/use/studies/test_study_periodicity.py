"""Periods are found whatever hides them, and nothing else is."""

import secrets
from collections.abc import Callable

import numpy as np
import pytest
from bench import period_sets
from bench import studies_sets as sets

from nodescope.use.studies import Series, StudyAnswer, periodicity
from nodescope.use.studies.series import FloatArray

MakeSeries = Callable[..., Series]


def periods(answer: StudyAnswer) -> list[float]:
    return [float(finding.measures["period_seconds"] or 0) for finding in answer.findings]


@pytest.mark.parametrize("period", [2.0, 3.0, 10.0, 45.0, 97.3, 400.0])
def test_a_sine_is_found_at_its_own_period(series: MakeSeries, period: float) -> None:
    """From two samples to a third of the span; 45 s was reported as 2 s by the original."""
    random = np.random.default_rng(1)
    values = np.cos(2 * np.pi * np.arange(1200) / period) + 0.2 * random.standard_normal(1200)
    assert periods(periodicity.study(series(values)))[0] == pytest.approx(period, rel=0.02)


def test_ten_samples_a_second_show_periods_below_a_second(series: MakeSeries) -> None:
    random = np.random.default_rng(4)
    values = np.cos(2 * np.pi * np.arange(1200) / 7) + 0.2 * random.standard_normal(1200)
    assert periods(periodicity.study(series(values, step=0.1)))[0] == pytest.approx(0.7, rel=0.02)


@pytest.mark.parametrize(
    ("count", "period", "width"),
    [(2520, 300.0, 20), (2520, 60.0, 5), (3600, 60.0, 1), (3600, 97.3, 8), (3600, 600.0, 30)],
)
def test_a_train_of_pulses_is_timed_to_a_fraction_of_a_second(
    series: MakeSeries, count: int, period: float, width: int
) -> None:
    """The grid that finds a period is a twentieth of a bin wide: 1.8 s for five minutes in an hour."""
    random = np.random.default_rng(9)
    for start in random.integers(0, 10_000, 4):
        in_pulse = (np.arange(count) + start) % period < width
        values = 0.02 * np.exp(0.2 * random.standard_normal(count)) + 1.2 * in_pulse
        assert periods(periodicity.study(series(values)))[0] == pytest.approx(period, abs=0.2)


def test_fractions_repeat_as_well_as_percents(series: MakeSeries) -> None:
    """A swing of 0.8 is no less than one of 80: the original asked for an amplitude of 10."""
    values = 0.4 * np.sin(2 * np.pi * np.arange(600) / 10) + 0.5
    answer = periodicity.study(series(values))
    assert periods(answer)[0] == pytest.approx(10, rel=0.01)
    assert answer.findings[0].magnitude == pytest.approx(0.8, rel=0.15)


@pytest.mark.parametrize(
    "values",
    [
        np.linspace(0, 100, 1200),
        np.linspace(0, 100, 1200) + np.random.default_rng(2).standard_normal(1200),
        np.full(1200, 5.0),
        np.zeros(1200),
        np.where(np.arange(1200) < 500, 1.0, 3.0),
        np.random.default_rng(3).standard_normal(1200),
    ],
    ids=["ramp", "noisy ramp", "constant", "zero", "step", "white"],
)
def test_what_does_not_repeat_is_not_reported(series: MakeSeries, values: FloatArray) -> None:
    """The original saw a period of 2 s in 19 of 19 windows of a ramp."""
    answer = periodicity.study(series(values))
    assert answer.status == "none"
    assert "does not repeat" in answer.sentence


def test_random_walks_do_not_repeat(series: MakeSeries) -> None:
    """The original flagged 114 of 119 windows of one."""
    random = np.random.default_rng(4)
    flagged = [periodicity.study(series(sets.random_walk(random, 1200))).status for _ in range(40)]
    assert flagged.count("found") <= 2


def test_short_pulses_keep_their_own_period(series: MakeSeries) -> None:
    """Two seconds of work every minute are one period of 60 s, not its harmonics."""
    random = np.random.default_rng(5)
    values = random.standard_normal(3600) + 8.0 * (np.arange(3600) % 60 < 2)
    assert periods(periodicity.study(series(values))) == [pytest.approx(60, rel=0.01)]


@pytest.mark.parametrize("noise", [0.0, 0.5])
def test_one_second_of_work_every_minute_is_seen(series: MakeSeries, noise: float) -> None:
    """Thirty harmonics of equal height, of which 60 s need not be the highest."""
    random = np.random.default_rng(9)
    values = np.where(np.arange(3600) % 60 < 1, 5.0, 0.0) + noise * random.standard_normal(3600)
    assert periods(periodicity.study(series(values)))[0] == pytest.approx(60, rel=0.01)


def test_two_periods_are_told_apart(series: MakeSeries) -> None:
    random = np.random.default_rng(6)
    index = np.arange(3600)
    values = (
        np.sin(2 * np.pi * index / 60) + np.sin(2 * np.pi * index / 137) + 0.5 * random.standard_normal(3600)
    )
    assert sorted(periods(periodicity.study(series(values)))) == [
        pytest.approx(60, rel=0.02),
        pytest.approx(137, rel=0.02),
    ]


def test_a_period_of_one_hour_in_a_day_has_that_hour_as_its_span(series: MakeSeries) -> None:
    random = np.random.default_rng(7)
    index = np.arange(21_600)
    busy = (index >= 9000) & (index < 12_600)
    values = random.standard_normal(len(index)) + 4.0 * np.sin(2 * np.pi * index / 30) * busy
    finding = periodicity.study(series(values)).findings[0]
    assert finding.measures["period_seconds"] == pytest.approx(30, rel=0.01)
    assert finding.start_at == pytest.approx(1_700_009_000, abs=1500)
    assert finding.end_at == pytest.approx(1_700_012_600, abs=1500)


def test_missing_samples_jitter_and_gaps_do_not_hide_a_period(series: MakeSeries) -> None:
    random = np.random.default_rng(8)
    index = np.arange(1800)
    values = np.sin(2 * np.pi * index / 50) + 0.5 * random.standard_normal(1800)
    values[random.random(1800) < 0.2] = np.nan
    even = series(values)
    kept = (index < 700) | (index > 860)
    jittered = Series(even.times_at[kept] + random.uniform(-0.2, 0.2, int(kept.sum())), even.values[kept])
    assert periods(periodicity.study(jittered))[0] == pytest.approx(50, rel=0.02)


def test_too_few_samples_are_said_to_be_too_few(series: MakeSeries) -> None:
    answer = periodicity.study(series(np.arange(10.0)))
    assert answer.status == "not_enough_data"
    assert answer.reason == "a period needs at least 16 samples in a row."


def test_the_hard_set_is_mastered(series: MakeSeries) -> None:
    """
    recall >= 0.85 and reports on aperiodic series <= 5 %, on a seed nobody chose.

    The goal is 0.90 and 1.5 %; the bounds leave four standard deviations for
    so few series. tools/eval_studies.py measures more of them.
    """
    seed = secrets.randbelow(2**32)
    random = np.random.default_rng(seed)
    hit = planted = 0
    for impairment in sets.IMPAIRMENTS * 6:
        case = sets.periodic_case(random, impairment, longest=2400)
        seen = periods(periodicity.study(series(case.values)))
        hit += sum(any(abs(one - true) <= max(1, 0.05 * true) for one in seen) for true in case.periods)
        planted += len(case.periods)
    kinds = list(sets.APERIODIC) * 6
    false = [
        kind
        for kind in kinds
        if periodicity.study(series(sets.aperiodic_case(random, kind, 2400).values)).findings
    ]
    assert hit / planted >= 0.85, f"seed {seed}: {hit} of {planted}"
    assert len(false) <= 0.05 * len(kinds), f"seed {seed}: {false}"


def test_a_job_within_a_job_is_told_with_both_periods(series: MakeSeries) -> None:
    """Three seconds every minute and half a minute every ten: the long one was missed in 29 of 30."""
    random = np.random.default_rng(21)
    index = np.arange(7200)
    values = 0.05 + 0.02 * random.standard_normal(7200)
    values += 0.8 * (index % 60 < 3) + 0.5 * ((index % 600 >= 20) & (index % 600 < 50))
    answer = periodicity.study(series(values, unit="cores"))
    told = {round(period): one for period, one in zip(periods(answer), answer.findings)}
    assert set(told) == {60, 600}
    assert "repeats every 60 s for 3 s, rising by 0." in told[60].sentence
    assert told[60].magnitude == pytest.approx(0.8, abs=0.02)
    assert "repeats every 10 min for 30 s, rising by 0." in told[600].sentence
    assert told[600].magnitude == pytest.approx(0.5, abs=0.03)
    assert told[600].measures["pulse_seconds"] == pytest.approx(30, abs=1)
    assert told[600].measures["regularity"] == "exact"


def test_a_job_that_began_within_the_span_has_a_beginning(series: MakeSeries) -> None:
    random = np.random.default_rng(22)
    index = np.arange(7200)
    values = random.standard_normal(7200) + 9.0 * ((index % 60 < 3) & (index >= 4000))
    (finding,) = periodicity.study(series(values)).findings
    assert finding.measures["extent"] == "since"
    assert finding.start_at == pytest.approx(1_700_004_020, abs=2)
    assert "since 2023-11-14 23:20:20 UTC, when it began" in finding.sentence
    assert finding.end_at == 1_700_007_199


def stochastic_cycle(random: np.random.Generator, count: int, period: float, coherence: float) -> FloatArray:
    """Noise through a resonance that forgets its phase after so many cycles."""
    damping = np.exp(-1 / (period * coherence))
    values = np.zeros(count + 1000)
    shocks = random.standard_normal(len(values))
    for place in range(2, len(values)):
        values[place] = (
            2 * damping * np.cos(2 * np.pi / period) * values[place - 1]
            - damping**2 * values[place - 2]
            + shocks[place]
        )
    return np.asarray(values[1000:])


def test_a_cycle_without_a_clock_is_roughly_every(series: MakeSeries) -> None:
    """Sixty cycles, a coherence of two: it was a period in 40 %."""
    random = np.random.default_rng(23)
    rough = 0
    for period in (12, 20, 30, 45) * 3:
        answer = periodicity.study(series(stochastic_cycle(random, 60 * period, period, 2.0)))
        for finding in answer.findings:
            assert finding.measures["regularity"] == "rough", finding.sentence
            assert "repeats roughly every" in finding.sentence
        rough += bool(answer.findings)
    assert rough >= 3


def test_a_clock_in_the_same_noise_is_exact(series: MakeSeries) -> None:
    """What would make every wave rough is refused as well."""
    random = np.random.default_rng(24)
    for period in (12, 20, 30, 45):
        index = np.arange(60 * period)
        values = 1.5 * np.sin(2 * np.pi * index / period) + sets.autoregressive(random, len(index), 0.8)
        findings = periodicity.study(series(values)).findings
        assert [one.measures["regularity"] for one in findings] == ["exact"]


def test_a_collector_s_sawtooth_falls_every_cycle(series: MakeSeries) -> None:
    """Its fortieth harmonic is no second period."""
    random = np.random.default_rng(25)
    values = (np.arange(7200) % 90) * 2.0**20 + 1e5 * random.standard_normal(7200)
    (finding,) = periodicity.study(series(values, unit="bytes")).findings
    assert finding.measures["period_seconds"] == pytest.approx(90, abs=0.1)
    assert "each time falling by 90 MiB" in finding.sentence


def test_a_no_names_the_periods_that_it_could_have_seen(series: MakeSeries) -> None:
    answer = periodicity.study(series(np.random.default_rng(26).standard_normal(3601)))
    assert answer.sentence.endswith("it has no period between 2 s and 20 min.")


def test_confidence_follows_the_evidence(series: MakeSeries) -> None:
    """Six pulses are less sure than sixty, and nothing is surer than 0.99."""
    random = np.random.default_rng(27)
    index = np.arange(3600)
    few, many = (
        periodicity.study(series(random.standard_normal(3600) + 8.0 * ((index + 9) % period < 3)))
        .findings[0]
        .confidence
        for period in (590, 60)
    )
    assert 0.8 < few < many <= 0.99


CLASSES = {**period_sets.PERIODIC}
CLASSES.pop("one hour of a day")


@pytest.mark.parametrize("name", CLASSES)
def test_every_class_of_periods_is_found(name: str) -> None:
    """Eight series of a seed that nobody chose; bench/period_sets.py measures more of them."""
    seed = secrets.randbelow(2**32)
    score = period_sets.score_periods(seed, 8, only=name)[name]
    assert score.recall >= 0.6, f"seed {seed}"
    assert score.precision >= 0.6, f"seed {seed}"


def test_what_does_not_repeat_is_not_reported_in_any_class() -> None:
    """Four series of each class and a seed that nobody chose: four in forty-four would be nine times the promise."""
    seed = secrets.randbelow(2**32)
    random = np.random.default_rng(seed)
    told = [
        name
        for name, make in period_sets.APERIODIC.items()
        for _ in range(4)
        if period_sets.ask_study(make(random)).findings
    ]
    assert len(told) <= 3, f"seed {seed}: {told}"
