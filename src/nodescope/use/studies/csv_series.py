"""
Anybody's data as a series: a CSV file with a column of times and a column of values.

    time,value
    2026-01-31T03:41:12Z,0.42
    2026-01-31T03:41:13Z,
    2026-01-31T03:41:14Z,0.44

A time is seconds since 1970 (or since anything) or ISO 8601, without a zone UTC; an empty
value is missing. Further columns are ignored; without a header the first two columns count.
"""

import csv
import re
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from nodescope.base.text import render_unknown
from nodescope.use.studies.series import FloatArray, Kind, Series

TIME_COLUMNS = ("time", "timestamp", "at", "date")
VALUE_COLUMNS = ("value",)

# What other tools write where nothing was measured.
MISSING_WORDS = frozenset({"", "nan", "na", "null", "none"})


MONTH = re.compile(r"\d{4}-\d{2}")


class SeriesRefused(ValueError):
    """The file is not a series; the text says where and what was expected."""


def read_series(path: Path, kind: Kind = "gauge", unit: str = "", limit: float | None = None) -> Series:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise SeriesRefused(f"{path}: no such file") from None
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
        raise SeriesRefused(f"{path}: {reason}; a CSV file with columns time,value is expected") from error
    times_at, values = parse_rows(text.splitlines(), str(path))
    return Series(times_at, values, kind, unit, limit, metric=path.stem, file=str(path))


def parse_rows(lines: Iterable[str], name: str) -> tuple[FloatArray, FloatArray]:
    rows = [
        (number, row) for number, row in enumerate(csv.reader(lines), 1) if any(cell.strip() for cell in row)
    ]
    if not rows:
        raise SeriesRefused(f"{name}: empty; a CSV file with columns time,value is expected")
    time_column, value_column, first = columns_of(rows[0][1], name)
    times_at = np.empty(len(rows) - first)
    values = np.empty(len(rows) - first)
    for place, (number, row) in enumerate(rows[first:]):
        if len(row) <= max(time_column, value_column):
            raise SeriesRefused(f"{name} line {number}: expected time,value, got {','.join(row)!r}")
        times_at[place] = parse_time(row[time_column].strip(), name, number)
        values[place] = parse_value(row[value_column].strip(), name, number)
    return times_at, values


def columns_of(header: list[str], name: str) -> tuple[int, int, int]:
    """Where time and value stand, and how many rows the header takes."""
    words = [cell.strip().lower() for cell in header]
    times = [place for place, word in enumerate(words) if word in TIME_COLUMNS]
    values = [place for place, word in enumerate(words) if word in VALUE_COLUMNS]
    if times and values:
        return times[0], values[0], 1
    if len(header) >= 2 and is_time(words[0]):
        return 0, 1, 0
    problem = render_unknown("column", words[0] if times == [] else words[-1], ["time", "value"])
    raise SeriesRefused(f"{name} line 1: {problem}")


def is_time(text: str) -> bool:
    try:
        parse_time(text, "", 0)
    except SeriesRefused:
        return False
    return True


def parse_time(text: str, name: str, number: int) -> float:
    try:
        return float(text)
    except ValueError:
        pass
    try:
        # A month (2026-01) is ISO 8601 too, which the library does not read.
        moment = datetime.fromisoformat(f"{text}-01" if MONTH.fullmatch(text) else text)
    except ValueError:
        problem = f"{text!r} is no time; seconds or ISO 8601 (2026-01-31T03:41:12Z) are expected"
        raise SeriesRefused(f"{name} line {number}: {problem}") from None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def parse_value(text: str, name: str, number: int) -> float:
    if text.lower() in MISSING_WORDS:
        return float("nan")
    try:
        return float(text)
    except ValueError:
        problem = f"{text!r} is no number; leave the value empty where it is missing"
        raise SeriesRefused(f"{name} line {number}: {problem}") from None
