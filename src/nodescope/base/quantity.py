"""Numbers as people write and read them: 500ms, 64MiB, 1.9 GiB, 38 MiB/h."""

import math
import re

DURATIONS = {
    "ns": 1e-9,
    "us": 1e-6,
    "ms": 1e-3,
    "s": 1.0,
    "m": 60.0,
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
_QUANTITY = re.compile(r"\s*([0-9]*\.?[0-9]+(?:[eE][+-]?[0-9]+)?)\s*([A-Za-z]*)\s*")


def _split(text: str) -> tuple[float, str]:
    match = _QUANTITY.fullmatch(text)
    if not match:
        raise ValueError(text)
    number = float(match[1])
    if not math.isfinite(number):
        raise ValueError(text)
    return number, match[2]


def parse_seconds(text: str) -> float:
    """`1`, `1s`, `500ms`, `2m`, `7d` as seconds; ValueError otherwise."""
    number, unit = _split(text)
    if unit and unit not in DURATIONS:
        raise ValueError(text)
    return number * DURATIONS.get(unit, 1.0)


def parse_bytes(text: str) -> int:
    """`1024`, `64MiB`, `4GB` as bytes; ValueError otherwise."""
    number, unit = _split(text)
    if unit and unit.upper() not in SIZES:
        raise ValueError(text)
    return round(number * SIZES.get(unit.upper(), 1.0))


def render_bytes(count: float) -> str:
    """`1.9 GiB`: three figures at the most, the unit a person would use."""
    if not math.isfinite(count):
        return "unlimited"
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(count) < 1000:
            return f"{count:.3g} {unit}"
        count /= 1024
    return f"{count:.4g} TiB"


def render_seconds(seconds: float) -> str:
    """`3.2 ms`, `41 s`, `2 h 5 min`."""
    if seconds < 1e-3:
        return f"{seconds * 1e6:.3g} us"
    if seconds < 1:
        return f"{seconds * 1e3:.3g} ms"
    if seconds < 120:
        return f"{seconds:.3g} s"
    minutes = round(seconds / 60)
    if minutes < 120:
        return f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    if hours < 48:
        return f"{hours} h {minutes} min" if minutes else f"{hours} h"
    return f"{hours // 24} d {hours % 24} h"
