"""
What is asked, in which pieces it is worked on, and what one piece answers.

A unit is one metric of one node on one day, all of its containers together.
All of it is plain data that travels between processes.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from nodescope.read.files.file_survey import FileRef, Survey, SurveyFault

MS_PER_DAY = 86_400_000
# A counter's first rate needs the sample before; see read/query/engine.py.
LEAD_MS = 35_000


@dataclass(frozen=True, slots=True)
class Job:
    """The question, the same for all units."""

    question: str
    """A study's name, or leaks, changes, top."""
    at_ms: int | None = None
    within_ms: int = 120_000


@dataclass(frozen=True, slots=True)
class Unit:
    """One piece of work."""

    node: str
    day: str
    metric: str
    from_ms: int
    to_ms: int
    files: tuple[FileRef, ...]
    side: str = ""
    """Which of two that are compared; empty where there is one."""

    @property
    def name(self) -> str:
        return f"{self.node} {self.day} {self.metric}"


Key = tuple[str, str, str]
"""Namespace, workload, image."""


@dataclass(slots=True)
class UnitPart:
    """The answer of one unit."""

    unit: Unit
    rows: list[dict[str, Any]] = field(default_factory=list)
    looked: Counter[Key] = field(default_factory=Counter)
    """Series with enough samples to say something, by whose they are."""
    short: int = 0
    """Series with too few samples."""
    elsewhere: Counter[Key] = field(default_factory=Counter)
    """Changes outside of the moment that was asked for: what is usual."""
    seconds_elsewhere: dict[Key, float] = field(default_factory=dict)
    collected: bool = True
    samples: int = 0
    fetched_bytes: int = 0
    faults: list[SurveyFault] = field(default_factory=list)


def cut_units(
    survey: Survey, metrics: Sequence[str], from_ms: int | None, to_ms: int | None, side: str = ""
) -> list[Unit]:
    """By node and day; a day's unit also holds the file before, for the first rate."""
    units: list[Unit] = []
    for node, files in by_node(survey.files).items():
        first = max(min(file.from_ms for file in files), from_ms or 0)
        last = max(file.to_ms for file in files)
        last = last if to_ms is None else min(last, to_ms)
        for number in range(first // MS_PER_DAY, last // MS_PER_DAY + 1):
            start = max(first, number * MS_PER_DAY)
            end = min(last, (number + 1) * MS_PER_DAY - 1)
            units += make_units(node, files, metrics, start, end, side)
    return units


def make_units(
    node: str, files: Sequence[FileRef], metrics: Sequence[str], from_ms: int, to_ms: int, side: str = ""
) -> list[Unit]:
    inside = tuple(file for file in files if file.to_ms >= from_ms - LEAD_MS and file.from_ms <= to_ms)
    if not any(file.to_ms >= from_ms for file in inside):
        return []
    day = max(file.day for file in inside)
    return [Unit(node, day, metric, from_ms, to_ms, inside, side) for metric in metrics]


def window_units(survey: Survey, metrics: Sequence[str], from_ms: int, to_ms: int) -> list[Unit]:
    """One stretch around a moment, whatever midnight lies in it."""
    return [
        unit
        for node, files in by_node(survey.files).items()
        for unit in make_units(node, files, metrics, from_ms, to_ms)
    ]


def by_node(files: Sequence[FileRef]) -> Mapping[str, list[FileRef]]:
    found: dict[str, list[FileRef]] = {}
    for file in files:
        found.setdefault(file.node, []).append(file)
    return dict(sorted(found.items()))
