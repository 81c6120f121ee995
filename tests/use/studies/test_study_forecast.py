"""When memory touches its limit: under a season, from the middle of the span on, in pages, and by a collector's crests."""

from collections.abc import Callable

import numpy as np
import pytest

from nodescope.use.studies import Finding, Series, trend
from nodescope.use.studies.forecast.evidence import (
    WIDER,
    explain,
    only_rises,
    prepared_days,
    prepared_shapes,
    weigh,
)
from nodescope.use.studies.forecast.growth_forecast import bucket_heights, passage_of
from nodescope.use.studies.forecast.pages import find_staircase, steady_pages
from nodescope.use.studies.forecast.uneven_pages import are_drawn_anew, uneven_passages

MakeSeries = Callable[..., Series]
MIB = 2.0**20
SAMPLES = 3600


def told(series: MakeSeries, values: np.ndarray, limit: float) -> Finding | None:
    findings = trend.study(series(values * MIB, unit="bytes", limit=limit * MIB)).findings
    return findings[0] if findings else None


def bounds(finding: Finding) -> tuple[float, float]:
    low, high = (finding.measures[name] for name in ("low", "high"))
    assert isinstance(low, float)
    assert isinstance(high, float)
    return low, high


def first_passage(path: Callable[[np.ndarray], np.ndarray], limit: float) -> int:
    """In samples after the newest one."""
    later = np.arange(SAMPLES, 12 * SAMPLES)
    return int(np.argmax(path(later) >= limit)) + 1


@pytest.mark.parametrize("cycles", [1.8, 2.4, 3.3, 7.5, 20.0])
@pytest.mark.parametrize("swing", [20.0, 120.0])
def test_a_leak_below_a_season_is_told_by_its_crest(series: MakeSeries, cycles: float, swing: float) -> None:
    """Also where the season was seen less than twice, and swings by more than the leak has grown."""

    def path(times: np.ndarray) -> np.ndarray:
        return 200 + 60 * times / SAMPLES + swing * np.sin(2 * np.pi * cycles * times / SAMPLES + 1)

    random = np.random.default_rng(5)
    values = path(np.arange(SAMPLES)) + 2 * random.standard_normal(SAMPLES)
    limit = 200 + swing + 130.0
    finding = told(series, values, limit)
    assert finding is not None
    assert finding.measures["verdict"] == "leak"
    assert finding.evidence["season_seconds"] == pytest.approx(SAMPLES / cycles, rel=0.02)
    assert "its crests are expected at its limit" in finding.sentence
    low, high = bounds(finding)
    true = first_passage(path, limit)
    # Noise may decide which of two crests it is: a cycle at most.
    assert high - low < SAMPLES / cycles + 60
    assert low - SAMPLES / cycles - 10 <= true <= high + SAMPLES / cycles + 10


@pytest.mark.parametrize("cycles", [1.8, 2.4, 3.3, 7.5])
def test_a_season_alone_is_no_leak(series: MakeSeries, cycles: float) -> None:
    random = np.random.default_rng(6)
    for phase in np.linspace(0, 2 * np.pi, 6):
        values = 200 + 60 * np.sin(2 * np.pi * cycles * np.arange(SAMPLES) / SAMPLES + phase)
        finding = told(series, values + 3 * random.standard_normal(SAMPLES), 400.0)
        assert finding is None or finding.measures["verdict"] != "leak"


@pytest.mark.parametrize("start", [0.37, 0.512, 0.683, 0.79])
def test_growth_that_began_in_the_span_is_forecast_as_closely_as_its_noise_allows(
    series: MakeSeries, start: float
) -> None:
    """Wherever it began: between two places of a coarse grid its interval was ten times as wide."""

    def path(times: np.ndarray) -> np.ndarray:
        return 200 + 150 * np.maximum(times / SAMPLES - start, 0.0)

    random = np.random.default_rng(7)
    finding = told(series, path(np.arange(SAMPLES)) + random.standard_normal(SAMPLES), 300.0)
    assert finding is not None
    low, high = bounds(finding)
    assert high - low < 80
    assert low - 30 <= first_passage(path, 300.0) <= high + 30


def test_pages_on_one_line_are_forecast_to_the_sample(series: MakeSeries) -> None:
    random = np.random.default_rng(8)
    for growth in (37.0, 91.3, 160.0):
        for limit in (250.0, 311.1, 402.9):

            def path(times: np.ndarray, growth: float = growth) -> np.ndarray:
                return 100 + 4 * np.floor((1.3 + growth * times / SAMPLES) / 4)

            values = path(np.arange(SAMPLES)) + 0.02 * random.standard_normal(SAMPLES)
            finding = told(series, values, limit)
            assert finding is not None
            low, high = bounds(finding)
            assert high - low <= 2 + 0.01 * high
            assert low - 2 <= first_passage(path, limit) <= high + 2


def test_pages_taken_at_random_are_no_line() -> None:
    random = np.random.default_rng(9)
    taken = np.sort(random.uniform(0, SAMPLES, 40))
    values = 100 + 4.0 * np.searchsorted(taken, np.arange(SAMPLES)).astype(np.float64)
    staircase = find_staircase(values)
    assert staircase is not None
    assert steady_pages(staircase) is None
    even = find_staircase(100 + 4.0 * (np.arange(SAMPLES) // 90).astype(np.float64))
    assert even is not None
    steady = steady_pages(even)
    assert steady is not None
    assert steady.gaps == pytest.approx(90, abs=0.1)


@pytest.mark.parametrize("noise", [0.02, 0.3, 0.6])
def test_a_staircase_is_seen_through_the_noise_of_a_meter(noise: float) -> None:
    """A jump of one page is known by the levels around it, not by the two samples at its edge."""
    random = np.random.default_rng(12)
    path = 100 + 4.0 * (np.arange(SAMPLES) // 90)
    staircase = find_staircase(path + noise * random.standard_normal(SAMPLES))
    assert staircase is not None
    assert staircase.page == pytest.approx(4.0, rel=0.02)
    assert np.abs(staircase.places - 90 * np.arange(1, len(staircase.places) + 1)).max() <= 2


def uneven(random: np.random.Generator, gaps: np.ndarray) -> np.ndarray:
    taken = np.cumsum(gaps)
    pages = np.searchsorted(taken[taken < SAMPLES], np.arange(SAMPLES), side="right")
    return np.asarray(100 + 4.0 * pages + 0.3 * random.standard_normal(SAMPLES))


def test_more_pages_at_uneven_times_are_expected_as_they_came(series: MakeSeries) -> None:
    """
    Of 30 gaps that vary by a half, another 15 vary by a half / sqrt(15), and their mean by a half / sqrt(30).

    Ninety per cent of that are 0.5 of the time itself; explained as any path it was twice as wide.
    """
    random = np.random.default_rng(13)
    widths, inside = [], 0
    for _ in range(20):
        gaps = SAMPLES / 30 * random.gamma(4.0, 0.25, 200)
        now = int(np.searchsorted(np.cumsum(gaps), SAMPLES - 1, side="right"))
        finding = told(series, uneven(random, gaps), 100 + 4.0 * (now + 15))
        assert finding is not None
        low, high = bounds(finding)
        true = float(np.cumsum(gaps)[now + 14]) - (SAMPLES - 1)
        widths.append((high - low) / true)
        inside += low <= true <= high
    assert np.median(widths) < 0.65
    assert inside >= 15


def test_pages_that_come_faster_and_faster_are_not_expected_as_they_came() -> None:
    random = np.random.default_rng(14)
    staircase = find_staircase(uneven(random, np.linspace(180, 40, 60)))
    assert staircase is not None
    assert uneven_passages(staircase, 10) is None
    assert are_drawn_anew(random.exponential(100.0, 40))
    load = np.repeat(random.exponential(100.0, 8), 6)
    assert not are_drawn_anew(load * random.uniform(0.9, 1.1, 48))


def test_the_crests_of_a_collector_reach_the_limit_before_its_mean(series: MakeSeries) -> None:
    """The mean would be there 2400 s later."""

    def path(times: np.ndarray) -> np.ndarray:
        return 100 + 60 * times / SAMPLES + 80 * (times % 120) / 120

    random = np.random.default_rng(10)
    values = path(np.arange(SAMPLES)) + 0.5 * random.standard_normal(SAMPLES)
    finding = told(series, values, 300.0)
    assert finding is not None
    low, high = bounds(finding)
    assert low - 130 <= first_passage(path, 300.0) <= high + 130
    assert high < first_passage(path, 300.0) + 600


def test_crests_that_hold_their_level_do_not_leak(series: MakeSeries) -> None:
    random = np.random.default_rng(11)
    for _ in range(6):
        crests = 80 * np.exp(0.05 * random.standard_normal(40))
        values = 100 + np.concatenate([np.linspace(0, crest, 90) for crest in crests])
        finding = told(series, values, 300.0)
        assert finding is None or finding.measures["verdict"] != "leak"


def test_a_bucket_is_a_mean_that_outliers_hardly_move() -> None:
    random = np.random.default_rng(12)
    values = np.linspace(0, 100, 3601) + random.standard_normal(3601)
    heights = bucket_heights(values, 128)
    expected = 100 * (np.arange(128) + 0.5) / 128
    assert np.std(heights - expected) < 1.15 / np.sqrt(3601 / 128)
    wild = values.copy()
    wild[random.integers(0, 3601, 60)] = 1e9
    assert np.abs(bucket_heights(wild, 128) - heights).max() < 1.0


def test_a_time_to_the_limit_is_that_of_the_sample_that_shows_it() -> None:
    """Times begin half a sample after the newest one: what is touched 0.2 later is seen with the first sample to come."""
    passage = passage_of(np.array([0.2, 0.2, 0.7, 9.4, np.inf]))
    assert (passage.early, passage.likely, passage.late) == (1.0, 2.0, np.inf)
    assert passage.reaches == 0.8
    assert passage_of(np.zeros(3)).late == 0.0


def test_a_walk_that_gives_back_is_drawn_wider_than_its_fit() -> None:
    """Of a random walk with drift 82 % of the intervals held without it, 87 % with it (0227)."""
    random = np.random.default_rng(61)
    heights = np.cumsum(random.normal(1 / 128, 0.14 / np.sqrt(128), 128))
    blocks = [*prepared_shapes(128), *prepared_days(128, 3600.0)]
    fitted, told = (
        next(one for one in found if one.noise.walks and one.shape.kind == "line")
        for found in (weigh(blocks, heights, only_rises(heights)), explain(heights, 3600.0))
    )
    assert told.variance == pytest.approx(WIDER**2 * fitted.variance)
    assert told.root == pytest.approx(WIDER * fitted.root)
