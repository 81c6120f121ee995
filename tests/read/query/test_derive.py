"""Two counters make one share, also where their samples were not stamped at the same millisecond."""

import numpy as np
import pytest

from nodescope.base.block import Floats
from nodescope.base.metric import Metric
from nodescope.read.query.derive import Chunk, SampleDeriver, values_near

SECOND = 10**9
COUNTERS = Metric("throttled", "counter", "x"), Metric("periods", "counter", "x")


def stamp(value: Floats, late_ms: float | Floats = 0.0) -> Chunk:
    """One sample a second, each that much later than its tick."""
    mono_ns = (np.arange(len(value)) * SECOND + np.multiply(late_ms, 10**6)).astype(np.int64)
    return Chunk(mono_ns // 10**6, mono_ns, value)


@pytest.mark.parametrize("late_ms", [0, 1, 40, -300, 499])
def test_a_share_of_two_counters_that_were_read_at_slightly_different_moments(late_ms: int) -> None:
    """Every second counts with the same share as if both had been stamped at once."""
    deriver = SampleDeriver("part", COUNTERS)
    ticks = np.arange(20.0)
    _, value = deriver.take((stamp(ticks * 6), stamp(ticks * 10, late_ms)))
    assert np.isnan(value[0])
    np.testing.assert_allclose(value[1:], 0.6)


def test_jitter_of_both_does_not_pair_a_sample_with_the_next_second() -> None:
    rng = np.random.default_rng(7)
    ticks = np.arange(200.0)
    first = stamp(ticks, rng.uniform(-200, 200, 200))
    other = stamp(ticks, rng.uniform(-200, 200, 200))
    np.testing.assert_array_equal(values_near(first.mono_ns, other.mono_ns, other.value), ticks)


def test_a_moment_that_the_other_counter_lacks_stays_missing() -> None:
    """The neighbour a second away is not taken for it."""
    ticks = np.arange(6.0)
    keep = ticks != 3
    other = Chunk(*(column[keep] for column in stamp(ticks * 10, 5)))
    found = values_near(stamp(ticks).mono_ns, other.mono_ns, other.value)
    np.testing.assert_array_equal(found, [0, 10, 20, np.nan, 40, 50])


def test_a_single_sample_has_no_distance_and_is_paired_exactly() -> None:
    one = np.array([SECOND])
    assert np.isnan(values_near(one, one + 1, np.array([5.0])))[0]
    assert values_near(one, one, np.array([5.0]))[0] == 5.0
