"""
Two exporters of one node: which series of theirs ours has, and whether the values agree.

Ours is scraped before and after theirs. A series of theirs is ours when all
labels that it has are equal; ours may have more (pod, container, image). A
counter must lie between our two readings, a gauge near them, because it may have
been anywhere in between.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from nodescope.serve.prometheus_parse import TextFamily

# Exporters write CPU time in hundredths of a second, some cut, some rounded.
COUNTER_SLACK = 0.02
# A gauge may move between two scrapes that are a second apart.
GAUGE_SHARE = 0.05
# Names about an exporter itself, which another exporter cannot have.
OWN_PREFIXES = ("go_", "process_", "promhttp_", "cadvisor_version_info", "container_scrape_error")

Labels = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Difference:
    """A series that both have, with other values."""

    name: str
    labels: Labels
    ours: tuple[float, float]
    theirs: float


@dataclass(slots=True)
class Comparison:
    """What came of it."""

    same: int = 0
    different: list[Difference] = field(default_factory=list)
    missing_names: dict[str, int] = field(default_factory=dict)
    """Names that ours does not have at all, with how many series theirs has."""
    missing_series: list[tuple[str, Labels]] = field(default_factory=list)
    """Series of names that ours has otherwise."""

    @property
    def total(self) -> int:
        named = self.same + len(self.different) + len(self.missing_series)
        return named + sum(self.missing_names.values())


def compare(
    before: Mapping[str, TextFamily], theirs: Mapping[str, TextFamily], after: Mapping[str, TextFamily]
) -> Comparison:
    """All series of theirs, but for those about the exporter itself."""
    found = Comparison()
    first, last = index_series(before.values()), index_series(after.values())
    for family in theirs.values():
        if family.name.startswith(OWN_PREFIXES):
            continue
        for name, labels, value in family.samples:
            if name not in first or name not in last:
                found.missing_names[name] = found.missing_names.get(name, 0) + 1
                continue
            kept = tuple((key, text) for key, text in labels if text)
            ours = add_up(first[name], kept), add_up(last[name], kept)
            note(found, name, kept, ours, value)
    return found


def note(
    found: Comparison, name: str, labels: Labels, ours: tuple[float | None, float | None], theirs: float
) -> None:
    first, last = ours
    if first is None or last is None:
        found.missing_series.append((name, labels))
    elif is_near(first, last, theirs, is_counter=name.endswith("_total")):
        found.same += 1
    else:
        found.different.append(Difference(name, labels, (first, last), theirs))


Series = list[tuple[frozenset[tuple[str, str]], float]]


def index_series(families: Iterable[TextFamily]) -> dict[str, Series]:
    found: dict[str, Series] = defaultdict(list)
    for family in families:
        for name, labels, value in family.samples:
            found[name].append((frozenset((key, text) for key, text in labels if text), value))
    return dict(found)


def add_up(series: Series, labels: Labels) -> float | None:
    """The sum of ours that have these labels: a label that they do not split by; None where there is none."""
    wanted = frozenset(labels)
    matching = [value for own, value in series if wanted <= own]
    return sum(matching) if matching else None


def is_near(first: float, last: float, theirs: float, *, is_counter: bool) -> bool:
    """Whether theirs may have been read between our two readings."""
    if math.isnan(theirs):
        return math.isnan(first) or math.isnan(last)
    if math.isinf(theirs):
        return theirs in (first, last)
    low, high = min(first, last), max(first, last)
    slack = COUNTER_SLACK + 1e-9 * abs(high)
    if not is_counter:
        slack += (high - low) + GAUGE_SHARE * max(abs(low), abs(high))
    return low - slack <= theirs <= high + slack


def render(peer: str, found: Comparison, most: int) -> Sequence[str]:
    """One line for the whole, one for each thing that is not the same, at most so many of a kind."""
    lines = [summarize(peer, found)]
    different = [
        f"  differs  {show(one.name, one.labels)}: "
        f"theirs {one.theirs:.10g}, ours {one.ours[0]:.10g} to {one.ours[1]:.10g}"
        for one in found.different
    ]
    series = [f"  missing  {show(*one)}" for one in found.missing_series]
    names = [f"  missing  {name} ({count} series)" for name, count in sorted(found.missing_names.items())]
    for kind in (different, series, names):
        lines += kind[:most]
        if len(kind) > most:
            lines.append(f"  ... {len(kind) - most} more; --all shows them")
    return lines


def summarize(peer: str, found: Comparison) -> str:
    unknown = f"{sum(found.missing_names.values())} of {len(found.missing_names)} names that we do not have"
    return (
        f"{peer}: {found.total} series, {found.same} the same, {len(found.different)} with other values, "
        f"{len(found.missing_series)} without a series of ours, {unknown}"
    )


def show(name: str, labels: Labels) -> str:
    inside = ",".join(f'{key}="{value}"' for key, value in labels)
    return f"{name}{{{inside}}}" if inside else name
