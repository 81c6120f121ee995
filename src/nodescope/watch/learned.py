"""
What is so every day at the same hour: a small profile of each workload.

A nightly job that is throttled, crowds others out or fills its memory does so
at its hour. Once it was seen so on three earlier days of the last eight, the
next time is no news. Kills, crash loops, full disks and lost devices are
never learned: they are as bad the tenth time.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import isfinite
from typing import Any

LEARNED_KINDS = frozenset({"memory_leak", "cpu_throttling", "noisy_neighbour"})
DAY_SECONDS = 86_400
HOUR_SECONDS = 3600
DAYS_NEEDED = 3
DAYS_KEPT = 8
# A job that starts at 02:58 or at 03:02 is the same one.
HOURS_NEAR = 1
KEYS_MOST = 500


@dataclass(slots=True)
class HourProfile:
    """By key of a finding: the (day, hour) in which it was there, newest last."""

    seen: dict[str, list[tuple[int, int]]] = field(default_factory=dict)

    def note(self, key: str, at: float) -> None:
        now = split_time(at)
        rows = self.seen.setdefault(key, [])
        if now not in rows:
            rows.append(now)
            self.seen[key] = [row for row in rows if now[0] - row[0] <= DAYS_KEPT]
        while len(self.seen) > KEYS_MOST:
            del self.seen[next(iter(self.seen))]

    def knows(self, key: str, at: float) -> bool:
        """Whether it was there at this hour on enough earlier days."""
        today, hour = split_time(at)
        days = {
            day
            for day, other in self.seen.get(key, ())
            if 0 < today - day <= DAYS_KEPT and is_near(hour, other)
        }
        return len(days) >= DAYS_NEEDED

    def to_json(self) -> dict[str, Any]:
        return {key: [list(row) for row in rows] for key, rows in self.seen.items()}


def read_profile(content: Mapping[str, Any]) -> HourProfile:
    """What an earlier run learned; rows that are none are left out."""
    found: dict[str, list[tuple[int, int]]] = {}
    for key, rows in content.items():
        kept = list(read_rows(rows))
        if kept:
            found[str(key)] = kept
    return HourProfile(found)


def read_levels(content: object) -> dict[str, float]:
    """What was harmless in an earlier run, by name; what is no number is left out."""
    rows = content.items() if isinstance(content, dict) else ()
    return {
        str(name): float(level)
        for name, level in rows
        if isinstance(level, int | float) and not isinstance(level, bool) and isfinite(level)
    }


def read_rows(rows: object) -> Iterable[tuple[int, int]]:
    for row in rows if isinstance(rows, list) else ():
        if isinstance(row, list) and len(row) == 2 and all(isinstance(one, int) for one in row):
            yield row[0], row[1]


def split_time(at: float) -> tuple[int, int]:
    return int(at // DAY_SECONDS), int(at % DAY_SECONDS // HOUR_SECONDS)


def is_near(hour: int, other: int) -> bool:
    apart = abs(hour - other)
    return min(apart, 24 - apart) <= HOURS_NEAR
