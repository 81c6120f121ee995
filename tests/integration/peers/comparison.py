"""
Two expositions of one machine: which series both have, and whether they agree.

Ours is scraped several times, theirs once in between. A counter of theirs must
lie between our first and our last reading; a gauge within what ours showed,
widened by the largest step that ours made, because a gauge may have been
anywhere in between.
"""

import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from nodescope.serve.prometheus_parse import parse_text

Series = tuple[str, frozenset[tuple[str, str]]]

# Kernel and exporters write CPU time in hundredths of a second, some of them
# cut, some rounded.
COUNTER_STEP_SECONDS = 0.011
# Gauges that ours showed unchanged may still have moved between two ticks.
GAUGE_SHARE = 0.02
# node_exporter has some thousand series on a large machine, cAdvisor a hundred a container.
MOST_SERIES = 1_000_000


@dataclass(frozen=True)
class Snapshot:
    """One scrape."""

    values: Mapping[Series, float]
    kinds: Mapping[str, str]

    @property
    def names(self) -> set[str]:
        return {name for name, _ in self.values}

    def with_values(self, change: Callable[[Series, float], float]) -> "Snapshot":
        return Snapshot({series: change(series, value) for series, value in self.values.items()}, self.kinds)

    def mapped(self, mapping: Callable[[Series], Series | None]) -> "Snapshot":
        """
        The same with other series; None drops one.

        Several that become one are summed: a label that the other side does
        not split by.
        """
        values: dict[Series, float] = {}
        for series, value in self.values.items():
            other = mapping(series)
            if other is not None:
                values[other] = values.get(other, 0.0) + value
        return Snapshot(values, self.kinds)


def parse_exposition(text: str) -> Snapshot:
    """By the parser of `nodescope compare-peers`. An empty label is the same as none, as Prometheus has it."""
    values: dict[Series, float] = {}
    kinds: dict[str, str] = {}
    for family in parse_text(text, has_timestamps=True, most=MOST_SERIES).values():
        for name, labels, value in family.samples:
            values[name, frozenset((key, word) for key, word in labels if word)] = value
            kinds[name] = family.metric_type
    return Snapshot(values, kinds)


@dataclass(frozen=True)
class Disagreement:
    series: Series
    ours: tuple[float, ...]
    theirs: float

    def __str__(self) -> str:
        name, labels = self.series
        shown = ",".join(f'{key}="{value}"' for key, value in sorted(labels))
        return f"{name}{{{shown}}}: theirs {self.theirs!r}, ours {[*self.ours]!r}"


def shared_series(ours: Sequence[Snapshot], theirs: Snapshot) -> set[Series]:
    """What theirs and every one of our scrapes have."""
    return set(theirs.values).intersection(*(snapshot.values for snapshot in ours))


def find_disagreements(
    ours: Sequence[Snapshot], theirs: Snapshot, among: Iterable[Series]
) -> list[Disagreement]:
    found = []
    for series in among:
        readings = tuple(snapshot.values[series] for snapshot in ours)
        value = theirs.values[series]
        if not is_near(readings, value, is_counter=is_counter(series[0], theirs)):
            found.append(Disagreement(series, readings, value))
    return found


def is_counter(name: str, theirs: Snapshot) -> bool:
    return theirs.kinds.get(name) == "counter" or name.endswith("_total")


def is_near(ours: Sequence[float], theirs: float, *, is_counter: bool) -> bool:
    """
    forall v in ours: is_near(ours, v); forall v in [min(ours), max(ours)], too.
    """
    if math.isnan(theirs) or math.isinf(theirs):
        return any(value == theirs or (math.isnan(value) and math.isnan(theirs)) for value in ours)
    if not all(map(math.isfinite, ours)):
        return False
    low, high = min(ours), max(ours)
    if is_counter:
        slack = COUNTER_STEP_SECONDS + 1e-9 * abs(high)
    else:
        step = max((abs(after - before) for before, after in itertools.pairwise(ours)), default=0.0)
        slack = step + GAUGE_SHARE * max(abs(low), abs(high))
    return low - slack <= theirs <= high + slack
