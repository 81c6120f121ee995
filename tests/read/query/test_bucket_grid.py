"""Buckets of a range: never more than were asked for, whole minutes as soon as these are few enough."""

from hypothesis import given
from hypothesis import strategies as st

from nodescope.keep.rollup import MINUTE_MS
from nodescope.read.query.bucket import count_minutes, make_grid

MOMENT = st.integers(0, 2 * 10**12)
LENGTH = st.integers(0, 40 * 24 * 60 * MINUTE_MS)


@given(MOMENT, LENGTH, st.integers(1, 100_000))
def test_there_are_at_most_as_many_as_were_asked_for(from_ms: int, length_ms: int, points: int) -> None:
    grid = make_grid(from_ms, from_ms + length_ms, points)
    if grid.width_ms:
        assert grid.number <= points
        assert grid.start_ms <= from_ms < grid.start_ms + grid.width_ms
        assert grid.width_ms < MINUTE_MS or grid.start_ms % MINUTE_MS == grid.width_ms % MINUTE_MS == 0


@given(MOMENT, st.integers(10 * MINUTE_MS, 40 * 24 * 60 * MINUTE_MS))
def test_as_many_points_as_minutes_are_the_minutes(from_ms: int, length_ms: int) -> None:
    """Wherever the range begins: rollups have these, and a bucket of 59 s would be read from samples."""
    to_ms = from_ms + length_ms
    minutes = count_minutes(from_ms, to_ms)
    grid = make_grid(from_ms, to_ms, minutes)
    assert (grid.width_ms, grid.number) == (MINUTE_MS, minutes)
    assert make_grid(from_ms, to_ms, 2 * minutes).width_ms < MINUTE_MS
