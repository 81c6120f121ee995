"""Which row groups of a file have rows of a metric and of some containers, by the statistics of its footer."""

from collections.abc import Collection
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from nodescope.keep.parquet import open_parquet

METRIC, CONTAINER = "metric_name", "l_container_id"
# A statistic that is not there excludes nothing.
EVERYTHING = ("", "\U0010ffff")


@dataclass(frozen=True, slots=True)
class RowGroup:
    """What the footer says of one row group."""

    rows: int
    metrics: tuple[str, str]
    """The first and the last of its metrics, in order of their names."""
    containers: tuple[str, str]

    def may_have(self, metric: str, containers: Collection[str] | None) -> bool:
        first, last = self.containers
        return self.metrics[0] <= metric <= self.metrics[1] and (
            containers is None or any(first <= one <= last for one in containers)
        )


# Of a week of hours; an entry is some KiB.
@lru_cache(maxsize=1024)
def read_row_groups(path: Path, size_bytes: int, mtime_ns: int) -> tuple[RowGroup, ...]:
    """Of one version of a file; ArchiveRefused where its footer announces more than a file of this size can hold."""
    del size_bytes, mtime_ns
    metadata = open_parquet(path).metadata
    names = metadata.schema.names
    places = {name: names.index(name) for name in (METRIC, CONTAINER) if name in names}
    groups = (metadata.row_group(number) for number in range(metadata.num_row_groups))
    return tuple(
        RowGroup(group.num_rows, *(read_range(group, places.get(name)) for name in (METRIC, CONTAINER)))
        for group in groups
    )


def read_range(group: Any, place: int | None) -> tuple[str, str]:
    statistics = None if place is None else group.column(place).statistics
    if statistics is None or not statistics.has_min_max:
        return EVERYTHING
    return str(statistics.min), str(statistics.max)
