"""Numbers as people write and read them."""

import re
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import nodescope
from nodescope.base.quantity import (
    DURATIONS,
    SIZES,
    parse_bytes,
    parse_seconds,
    render_bytes,
    render_count,
    render_quantity,
    render_seconds,
    render_seconds_range,
    render_slope,
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
        (999.7, "1000 B"),
        (1010, "1010 B"),
        (1024, "1 KiB"),
        (2.04e9, "1.9 GiB"),
        (5 * 2.0**40, "5 TiB"),
        (3 * 2.0**60, "3072 PiB"),
        (float("inf"), "unlimited"),
    ],
)
def test_bytes_as_people_read_them(count: float, text: str) -> None:
    assert render_bytes(count) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"),
        (3.2e-6, "3.2 us"),
        (0.0032, "3.2 ms"),
        (0.25, "0.25 s"),
        (41, "41 s"),
        (45, "45 s"),
        (5400, "90 min"),
        (7500, "2.08 h"),
        (7200, "2 h"),
        (200_000, "2.31 days"),
        (300_000, "3.47 days"),
        (-45, "-45 s"),
        (172_799, "2 days"),
        (172_000, "47.8 h"),
        (119.7, "2 min"),
    ],
)
def test_seconds_as_people_read_them(seconds: float, text: str) -> None:
    assert render_seconds(seconds) == text


@pytest.mark.parametrize(
    ("ends", "text"),
    [
        ((2400, 3300, 2800), "40 to 55 min"),
        ((172_000, 180_000, 173_000), "1.99 to 2.08 days"),
        ((90, 10_800, 3600), "90 s to 3 h"),
        ((0, 3, 2), "0 to 3 s"),
        ((3599, 3602, 3600), "give or take 2 s"),
    ],
)
def test_both_ends_of_a_range_are_in_one_unit(ends: tuple[float, float, float], text: str) -> None:
    assert render_seconds_range(*ends) == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (render_quantity(2_040_109_466.0, "bytes"), "1.9 GiB"),
        (render_quantity(2_040_109_466.0, "bytes/s"), "1.9 GiB/s"),
        (render_quantity(0.42, "cores"), "0.42 cores"),
        (render_quantity(0.041, "share of time stalled"), "4.1 %"),
        (render_quantity(90, "seconds"), "90 s"),
        (render_quantity(12_345, ""), "12 345"),
        (render_slope(38 * 2**20 / 3600, "bytes"), "38 MiB/h"),
        (render_slope(2.94 / 3600, "ratio"), "4.9 %/min"),
        (render_slope(0.05 / 3600, "share of time"), "5 %/h"),
        (render_count(1, "container"), "1 container"),
        (render_count(0, "OOM kill"), "0 OOM kills"),
    ],
)
def test_numbers_are_written_as_a_person_would(text: str, expected: str) -> None:
    assert text == expected


def test_only_one_module_writes_bytes_for_people() -> None:
    """A second one would spell them in a second way; parsing another tool's units is no writing."""
    sources = Path(nodescope.__file__).parent
    writers = [path for path in sources.rglob("*.py") if re.search(r'[{}] ?[KMGT]iB|"PiB"', path.read_text())]
    assert [str(path.relative_to(sources)) for path in writers] == ["base/quantity.py"]
