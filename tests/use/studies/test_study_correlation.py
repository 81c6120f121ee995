"""Correlation: who moved with whom, by how much earlier or later, and how often that is said without reason."""

from collections.abc import Callable

import numpy as np
import pytest
from bench import pair_sets
from bench import studies_sets as sets

from nodescope.use.studies import STUDIES, Finding, Series, correlation
from nodescope.use.studies.series import FloatArray
from nodescope.use.studies.together.matching import ComparedSeries, match_shapes
from nodescope.use.studies.together.onsets import find_onsets

MakeSeries = Callable[..., Series]
COUNT = 1800


def ask(target: FloatArray, *others: FloatArray) -> tuple[Finding, ...]:
    times_at = np.arange(float(len(target)))
    compared = [Series(times_at, values, metric=str(place)) for place, values in enumerate(others)]
    return correlation.study(Series(times_at, target, metric="load"), compared).findings


def is_right(finding: Finding, lag: int) -> bool:
    """Within a second, or inside the interval; no order is right as well."""
    told, low, high = (
        finding.measures.get(f"lag_{name}") for name in ("seconds", "low_seconds", "high_seconds")
    )
    if told is None:
        return True
    return abs(float(told) - lag) <= 1 or float(low or 0) <= lag <= float(high or 0)


@pytest.mark.parametrize("kind", pair_sets.RELATED)
def test_the_lag_is_within_a_second_or_inside_its_interval(kind: str) -> None:
    """At most one of ten is wrong."""
    random = np.random.default_rng(31)
    told = []
    for _ in range(10):
        left, right, lag = pair_sets.RELATED[kind](random, COUNT)
        told += [is_right(finding, lag) for finding in ask(left, right)]
    assert len(told) >= (4 if kind == "common flanks" else 7)
    assert told.count(False) <= 1


@pytest.mark.parametrize("kind", pair_sets.INDEPENDENT)
def test_independent_series_are_rarely_said_to_move_together(kind: str) -> None:
    """At most 5 % of questions about five others is stated; more than 3 of 15 would be a chance of one in 200."""
    random = np.random.default_rng(32)
    make = pair_sets.INDEPENDENT[kind]
    asked = [ask(make(random, COUNT), *(make(random, COUNT) for _ in range(5))) for _ in range(15)]
    assert sum(bool(findings) for findings in asked) <= 3


def test_the_flank_of_a_hump_is_no_step() -> None:
    """Its steepest place is where the noise puts it: taken for steps, a fifth of such pairs were told seconds apart."""
    random = np.random.default_rng(47)
    hump = 6 * np.exp(-0.5 * ((np.arange(1800) - 900) / 40) ** 2)
    step = np.where(np.arange(1800) < 900, 0.0, 6.0)
    noise = random.standard_normal(1800)
    assert not find_onsets(hump + noise).has_strong
    assert find_onsets(step + noise).has_strong
    told = [ask(hump + random.standard_normal(1800), hump + random.standard_normal(1800)) for _ in range(10)]
    assert all(is_right(finding, 0) for findings in told for finding in findings)
    assert sum(bool(findings) for findings in told) >= 8


def test_a_step_in_the_same_second_is_told_as_such() -> None:
    random = np.random.default_rng(33)
    both = np.where(np.arange(3600) < 2000, 0.0, 8.0)
    finding = ask(both + random.standard_normal(3600), both + random.standard_normal(3600))[0]
    assert (finding.measures["lag_low_seconds"], finding.measures["lag_high_seconds"]) == (0.0, 0.0)
    assert "0 moved with load, at the same time (" in finding.sentence


@pytest.mark.parametrize(("lag", "words"), [(7, "7 s earlier"), (-7, "7 s later")])
def test_who_was_first_is_told_from_the_other(lag: int, words: str) -> None:
    random = np.random.default_rng(34)
    index = np.arange(3600)
    other = np.where(index < 1500, 0.0, 8.0) + random.standard_normal(3600)
    target = np.where(index < 1500 + lag, 0.0, 8.0) + random.standard_normal(3600)
    finding = ask(target, other)[0]
    assert finding.measures["lag_seconds"] == lag
    assert words in finding.sentence


def test_an_interval_from_zero_on_is_said_with_both_ends() -> None:
    """A step that takes three seconds has no exact second."""
    random = np.random.default_rng(35)
    index = np.arange(3600)
    target = np.clip((index - 1500) / 8, 0, 1) * 6 + random.standard_normal(3600)
    other = np.where(index < 1500, 0.0, 8.0) + 0.5 * random.standard_normal(3600)
    finding = ask(target, other)[0]
    low, high = finding.measures["lag_low_seconds"], finding.measures["lag_high_seconds"]
    assert float(low or 0) < float(high or 0)
    assert " to " in finding.sentence.split("(", maxsplit=1)[0]


def test_of_a_common_hump_no_order_is_told() -> None:
    """It has no field for a lag either: unknown is not zero."""
    random = np.random.default_rng(36)
    hump = 6 * np.exp(-0.5 * ((np.arange(3600) - 1700) / 200) ** 2)
    finding = ask(hump + random.standard_normal(3600), hump + random.standard_normal(3600))[0]
    assert "no order can be told" in finding.sentence
    assert "lag_seconds" not in finding.measures


def test_two_humps_are_near_each_other_by_chance_more_often_than_two_steps() -> None:
    """One that is seen whole keeps off both edges: there are places for it in six tenths of an hour."""
    humps = [6 * np.exp(-0.5 * ((np.arange(3600) - middle) / 200) ** 2) for middle in (1700, 1740)]
    random = np.random.default_rng(40)
    left, right = (ComparedSeries(hump + 0.3 * random.standard_normal(3600)) for hump in humps)
    found = match_shapes(left, right, 120)
    assert abs(found.lag) == pytest.approx(40, abs=3)
    assert found.chance >= (2 * abs(found.lag) + 1) / (0.6 * 3600)


def test_one_step_each_is_evidence_only_as_far_as_chance_allows() -> None:
    """Half a minute apart in an hour happens to one pair in sixty: not enough among five; in the same second it is."""
    random = np.random.default_rng(37)
    index = np.arange(3600)
    stepped = [
        np.where(index < place, 0.0, 8.0) + random.standard_normal(3600) for place in (1500, 1500, 1530)
    ]
    noise = [random.standard_normal(3600) for _ in range(4)]
    assert [finding.measures["other"] for finding in ask(stepped[0], stepped[1], *noise)] == ["0"]
    assert ask(stepped[0], stepped[2], *noise) == ()


def test_what_moves_the_other_way_moves_against() -> None:
    random = np.random.default_rng(38)
    driver = sets.autoregressive(random, 1200, 0.8)
    finding = ask(-driver + 0.5 * random.standard_normal(1200), driver)[0]
    assert "moved against load" in finding.sentence
    assert float(finding.measures["correlation"] or 0) < -0.5


def test_confidence_is_the_share_that_is_real() -> None:
    """Of findings on as many related as independent questions, those above 0.9 are real in 0.9."""
    random = np.random.default_rng(39)
    kinds = list(pair_sets.INDEPENDENT.values())
    pairs = list(pair_sets.RELATED.values())
    sure = []
    for number in range(60):
        noise = [kinds[(number + place) % len(kinds)](random, 1200) for place in range(5)]
        left, right, _ = pairs[number % len(pairs)](random, 1200)
        target, others = (left, [right, *noise[1:]]) if number % 2 else (noise[0], noise[1:])
        told = [finding for finding in ask(target, *others) if finding.confidence >= 0.9]
        sure += [bool(number % 2) and finding.measures["other"] == "0" for finding in told]
    assert len(sure) >= 15
    assert sum(sure) >= 0.9 * len(sure)


def test_the_planted_cause_is_among_the_first_three() -> None:
    """In 90 % (measured 100 %), with its lag."""
    random = np.random.default_rng(5)
    first_three = 0
    for _ in range(20):
        case = sets.cause_case(random)
        told = ask(case.target, *case.others)[:3]
        match = [finding for finding in told if finding.measures["other"] == str(case.cause)]
        first_three += bool(match) and match[0].measures.get("lag_seconds") == pytest.approx(case.lag, abs=2)
    assert first_three >= 18


def test_random_walks_do_not_correlate_by_being_slow() -> None:
    """Of 300 pairs of independent walks at most one in a hundred is called related."""
    random = np.random.default_rng(6)
    told = 0
    for _ in range(10):
        walks = [sets.random_walk(random, 600) for _ in range(31)]
        told += len(ask(walks[0], *walks[1:]))
    assert told <= 3


def test_without_others_there_is_nothing_to_compare(series: MakeSeries) -> None:
    answer = STUDIES["correlation"].run(series(np.random.default_rng(7).standard_normal(100)))
    assert answer.status == "not_enough_data"
