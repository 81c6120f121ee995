"""How numbers, times and names are written for people: the same way in every study."""

from datetime import UTC, datetime
from difflib import get_close_matches

BINARY_STEPS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
MINUTE, HOUR, DAY = 60.0, 3600.0, 86400.0


def quantity(value: float, unit: str) -> str:
    """1.9 GiB, 0.42 cores, 38 %: the unit a person would use."""
    if unit in {"bytes", "bytes/s"}:
        return byte_quantity(value) + ("/s" if unit.endswith("/s") else "")
    if is_share(unit):
        return f"{rounded(100 * value)} %"
    if unit in {"seconds", "s"}:
        return duration(value)
    return f"{rounded(value)} {unit}".rstrip()


def is_share(unit: str) -> bool:
    """Written in percent."""
    return unit in {"ratio", "share"} or unit.startswith("share of ")


def byte_quantity(value: float) -> str:
    size, step = value, 0
    while abs(size) >= 1024 and step + 1 < len(BINARY_STEPS):
        size, step = size / 1024, step + 1
    return f"{rounded(size)} {BINARY_STEPS[step]}"


def rounded(value: float) -> str:
    """Three significant figures, without an exponent where a person would not write one."""
    if value == 0:
        return "0"
    if not 1e-4 <= abs(value) < 1e7:
        return f"{value:.3g}"
    if abs(value) >= 100:
        return f"{value:,.0f}".replace(",", " ") if abs(value) >= 10000 else f"{value:.0f}"
    return f"{value:.3g}"


def per_time(slope_per_second: float, unit: str) -> str:
    """38 MiB/h: a slope over the time in which it is easiest to read."""
    written = 100 * slope_per_second if is_share(unit) else slope_per_second
    per, word = next(
        (
            (seconds, name)
            for seconds, name in ((1.0, "s"), (MINUTE, "min"), (HOUR, "h"))
            if abs(written) * seconds >= 1
        ),
        (HOUR, "h"),
    )
    if unit == "bytes":
        per, word = HOUR, "h"
    return f"{quantity(slope_per_second * per, unit)}/{word}"


def duration(seconds: float) -> str:
    """0.5 s, 45 s, 12 min, 3.5 h, 2.1 days."""
    size = abs(seconds)
    if size < 2 * MINUTE:
        return f"{rounded(seconds)} s"
    if size < 2 * HOUR:
        return f"{rounded(seconds / MINUTE)} min"
    if size < 2 * DAY:
        return f"{rounded(seconds / HOUR)} h"
    return f"{rounded(seconds / DAY)} days"


def clock(at_seconds: float) -> str:
    """Date and time with zone; the date is left out only by who prints a column of one day."""
    try:
        moment = datetime.fromtimestamp(at_seconds, tz=UTC)
    except (OverflowError, ValueError, OSError):
        return f"{at_seconds:g} s"
    return moment.strftime("%Y-%m-%d %H:%M:%S UTC")


def sure(confidence: float) -> str:
    """A confidence as a word, for people who do not read decimals."""
    for least, word in ((0.99, "almost certain"), (0.9, "very likely"), (0.7, "likely"), (0.5, "possible")):
        if confidence >= least:
            return word
    return "unlikely"


SPELT = {"cpu": "CPU", "gpu": "GPU", "oom": "OOM", "pss": "PSS", "io": "I/O"}


def spoken(metric: str) -> str:
    """A plain name as a sentence has it: pressure_cpu is CPU pressure; a raw name stays as it is."""
    if not metric.replace("_", "").isalpha() or not metric.islower():
        return metric
    first, *rest = metric.split("_")
    words = [*rest, first] if first == "pressure" else [first, *rest]
    return " ".join(SPELT.get(word, word) for word in words)


def capitalised(text: str) -> str:
    return text[:1].upper() + text[1:]


def unknown_name(what: str, name: str, known: list[str]) -> str:
    """One line that says what was wrong, the nearest name, and what is accepted."""
    nearest = get_close_matches(name, known, n=1, cutoff=0.4)
    hint = f'; did you mean "{nearest[0]}"?' if nearest else ""
    return f'no {what} "{name}"{hint} (there are: {", ".join(known)})'
