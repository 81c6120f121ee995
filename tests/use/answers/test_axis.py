"""Many series on one time axis: nothing is invented, nothing is joined over a hole."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from nodescope.read.query.bucket import Points, Samples, make_buckets
from nodescope.use.answers.axis import align, merge

START_MS = 1_700_000_000_000


def samples(times: list[int], values: list[float] | None = None) -> Points:
    kept = Samples()
    numbers = np.arange(len(times), dtype=float) if values is None else np.array(values, float)
    kept.add(np.array(times, np.int64), numbers)
    return kept.points()


def every(seconds: float, count: int, start_ms: int = START_MS) -> list[int]:
    return [start_ms + round(place * seconds * 1000) for place in range(count)]


def buckets(times: list[int], width_ms: int, number: int) -> Points:
    kept = make_buckets(START_MS, width_ms, number)
    kept.add(np.array(times, np.int64), np.arange(len(times), dtype=float))
    return kept.points()


def test_samples_of_one_clock_keep_their_moments() -> None:
    """The axis is the ticks themselves; a series that came later is null before."""
    early, late = samples(every(1, 10)), samples(every(1, 5, START_MS + 5000))
    axis = align([early, late], 0, same_clock=True)
    assert axis.time_ms.tolist() == every(1, 10)
    assert np.isnan(axis.rows[1].mean[:5]).all()
    assert axis.rows[1].mean[5:].tolist() == [0, 1, 2, 3, 4]


def test_a_hole_in_all_series_is_a_moment_with_nothing() -> None:
    """A chart would join the ends otherwise; the gap says from when to when."""
    times = every(1, 5) + every(1, 5, START_MS + 60_000)
    axis = align([samples(times)], 0, same_clock=True)
    (row,) = axis.rows
    assert len(axis.time_ms) == 11
    assert np.isnan(row.mean[5])
    assert [(gap.from_ms, gap.to_ms) for gap in row.gaps] == [(START_MS + 4000, START_MS + 60_000)]


def test_a_late_tick_is_no_gap() -> None:
    times = every(1, 5) + every(1, 5, START_MS + 6200)
    axis = align([samples(times)], 0, same_clock=True)
    assert axis.rows[0].gaps == ()
    assert len(axis.time_ms) == 10


def test_a_slow_table_has_its_own_pace() -> None:
    """Every 5 s is no gap where every 5 s is the rule, neither as samples nor in buckets."""
    times = every(5, 100)
    as_samples = align([samples(times)], 0, same_clock=True)
    as_buckets = align([buckets(times, 1200, 420)], 1200, same_clock=True)
    assert as_samples.rows[0].gaps == ()
    assert as_buckets.rows[0].gaps == ()
    assert as_buckets.width_ms >= 5000
    # Only what lies behind the last sample is empty.
    assert np.isnan(as_buckets.rows[0].mean).sum() <= 1


def test_nodes_with_other_phases_share_a_grid() -> None:
    """Three nodes tick at their own moment of the second: every cell has a value of each."""
    jitter = [(place * 7) % 5 - 2 for place in range(30)]
    nodes = [
        samples([moment + late for moment, late in zip(every(1, 30, START_MS + phase), jitter)])
        for phase in (0, 430, 870)
    ]
    axis = align(nodes, 0, same_clock=False)
    assert len(axis.time_ms) <= 32
    for row in axis.rows:
        assert int(np.isfinite(row.mean).sum()) == 30


@given(
    st.lists(st.integers(0, 3_599_999), min_size=1, max_size=300, unique=True),
    st.integers(1, 9),
)
def test_merged_buckets_hold_the_same_samples(offsets: list[int], together: int) -> None:
    """
    forall samples, n: count and extremes of the merged equal those of the parts

    and the mean is that of the samples, not of the means.
    """
    points = buckets([START_MS + offset for offset in offsets], 12_000, 300)
    merged = merge(points, together)
    assert merged.count.sum() == points.count.sum() == len(offsets)
    assert np.nanmax(merged.maximum) == np.nanmax(points.maximum)
    assert np.nanmin(merged.minimum) == np.nanmin(points.minimum)
    whole = np.nansum(merged.mean * merged.count)
    assert np.isclose(whole, sum(range(len(offsets))))
    assert (np.isnan(merged.mean) == (merged.count == 0)).all()


@given(st.lists(st.integers(0, 600_000), min_size=2, max_size=200, unique=True))
def test_the_axis_rises_and_loses_no_sample(offsets: list[int]) -> None:
    """forall moments: time is strictly rising, and every sample is on it."""
    times = sorted(START_MS + offset for offset in offsets)
    axis = align([samples(times)], 0, same_clock=True)
    assert (np.diff(axis.time_ms) > 0).all()
    assert int(np.isfinite(axis.rows[0].mean).sum()) == len(times)
