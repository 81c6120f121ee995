"""What a minute's mean and rates are rounded to: less than they are unsure by, and never out of order."""

from math import inf, nan

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from nodescope.base.metric import Metric
from nodescope.keep.label_columns import LABELS
from nodescope.keep.parquet import encode_strings
from nodescope.keep.rollup import MEAN_DIGITS, RATE_DIGITS, round_means, round_rates, summarize, tabulate

SAMPLES = st.lists(st.floats(-1e15, 1e15), min_size=1, max_size=60)
RATES = st.lists(st.floats(0, allow_infinity=False), min_size=1, max_size=20)
GAUGE = Metric("memory.current", "gauge", "")
NO_WORDS = encode_strings([None])


@given(values=SAMPLES)
@example(values=[0.1] * 60)
@example(values=[0.0, 5e-324])
def test_a_mean_keeps_its_place_between_the_extremes(values: list[float]) -> None:
    """forall samples: low <= mean <= high, and it is moved by at most 1/65536 of what they span"""
    low, high, mean = (np.array([one]) for one in (min(values), max(values), np.mean(values)))
    rounded = round_means(mean, low, high)
    assert low <= rounded <= high
    # A mean is not exact: of sixty equal samples it may lie beside them.
    unsure = 60 * np.spacing(np.abs(values).max())
    assert abs(rounded - mean) <= (high - low) * 2.0**-MEAN_DIGITS + unsure


@given(rates=RATES)
def test_rates_stay_in_order_and_have_few_digits(rates: list[float]) -> None:
    """forall rates: rounding moves none past another, by at most 2**-20 of itself, and again changes nothing"""
    rate = np.sort(np.array(rates))
    rounded = round_rates(rate)
    assert (np.diff(rounded) >= 0).all()
    normal = rate > np.finfo(float).tiny
    assert (np.abs(rounded - rate)[normal] <= rate[normal] * 2.0**-RATE_DIGITS).all()
    np.testing.assert_array_equal(round_rates(rounded), rounded)


def test_unlimited_and_missing_stay_what_they_are() -> None:
    several = np.array([inf, nan, 1.0])
    np.testing.assert_array_equal(round_means(several, several, several), several)
    np.testing.assert_array_equal(round_rates(np.array([nan, 0.0])), [nan, 0.0])
    low, high = np.array([-1e308]), np.array([1e308])
    assert round_means(np.array([3e307]), low, high) == 3e307


def test_samples_are_exact_and_a_mean_is_short() -> None:
    """Lowest, highest and last are samples; a mean of sixty has no more digits than are known."""
    time_ms = np.arange(60, dtype=np.int64) * 1000
    value = np.random.default_rng(1).integers(50_000, 51_000, 60).astype(np.float64) * 4096
    table = tabulate(
        [(GAUGE, 0, summarize(GAUGE, time_ms, time_ms * 1_000_000, value))], [NO_WORDS] * len(LABELS)
    )
    (row,) = table.select(["min", "max", "mean", "last", "count"]).to_pylist()
    assert (row["min"], row["max"], row["last"], row["count"]) == (value.min(), value.max(), value[-1], 60)
    assert abs(row["mean"] - value.mean()) <= np.ptp(value) / 65_536
    # 0.2 GB, of which 4 MB move: 22 binary digits before the point, and fewer than five behind it.
    assert float(row["mean"] * 2**5).is_integer()
