"""Since when a counter counts."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from nodescope.use.push.series_start import PUSHES_KEPT, SeriesStarts


def test_a_known_begin_stays_though_the_clock_is_corrected() -> None:
    starts = SeriesStarts()
    assert starts.count("a", 5, 100, 10, may_dip=False) == (10, 5)
    assert starts.count("a", 6, 200, 11, may_dip=False) == (10, 6)


def test_an_unknown_begin_is_the_first_point() -> None:
    starts = SeriesStarts()
    assert starts.count("a", 5, 100, None, may_dip=False) == (100, 5)
    assert starts.count("a", 6, 200, None, may_dip=False) == (100, 6)


def test_a_counter_that_fell_began_after_its_last_point() -> None:
    starts = SeriesStarts()
    starts.count("a", 5, 100, 10, may_dip=False)
    assert starts.count("a", 1, 200, 10, may_dip=False) == (100, 1)


def test_a_small_dip_that_the_kernel_makes_is_none() -> None:
    starts = SeriesStarts()
    starts.count("a", 5, 100, 10, may_dip=True)
    assert starts.count("a", 4, 200, 10, may_dip=True) == (10, 5)


def test_an_amount_may_fall() -> None:
    starts = SeriesStarts()
    assert [starts.begin("a", value, at, None) for value, at in ((5, 100), (1, 200))] == [100, 100]


def test_what_is_gone_is_forgotten() -> None:
    starts = SeriesStarts()
    starts.begin("a", 1, 100, None)
    for at in range(2 * PUSHES_KEPT):
        starts.turn()
        starts.begin("b", 1, at, None)
    assert starts.begin("a", 1, 900, None) == 900
    assert starts.begin("b", 1, 900, None) == 0


@given(st.lists(st.floats(0, 1e15), min_size=1))
def test_within_one_start_a_counter_never_falls(values: list[float]) -> None:
    starts = SeriesStarts()
    points = [starts.count("a", value, at, None, may_dip=False) for at, value in enumerate(values)]
    for (start, value), (next_start, next_value) in pairwise(points):
        assert next_start > start or next_value >= value
