"""
Quantities as people write and read them: 500ms and 64MiB in, 1.9 GiB, 38 MiB/h and 3.5 h out.

The one place that writes bytes, durations, rates and counts, so that every
answer spells them alike; times are in time_range.py, names in text.py.
"""

import math
import re
from collections.abc import Callable, Mapping

DURATIONS = {
    "ns": 1e-9,
    "us": 1e-6,
    "ms": 1e-3,
    "s": 1.0,
    "m": 60.0,
    "min": 60.0,
    "h": 3600.0,
    "d": 86400.0,
    "w": 604800.0,
}
SIZES = {
    "B": 1.0,
    "KB": 1e3,
    "MB": 1e6,
    "GB": 1e9,
    "TB": 1e12,
    "KIB": 2.0**10,
    "MIB": 2.0**20,
    "GIB": 2.0**30,
    "TIB": 2.0**40,
}
BINARY_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
# The shortest duration that is written in a unit, the unit, and its seconds:
# two of a unit at least, so that 90 s and 90 min keep their precision.
DURATION_UNITS = (
    (172_800.0, "days", 86_400.0),
    (7200.0, "h", 3600.0),
    (120.0, "min", 60.0),
    (0.1, "s", 1.0),
    (1e-3, "ms", 1e-3),
    (1e-9, "us", 1e-6),
)
# Ends of a range are written in one unit unless one is more than so many times the other.
FAR_APART = 10.0
# 1h30m, 2 h 5 min: several parts, each with a unit.
_PART = re.compile(r"[0-9]*\.?[0-9]+\s*[a-z]+")
_SPOKEN = re.compile(rf"\s*{_PART.pattern}(?:\s*{_PART.pattern})+\s*")
_QUANTITY = re.compile(r"\s*([0-9]*\.?[0-9]+(?:[eE][+-]?[0-9]+)?)\s*([A-Za-z]*)\s*")


def _parse(text: str, units: Mapping[str, float], spell: Callable[[str], str]) -> float:
    match = _QUANTITY.fullmatch(text)
    number = float(match[1]) if match else math.nan
    unit = spell(match[2]) if match else ""
    if not math.isfinite(number) or (unit and unit not in units):
        raise ValueError(text)
    return number * units.get(unit, 1.0)


def parse_seconds(text: str) -> float:
    """`1`, `1s`, `500ms`, `2m`, `7d`, `1h30m` as seconds; ValueError otherwise."""
    if _SPOKEN.fullmatch(text):
        return sum(_parse(part, DURATIONS, str) for part in _PART.findall(text))
    return _parse(text, DURATIONS, str)


def parse_bytes(text: str) -> int:
    """`1024`, `64MiB`, `4GB` as bytes; ValueError otherwise."""
    return round(_parse(text, SIZES, str.upper))


def render_number(value: float) -> str:
    """Three significant figures, without an exponent where a person would not write one."""
    if value == 0:
        return "0"
    if not 1e-4 <= abs(value) < 1e7:
        return f"{value:.3g}"
    if abs(value) >= 100:
        return f"{value:,.0f}".replace(",", " ") if abs(value) >= 10000 else f"{value:.0f}"
    return f"{value:.3g}"


def render_bytes(count: float) -> str:
    """1.9 GiB; a limit that is not there is unlimited."""
    if math.isinf(count):
        return "unlimited"
    step = 0
    while abs(count) >= 1024 and step + 1 < len(BINARY_UNITS):
        count, step = count / 1024, step + 1
    return f"{render_number(count)} {BINARY_UNITS[step]}"


def render_seconds(seconds: float) -> str:
    """3.2 ms, 0.5 s, 45 s, 12 min, 3.5 h, 2.1 days."""
    word, unit_seconds = duration_unit(seconds)
    return f"{render_number(seconds / unit_seconds)} {word}"


def duration_unit(seconds: float) -> tuple[str, float]:
    """By the three figures that are shown, so that two days less a second are not 48 h."""
    shown = abs(float(f"{seconds:.3g}"))
    fitting = (unit for unit in DURATION_UNITS if shown >= unit[0])
    _, word, unit_seconds = next(fitting, (0.0, "s", 1.0))
    return word, unit_seconds


def render_seconds_range(low: float, high: float, likely: float) -> str:
    """
    40 to 55 min: both ends in the unit of what lies between them, 90 s to 3 h where they are far apart.

    A margin around it where both ends read the same.
    """
    word, unit_seconds = duration_unit(likely)
    ends = [render_number(end / unit_seconds) for end in (low, high)]
    if ends[0] == ends[1]:
        return f"give or take {render_seconds(max(likely - low, high - likely))}"
    if low > 0 and high > FAR_APART * low:
        return f"{render_seconds(low)} to {render_seconds(high)}"
    return f"{ends[0]} to {ends[1]} {word}"


def is_share(unit: str) -> bool:
    """Written in percent."""
    return unit in {"ratio", "share"} or unit.startswith("share of ")


def render_quantity(value: float, unit: str) -> str:
    """1.9 GiB, 0.42 cores, 38 %: the unit a person would use."""
    if unit in {"bytes", "bytes/s"}:
        return render_bytes(value) + ("/s" if unit.endswith("/s") else "")
    if is_share(unit):
        return f"{render_number(100 * value)} %"
    if unit in {"seconds", "s"}:
        return render_seconds(value)
    return render_number(value) if unit in {"", "count"} else f"{render_number(value)} {unit}"


def render_slope(slope_per_second: float, unit: str) -> str:
    """38 MiB/h: per second, minute or hour, whichever is the first to reach 1; bytes per hour."""
    shown = abs(100 * slope_per_second if is_share(unit) else slope_per_second)
    steps = ((1.0, "s"), (60.0, "min"), (3600.0, "h"))
    fitting = (step for step in steps if shown * step[0] >= 1 and unit != "bytes")
    per_seconds, word = next(fitting, steps[-1])
    return f"{render_quantity(slope_per_second * per_seconds, unit)}/{word}"


def render_count(count: int, noun: str) -> str:
    """1 container, 2 containers."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
