"""
One query of the archive and the live tail: a metric, of which series, from when to when.

The nodes of an archive are read one by one (node_query.py). Buckets of a
minute or more begin at whole minutes, and are filled from rollups where there
are some.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from nodescope.base.block import Integers
from nodescope.base.errors import RequestRejected
from nodescope.keep.label_columns import Identity, Subject
from nodescope.keep.rollup import MINUTE_MS
from nodescope.read.files.catalog import Catalog
from nodescope.read.files.derived_cache import DerivedCache
from nodescope.read.files.listing import FileEntry
from nodescope.read.files.rollups import Rollup, find_rollups, reach
from nodescope.read.live.tail import LiveTail
from nodescope.read.query.bucket import BucketGrid, Points, make_grid
from nodescope.read.query.file_sweep import FileSweep
from nodescope.read.query.kept_answer import LONGEST_SAMPLES, KeptAnswer, name_versions, share_arrays
from nodescope.read.query.minute_cells import MinuteCells
from nodescope.read.query.node_query import LEAD_MS, NodeQuery
from nodescope.read.query.resolve import Rate, ResolvedMetric, resolve_metric
from nodescope.read.query.row_reader import RowReader
from nodescope.read.query.series_join import Targets
from nodescope.read.query.sql import SqlReader

# An incident of an hour on a node with 100 containers takes some 15 MiB.
SWEEP_BYTES = 18 * 2**20
# A day of a container in samples takes 0.7 MiB a metric.
ANSWER_BYTES = 8 * 2**20


@dataclass(slots=True)
class QueryLine:
    """One series of an answer."""

    subject: Subject
    points: Points


@dataclass(slots=True)
class QueryResult:
    """Series, the width of a bucket (0: samples as they are), and what could not be read."""

    asked: ResolvedMetric
    from_ms: int
    to_ms: int
    width_ms: int
    lines: list[QueryLine]
    refused: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Engine:
    """Shared by all queries. What was computed of files is kept."""

    sql: SqlReader = field(default_factory=SqlReader)
    reader: RowReader = field(default_factory=RowReader)
    minutes: DerivedCache[MinuteCells] = field(default_factory=DerivedCache)
    sweeps: DerivedCache[FileSweep] = field(default_factory=lambda: DerivedCache(SWEEP_BYTES))

    answers: DerivedCache[KeptAnswer] = field(default_factory=lambda: DerivedCache(ANSWER_BYTES))
    _times: dict[tuple[int, int, int], Integers] = field(default_factory=dict)

    def __post_init__(self) -> None:
        # One heap for all: what Arrow gives back numpy uses again.
        pa.set_memory_pool(pa.system_memory_pool())

    def query(
        self,
        catalog: Catalog,
        metric: str,
        containers: Sequence[str] | None = None,
        from_ms: int | None = None,
        to_ms: int | None = None,
        max_points: int = 1000,
        rate: Rate = "auto",
        tail: LiveTail | None = None,
        scope: str | None = None,
    ) -> QueryResult:
        """
        Full container ids, or None for all; times default to all there is.

        With `scope` the same name is read of something else: the `cpu` of a
        node, of each core or process. Of a raw name it selects the series.
        """
        known = {**catalog.metrics, **(tail.metrics if tail else {})}
        resolved = resolve_metric(metric, known, rate, scope)
        if containers is not None and resolved.scope not in ("", "container"):
            raise RequestRejected(f'"{metric}" is measured per {resolved.scope}, not per container')
        if from_ms is None or to_ms is None:
            first, last = whole_range(catalog, tail)
            from_ms = first if from_ms is None else from_ms
            to_ms = last if to_ms is None else to_ms
        if from_ms > to_ms:
            raise RequestRejected(f"the range ends ({to_ms} ms) before it begins ({from_ms} ms)")
        if max_points < 1:
            raise RequestRejected(f"max_points = {max_points} is not accepted; accepted: 1 or more")
        grid = make_grid(from_ms, to_ms, max_points)
        answer = QueryResult(resolved, from_ms, to_ms, grid.width_ms, [])
        rollups = []
        near = catalog.select(from_ms - LEAD_MS, to_ms)
        if grid.width_ms >= MINUTE_MS:
            rollups = find_rollups(catalog.paths, *reach(near, from_ms, to_ms), answer.refused)
        versions = name_versions(near, rollups, tail, to_ms)
        asked = None if containers is None else tuple(containers)
        key = (versions, metric, asked, from_ms, to_ms, max_points, rate, scope)
        kept = self.answers.get(key) if versions is not None else None
        if kept is not None and kept.catalog is catalog:
            return replace(kept.result, lines=list(kept.result.lines), refused=list(kept.result.refused))
        self._read(answer, catalog, tail, containers, grid, rollups)
        self.reader.give_back()
        if versions is not None and sum(len(line.points.time_ms) for line in answer.lines) < LONGEST_SAMPLES:
            answer = share_arrays(answer, self._times)
            self.answers.put(key, KeptAnswer(catalog, answer))
        return replace(answer, lines=list(answer.lines))

    def _read(
        self,
        answer: QueryResult,
        catalog: Catalog,
        tail: LiveTail | None,
        containers: Sequence[str] | None,
        grid: BucketGrid,
        rollups: Sequence[Rollup],
    ) -> None:
        resolved = answer.asked
        for node, entries in split_nodes(catalog, rollups, tail):
            mine = tail if tail and tail.node == node else None
            targets = Targets(resolved, node, catalog, tail, containers)
            taken: set[Identity] = set()
            for inputs in resolved.variants:
                query = NodeQuery(
                    self.reader, self.sql, resolved, inputs, targets, containers, grid, self.minutes
                )
                query.read_files(entries, [one for one in rollups if one.node == node])
                if mine:
                    query.read_tail(mine)
                lines = [QueryLine(*found) for found in query.take_series(taken)]
                answer.lines += map(bound_share, lines) if resolved.is_share_of_time else lines
                answer.refused += [one for one in query.refused if one not in answer.refused]
        answer.lines.sort(key=lambda line: (line.subject.identity, line.subject.label("l_node_name") or ""))


def bound_share(line: QueryLine) -> QueryLine:
    """
    Not more than all of the time.

    A kernel's file is read a little after the clock: after a pause of the agent a
    second of waiting may seem to have had 1.7 of them.
    """
    points = line.points
    low, mean, high = (np.minimum(one, 1.0) for one in (points.minimum, points.mean, points.maximum))
    return replace(line, points=replace(points, minimum=low, mean=mean, maximum=high))


def whole_range(catalog: Catalog, tail: LiveTail | None) -> tuple[int, int]:
    held: list[Catalog | LiveTail | Rollup] = [
        catalog,
        *([tail] if tail else []),
        *find_rollups(catalog.paths, 0, 2**62),
    ]
    starts = [one.from_ms for one in held if one.from_ms is not None]
    ends = [one.to_ms for one in held if one.to_ms is not None]
    if not starts or not ends:
        raise RequestRejected("there is no data here yet")
    return min(starts), max(ends)


def split_nodes(
    catalog: Catalog, rollups: Sequence[Rollup], tail: LiveTail | None
) -> Iterator[tuple[str, list[FileEntry]]]:
    """Two nodes' first cores are two series: each node is read alone."""
    by_node: dict[str, list[FileEntry]] = {}
    for entry in catalog.entries:
        by_node.setdefault(entry.node, []).append(entry)
    for node in [*(rollup.node for rollup in rollups), *([tail.node] if tail and tail.days else [])]:
        by_node.setdefault(node, [])
    yield from sorted(by_node.items())
