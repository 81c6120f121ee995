"""Curves of braille dots."""

import math

from hypothesis import given
from hypothesis import strategies as st

from nodescope.commands.screen.curve import EMPTY, draw_curve, make_curve


def draw(values: list[float], columns: int, rows: int, top: float) -> list[str]:
    curve = make_curve([float(second) for second in range(len(values))], values, values)
    return draw_curve(curve, (0.0, float(len(values))), columns, rows, top)


def dots(line: str) -> list[int]:
    return [(ord(letter) - EMPTY).bit_count() for letter in line]


def test_a_rise_goes_from_the_lower_left_to_the_upper_right() -> None:
    upper, lower = draw([float(step) for step in range(8)], 4, 2, 7.0)
    assert (dots(upper), dots(lower)) == ([0, 0, 2, 2], [2, 2, 0, 0])


def test_a_spike_of_one_second_survives() -> None:
    upper, _ = draw([0.0] * 500 + [9.0] + [0.0] * 499, 10, 2, 9.0)
    assert sum(dots(upper)) >= 1


def test_a_step_has_no_hole() -> None:
    lines = draw([0.0] * 4 + [8.0] * 4, 4, 3, 8.0)
    assert all(sum(dots(line)) for line in lines)


def test_what_was_not_measured_is_empty() -> None:
    values = [1.0] * 20 + [math.nan] * 20 + [1.0] * 20
    [line] = draw(values, 30, 1, 1.0)
    assert dots(line)[12:19] == [0] * 7
    assert all(dots(line)[:9])
    assert all(dots(line)[21:])


def test_few_points_fill_a_wide_screen() -> None:
    [line] = draw([1.0] * 10, 60, 1, 1.0)
    assert all(dots(line))


values = st.lists(st.floats(0, 1e12) | st.just(math.nan), max_size=50)


@given(values, st.integers(1, 40), st.integers(1, 5))
def test_it_has_the_size_that_was_asked_for(many: list[float], columns: int, rows: int) -> None:
    """forall values, sizes: so many lines of so many letters, each of them braille"""
    top = max((value for value in many if not math.isnan(value)), default=0.0)
    lines = draw(many, columns, rows, top)
    assert [len(line) for line in lines] == [columns] * rows
    assert all(EMPTY <= ord(letter) < EMPTY + 256 for line in lines for letter in line)
