"""Rows in groups: the 500 replicas of a Deployment are one line with median and range."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from nodescope.base.quantity import is_share
from nodescope.use.fleet.unit import UnitAnswer
from nodescope.use.fleet.workload import Owner

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Spread:
    low: float
    middle: float
    high: float


def spread_of(values: Iterable[float | None]) -> Spread | None:
    held = sorted(value for value in values if value is not None)
    return Spread(held[0], float(median(held)), held[-1]) if held else None


@dataclass(slots=True)
class Group:
    """Everything that was found about one workload (or image, node, namespace) in one metric."""

    name: str
    metric: str
    looked_at: int
    rows: list[Row] = field(default_factory=list)

    @property
    def series(self) -> int:
        """Different series with a finding; one may have it on several days."""
        return len({(row["node"], row["container_id"] or row["series"], row["day"]) for row in self.rows})

    @property
    def nodes(self) -> int:
        return len({row["node"] for row in self.rows})

    def spread(self, name: str) -> Spread | None:
        return spread_of(row.get(name) for row in self.rows)

    def over_span(self) -> float:
        """What all its series used over the span, on all nodes; of a share of time the mean while there."""
        rows = [row for row in self.rows if row.get("over_span") is not None]
        if not rows or is_share(str(rows[0].get("unit") or "")):
            return float(sum(row["magnitude"] or 0.0 for row in self.rows) / len(self.rows))
        used: dict[str, float] = {}
        seconds: dict[str, dict[Any, float]] = {}
        for row in rows:
            node = row["node"]
            used[node] = used.get(node, 0.0) + row["over_span"] * row["span_seconds"]
            seconds.setdefault(node, {})[row["day"]] = row["span_seconds"]
        return sum(value / sum(seconds[node].values()) for node, value in used.items())

    def images(self) -> list[str]:
        return sorted({row["image"] for row in self.rows if row["image"]})


def count_looked(parts: Sequence[UnitAnswer], by: str) -> Counter[tuple[str, str]]:
    """(group, metric) -> series that were looked at."""
    looked: Counter[tuple[str, str]] = Counter()
    for part in parts:
        for owner, count in part.looked.items():
            looked[owner.group(by), part.unit.metric] += count
    return looked


def group_of(row: Row, by: str) -> str:
    return Owner(row["node"], row["namespace"], row["workload"], row["image"]).group(by)


def group_rows(
    rows: Iterable[Row], looked: Mapping[tuple[str, str], int], by: str, rank: Callable[[Group], Any]
) -> list[Group]:
    """Best first."""
    groups: dict[tuple[str, str], Group] = {}
    for row in rows:
        key = group_of(row, by), row["metric"]
        if key not in groups:
            groups[key] = Group(*key, looked.get(key, 0))
        groups[key].rows.append(row)
    return sorted(groups.values(), key=lambda group: (rank(group), group.name))
