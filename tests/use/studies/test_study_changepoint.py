"""Changes are found at their sample, with a confidence that means what it says."""

import math
import secrets
from collections.abc import Callable

import numpy as np
import pytest
from bench import studies_sets as sets

from nodescope.use.studies import Series, StudyAnswer, changepoint
from nodescope.use.studies.maths.change_search import find_changes
from nodescope.use.studies.maths.piecewise_fit import RunningSums, log_evidence, log_gamma

MakeSeries = Callable[..., Series]


def places(answer: StudyAnswer, start_at: float = 1_700_000_000.0) -> list[int]:
    return sorted(round((finding.at or 0) - start_at) for finding in answer.findings)


@pytest.mark.parametrize(
    ("low", "high", "noise"), [(0.2, 0.6, 0.01), (0.02, 0.06, 0.001), (100.0, 200.0, 3.0)]
)
def test_a_step_is_found_at_its_first_sample_in_any_unit(
    series: MakeSeries, low: float, high: float, noise: float
) -> None:
    """The original found 0.2 -> 0.6 and missed the same step ten times smaller."""
    random = np.random.default_rng(1)
    values = np.where(np.arange(1200) < 600, low, high) + noise * random.standard_normal(1200)
    answer = changepoint.study(series(values))
    assert places(answer) == [600]
    finding = answer.findings[0]
    assert [finding.before, finding.after] == pytest.approx([low, high], rel=0.02)
    assert finding.magnitude == pytest.approx(high - low, rel=0.05)
    assert finding.confidence > 0.9


def test_flat_memory_with_page_noise_does_not_change(series: MakeSeries) -> None:
    """100 MiB with 64 KiB of noise: the original reported 201 changes."""
    random = np.random.default_rng(2)
    values = 100 * 2.0**20 + 65536 * random.standard_normal(1200)
    assert changepoint.study(series(np.round(values / 4096) * 4096, unit="bytes")).status == "none"


def test_stationary_cpu_does_not_change(series: MakeSeries) -> None:
    """50 % with a deviation of 5: the original reported 160 changes."""
    random = np.random.default_rng(3)
    answer = changepoint.study(series(50 + 5 * random.standard_normal(1200)))
    assert answer.status == "none"
    assert "did not change" in answer.sentence


@pytest.mark.parametrize(
    "background", ["white", "heavy tails", "Poisson", "trend", "autoregressive 0.5", "cron spikes"]
)
def test_noise_is_not_change(background: str) -> None:
    """At most one false change in twelve series of 1,200 samples (goal 0; measured 0 to 0.1 per series)."""
    random = np.random.default_rng(4)
    assert sum(len(find_changes(sets.BACKGROUNDS[background](random, 1200))) for _ in range(12)) <= 2


def test_strongly_remembering_noise_gives_at_most_one_change_a_series() -> None:
    random = np.random.default_rng(5)
    found = [len(find_changes(sets.BACKGROUNDS["autoregressive 0.9"](random, 1200))) for _ in range(15)]
    assert np.mean(found) <= 1.0


def test_a_sine_is_one_period_and_not_twenty_changes() -> None:
    random = np.random.default_rng(6)
    assert find_changes(np.sin(2 * np.pi * np.arange(1200) / 120) + 0.3 * random.standard_normal(1200)) == []


def test_a_step_under_a_period_is_still_found(series: MakeSeries) -> None:
    random = np.random.default_rng(7)
    values = sets.cron_spikes(random, 1200)
    values[700:] += 3
    assert places(changepoint.study(series(values))) == [pytest.approx(700, abs=5)]


def test_changes_of_slope_and_of_noise_are_told_as_such(series: MakeSeries) -> None:
    random = np.random.default_rng(8)
    index = np.arange(1200)
    bent = np.maximum(index - 500, 0) * 0.05 + random.standard_normal(1200)
    louder = np.where(index < 700, 1.0, 5.0) * random.standard_normal(1200)
    slope = changepoint.study(series(bent, unit="bytes")).findings[0]
    noise = changepoint.study(series(louder)).findings[0]
    assert slope.evidence["change"] == "slope"
    assert slope.at == pytest.approx(1_700_000_500, abs=40)
    assert noise.evidence["change"] == "noise"
    assert "vary more" in noise.sentence
    assert noise.at == pytest.approx(1_700_000_700, abs=15)


def test_lone_spikes_are_not_changes(series: MakeSeries) -> None:
    random = np.random.default_rng(9)
    values = random.standard_normal(1200)
    values[random.integers(0, 1200, 12)] += 40
    assert changepoint.study(series(values)).findings == ()


def test_rare_bursts_in_silence_are_not_changes(series: MakeSeries) -> None:
    """Most disks and many networks look so: 0, and now and then something."""
    random = np.random.default_rng(0)
    values = np.where(random.random(1200) < 0.03, random.uniform(1, 10, 1200), 0.0)
    assert changepoint.study(series(values)).status == "none"


def test_the_drop_of_a_sawtooth_is_from_its_peak_to_its_trough(series: MakeSeries) -> None:
    random = np.random.default_rng(0)
    values = (np.arange(600) % 300) + random.standard_normal(600)
    (finding,) = changepoint.study(series(values)).findings
    assert [finding.before, finding.after] == pytest.approx([299, 0], abs=3)


def test_a_finding_at_nine_tenths_is_real_nine_times_in_ten(series: MakeSeries) -> None:
    """
    On a seed nobody chose: |share real - mean confidence| <= 0.15, over all findings and over the sure ones.

    The constants were fitted on seed 11 of the same set.
    """
    seed = secrets.randbelow(2**32)
    random = np.random.default_rng(seed)
    pairs = []
    for background in list(sets.BACKGROUNDS) * 16:
        case = sets.change_case(random, background)
        for finding in changepoint.study(series(case.values)).findings:
            index = round((finding.at or 0) - 1_700_000_000)
            pairs.append((finding.confidence, sets.is_near(index, case.changes, len(case.values))))
    confidence, real = np.array(pairs, dtype=float).T
    for low in (0.0, 0.8):
        kept = confidence >= low
        assert abs(real[kept].mean() - confidence[kept].mean()) <= 0.15, f"seed {seed}, from {low}"


def test_the_logarithm_of_gamma_is_exact_enough() -> None:
    x = np.array([0.5, 1.0, 1.5, 2.0, 10.0, 600.0])
    assert log_gamma(x) == pytest.approx([math.lgamma(one) for one in x], abs=1e-8)


def test_the_evidence_of_a_piece_is_the_marginal_of_its_model() -> None:
    """log p(x) of the Student t: x ~ t_2a(0, b/a (I + X V X')), computed the long way."""
    values = np.array([0.3, -0.2, 0.8, 1.1, 0.4, 1.9])
    count = len(values)
    u = (np.arange(count) - (count - 1) / 2) / count
    design = np.stack([np.ones(count), u], axis=1)
    covariance = np.eye(count) + design @ design.T / 0.1
    quadratic = values @ np.linalg.solve(covariance, values)
    expected = (
        math.lgamma(1 + count / 2)
        - count / 2 * math.log(2 * math.pi)
        - 0.5 * np.linalg.slogdet(covariance)[1]
        - (1 + count / 2) * math.log(1 + quadratic / 2)
    )
    assert float(log_evidence(RunningSums.of(values), 0, count)) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_levels_of_a_change_are_of_samples(series: MakeSeries, seed: int) -> None:
    """Bursts that fade: a line through them ends below zero, and begins above every sample."""
    random = np.random.default_rng(seed)
    second = np.arange(3600)
    values = (3.0 * np.exp(-(second % 700) / 90) + 0.02) * np.clip(
        1 + 0.12 * random.standard_normal(3600), 0.3, None
    )
    findings = changepoint.study(series(values, unit="cores")).findings
    levels = [level for one in findings for level in (one.before, one.after) if level is not None]
    assert levels
    assert min(levels) >= values.min()
    assert max(levels) <= values.max()
