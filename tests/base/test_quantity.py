"""Numbers as people write and read them."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from nodescope.base.quantity import (
    DURATIONS,
    SIZES,
    parse_bytes,
    parse_seconds,
    render_bytes,
    render_seconds,
)


@given(st.integers(0, 10**6), st.sampled_from(sorted(DURATIONS)), st.sampled_from(("", " ")))
def test_a_duration_is_number_times_unit(number: int, unit: str, blank: str) -> None:
    assert parse_seconds(f"{number}{blank}{unit}") == number * DURATIONS[unit]


@given(st.integers(0, 10**6), st.sampled_from(("B", "KB", "MB", "kB", "KiB", "MiB", "GiB", "TiB", "mib")))
def test_a_size_is_number_times_unit_in_any_case(number: int, unit: str) -> None:
    assert parse_bytes(f"{number}{unit}") == number * SIZES[unit.upper()]


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("1", 1.0), ("1s", 1.0), ("500ms", 0.5), ("2m", 120.0), ("1.5h", 5400.0), ("7d", 604800.0), (".5", 0.5)],
)
def test_durations_as_people_write_them(text: str, seconds: float) -> None:
    assert parse_seconds(text) == pytest.approx(seconds)


@pytest.mark.parametrize(
    "text", ["", "s", "-1s", "1 minute", "nan", "inf", "1,5s", "1M", "0x10", "1s2", "1e999", "\u0661"]
)
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        parse_seconds(text)


@given(st.text(max_size=10))
@example("1e999")
@example("9" * 400)
def test_any_text_is_a_finite_quantity_or_refused(text: str) -> None:
    """forall text: a finite number or ValueError; never inf, never another error."""
    for parse in (parse_seconds, parse_bytes):
        try:
            assert 0 <= parse(text) < float("inf")
        except ValueError:
            pass


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1024, "1 KiB"),
        (2.04e9, "1.9 GiB"),
        (5 * 2.0**40, "5 TiB"),
        (float("inf"), "unlimited"),
    ],
)
def test_bytes_as_people_read_them(count: float, text: str) -> None:
    assert render_bytes(count) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (3.2e-6, "3.2 us"),
        (0.0032, "3.2 ms"),
        (41, "41 s"),
        (7500, "2 h 5 min"),
        (7200, "2 h"),
        (200000, "2 d 7 h"),
    ],
)
def test_seconds_as_people_read_them(seconds: float, text: str) -> None:
    assert render_seconds(seconds) == text
