"""Two sides of a fleet compared: two archives, or before and after a moment."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from nodescope.use.fleet.group import Spread, group_of, spread_of


@dataclass(frozen=True, slots=True)
class FleetPair:
    """One workload in one metric on both sides; None where a side has none."""

    name: str
    metric: str
    unit: str
    first: Spread | None
    second: Spread | None
    first_series: int
    second_series: int

    @property
    def change(self) -> float | None:
        """Of the median, as a share of the first's; None where there is nothing to compare."""
        if self.first is None or self.second is None or not self.first.middle:
            return None
        return self.second.middle / self.first.middle - 1.0

    @property
    def is_apart(self) -> bool:
        if self.first is None or self.second is None:
            return False
        return self.first.high < self.second.low or self.second.high < self.first.low


def compare(rows: Sequence[dict[str, Any]], by: str) -> list[FleetPair]:
    """The largest change first; pairs whose ranges overlap come after the others."""
    found: dict[tuple[str, str, str], dict[str, list[float | None]]] = {}
    for row in rows:
        key = group_of(row, by), row["metric"], row["unit"]
        found.setdefault(key, {"A": [], "B": []})[row["side"]].append(row["magnitude"])
    pairs = [
        FleetPair(*key, spread_of(side["A"]), spread_of(side["B"]), len(side["A"]), len(side["B"]))
        for key, side in found.items()
    ]
    return sorted(pairs, key=lambda pair: (not pair.is_apart, -abs(pair.change or 0.0), pair.name))
