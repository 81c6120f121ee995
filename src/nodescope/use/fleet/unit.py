"""
The units of work of a question, and the answer of one unit.

A unit is one metric of one node on one day, all of its containers together.
Units and answers are plain data that is sent between processes.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from nodescope.read.files.file_survey import FileRef, Survey, SurveyFault
from nodescope.use.fleet.workload import Owner

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
    node: str
    day: str
    metric: str
    from_ms: int
    to_ms: int
    files: tuple[FileRef, ...]
    side: str = ""
    """A or B where two are compared; else empty."""

    @property
    def name(self) -> str:
        return f"{self.node} {self.day} {self.metric}"


@dataclass(slots=True)
class UnitAnswer:
    unit: Unit
    rows: list[dict[str, Any]] = field(default_factory=list)
    looked: Counter[Owner] = field(default_factory=Counter)
    """Series with enough samples, by owner."""
    short: int = 0
    """Series with too few samples."""
    elsewhere: Counter[Owner] = field(default_factory=Counter)
    """Changes at other times than the moment in question: how often is usual."""
    seconds_elsewhere: dict[Owner, float] = field(default_factory=dict)
    collected: bool = True
    samples: int = 0
    fetched_bytes: int = 0
    faults: list[SurveyFault] = field(default_factory=list)


def split_by_day(
    survey: Survey, metrics: Sequence[str], from_ms: int | None, to_ms: int | None, side: str = ""
) -> list[Unit]:
    """By node and day; a day's unit also has the file before, for the first rate."""
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


def units_around(survey: Survey, metrics: Sequence[str], from_ms: int, to_ms: int) -> list[Unit]:
    """One unit per node and metric around a moment, also across midnight."""
    nodes = by_node(survey.files).items()
    return [unit for node, files in nodes for unit in make_units(node, files, metrics, from_ms, to_ms)]


def by_node(files: Sequence[FileRef]) -> Mapping[str, list[FileRef]]:
    found: dict[str, list[FileRef]] = {}
    for file in files:
        found.setdefault(file.node, []).append(file)
    return dict(sorted(found.items()))
