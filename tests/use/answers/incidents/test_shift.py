"""Departures from a level: found where they are, and only where they are large, long and new."""

import numpy as np
import pytest

from nodescope.use.answers.incidents.shift import Floats, Shift, find_shifts

SIZE = 720


def noise(seed: int = 1) -> Floats:
    return 1 + 0.1 * np.random.default_rng(seed).standard_normal(SIZE)


def shifts_of(values: Floats, **options: bool) -> list[Shift]:
    return find_shifts(values[None, :], 0.3, 5.0, 0, **options)


def test_a_step_is_found_at_its_first_sample() -> None:
    values = noise()
    values[400:] += 2
    (one,) = shifts_of(values)
    assert abs(one.first - 400) <= 1
    assert one.is_open
    assert one.before == pytest.approx(1, abs=0.1)
    assert one.after == pytest.approx(3, abs=0.1)


def test_a_stretch_has_a_beginning_and_an_end() -> None:
    values = noise()
    values[300:360] += 2
    (one,) = shifts_of(values)
    assert abs(one.first - 300) <= 1
    assert abs(one.last - 360) <= 1
    assert not one.is_open
    assert one.alike == 0


def test_a_fall_is_found_when_falls_are_looked_for() -> None:
    values = noise()
    values[300:500] -= 0.8
    assert shifts_of(values) == [] or shifts_of(values)[0].after > 0.9
    (one,) = shifts_of(values, falls=True)
    assert abs(one.first - 300) <= 2
    assert one.after < one.before


@pytest.mark.parametrize("values", [noise(), np.full(SIZE, np.nan), np.zeros(SIZE)])
def test_noise_nothing_and_zero_have_no_departure(values: Floats) -> None:
    assert shifts_of(values) == []


def test_a_spike_of_one_sample_is_no_departure() -> None:
    values = noise()
    values[333] = 50
    assert shifts_of(values) == []


def test_what_repeats_is_counted() -> None:
    values = noise()
    for start in range(20, SIZE, 120):
        values[start : start + 12] += 2
    (one,) = shifts_of(values)
    assert one.alike >= 4


def test_what_began_before_the_span_is_left_out() -> None:
    values = noise()
    values[100:] += 2
    assert find_shifts(values[None, :], 0.3, 5.0, 300) == []
