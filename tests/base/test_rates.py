"""Rates from counters: never negative, and their sum is what the counter grew."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.strategies import COUNTS, examples

from nodescope.base.metric import Metric
from nodescope.base.rates import derive_growth, derive_increase

COUNTER = Metric("c", "counter", "A counter.")
STEPS = st.lists(st.integers(0, 10**10), min_size=1, max_size=20)
GAPS_NS = st.integers(1, 10**10)


@st.composite
def samples(draw: st.DrawFn) -> tuple[list[float], list[int]]:
    """Any values, missing ones included, at any increasing times."""
    values = draw(st.lists(COUNTS | st.just(float("nan")), min_size=2, max_size=20))
    gaps = draw(st.lists(GAPS_NS, min_size=len(values) - 1, max_size=len(values) - 1))
    return values, [0, *np.cumsum(gaps).tolist()]


@given(samples(), st.booleans())
@examples(1000)
def test_a_rate_is_never_negative(taken: tuple[list[float], list[int]], may_dip: bool) -> None:
    """forall samples: every rate is NaN or >= 0; resets and dips included."""
    values, times = taken
    metric = Metric("c", "counter", "A counter.", may_dip=may_dip)
    increase, elapsed = derive_growth(np.array(values), np.array(times, dtype=np.int64), metric)
    rate = increase / elapsed
    assert rate.shape == (len(values) - 1,)
    assert np.all(np.isnan(rate) | (rate >= 0))


@given(STEPS, st.data())
@examples(1000)
def test_rates_times_elapsed_sum_to_the_growth_of_a_segment(steps: list[int], data: st.DataObject) -> None:
    """sum(rate * elapsed) == last - first while the counter only grows."""
    values = np.cumsum([0, *steps]).astype(np.float64)
    gaps = data.draw(st.lists(GAPS_NS, min_size=len(steps), max_size=len(steps)))
    times = np.cumsum([0, *gaps]).astype(np.int64)
    increase, elapsed = derive_growth(values, times, COUNTER)
    total = (increase / elapsed * elapsed).sum()
    assert total == pytest.approx(values[-1] - values[0], rel=1e-12)


def test_a_counter_reset_starts_a_new_segment() -> None:
    """The step back is NaN; what was counted after it counts."""
    grown = derive_increase(np.array([5.0, 9.0, 2.0, 3.0]), COUNTER)
    np.testing.assert_array_equal(grown, [4.0, np.nan, 1.0])


def test_a_dip_that_the_kernel_is_known_for_is_no_growth() -> None:
    grown = derive_increase(np.array([5.0, 4.0, 6.0]), Metric("c", "counter", "Idle.", may_dip=True))
    np.testing.assert_array_equal(grown, [0.0, 2.0])


@given(st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1))
def test_a_counter_that_wraps_grows_modulo_its_size(first: int, growth: int) -> None:
    """forall start, growth < modulus: increase == growth"""
    metric = Metric("c", "counter", "Energy.", wraps_at=2.0**32)
    values = np.array([float(first), float((first + growth) % 2**32)])
    assert derive_increase(values, metric)[0] == growth


def test_a_clock_that_stood_still_gives_no_rate() -> None:
    increase, elapsed = derive_growth(np.array([1.0, 2.0, 3.0]), np.array([0, 0, 10**9]), COUNTER)
    np.testing.assert_array_equal(increase / elapsed, [np.nan, 1.0])


def test_columns_are_derived_side_by_side() -> None:
    values = np.array([[1.0, 10.0], [3.0, np.nan], [4.0, 30.0]])
    increase, elapsed = derive_growth(values, np.array([0, 10**9, 3 * 10**9]), COUNTER)
    np.testing.assert_array_equal(increase / elapsed[:, None], [[2.0, np.nan], [0.5, np.nan]])
