"""
Answers of the archive alone, kept for who asks the same again.

An answer is good for one catalog, whose files are still the versions that they were, and for a
range that no live frame is in. Its arrays may not be written to. Those that hold the same are
one: the times of all metrics of a container, and the ones that count samples.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from nodescope.base.block import Integers
from nodescope.read.files.catalog import Catalog
from nodescope.read.files.listing import FileEntry
from nodescope.read.files.rollups import Rollup
from nodescope.read.live.tail import LiveTail
from nodescope.read.query.bucket import Points

if TYPE_CHECKING:
    from nodescope.read.query.engine import QueryResult

# Beyond, an answer is for a file or a terminal, and nobody asks for it twice.
LONGEST_SAMPLES = 1_000_000
LINE_BYTES = 1000
# A question is about few spans, and its metrics are asked for one after the other.
TIMES_MOST = 4


@dataclass(frozen=True, slots=True)
class KeptAnswer:
    """With the catalog that it is of: its subjects are known by it."""

    catalog: Catalog
    result: "QueryResult"

    @property
    def size_bytes(self) -> int:
        """Of what is not shared with another array."""
        return sum(LINE_BYTES + count_bytes(line.points) for line in self.result.lines)


def count_bytes(points: Points) -> int:
    columns = (points.minimum, points.mean, points.maximum)
    own = {id(column): column.nbytes for column in columns}
    return sum(own.values()) + (points.count.nbytes if points.count.strides != (0,) else 0)


def name_versions(
    entries: Sequence[FileEntry], rollups: Sequence[Rollup], tail: LiveTail | None, to_ms: int
) -> Hashable | None:
    """None where the answer may be another one a second later."""
    if tail is not None and tail.days and (tail.from_ms is None or tail.from_ms <= to_ms):
        return None
    if any(entry.sidecar is None or entry.remote for entry in entries):
        return None
    try:
        stats = [entry.path.stat() for entry in entries]
    except OSError:
        return None
    return (
        tuple((status.st_ino, status.st_size, status.st_mtime_ns) for status in stats),
        tuple((rollup.path, rollup.mtime_ns) for rollup in rollups),
    )


def share_arrays(result: "QueryResult", times: dict[tuple[int, int, int], Integers]) -> "QueryResult":
    """The same answer; `times` has those that were seen before."""
    lines = [replace(line, points=share_points(line.points, times)) for line in result.lines]
    return replace(result, lines=lines)


def share_points(points: Points, times: dict[tuple[int, int, int], Integers]) -> Points:
    time_ms, count = points.time_ms, points.count
    if len(time_ms):
        key = (len(time_ms), int(time_ms[0]), int(time_ms[-1]))
        if key not in times and len(times) >= TIMES_MOST:
            times.clear()
        known = times.setdefault(key, time_ms)
        time_ms = known if np.array_equal(known, time_ms) else time_ms
        if (count == count[0]).all():
            count = np.broadcast_to(count[0], count.shape)
    for column in (time_ms, points.minimum, points.mean, points.maximum, count):
        column.flags.writeable = False
    return Points(time_ms, points.minimum, points.mean, points.maximum, count)
