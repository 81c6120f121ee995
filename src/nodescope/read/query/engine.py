"""
One question to the archive and the live tail: a metric, of whom, from when to when.

Pruned in this order: files by partition and sidecar (time, metric, container),
row groups by the statistics of metric_name and l_container_id, then by the
bloom filter; the last two by DuckDB, from the WHERE clause. What is left is
read a few million rows at a time, derived, and put into buckets: memory
follows the answer, not the archive. Buckets of a minute or more begin at whole
minutes, and are filled from rollups where there are some.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nodescope.base.errors import NodescopeError, RequestRejected
from nodescope.base.metric import Metric
from nodescope.keep.label_columns import LABELS, Identity, Subject
from nodescope.keep.rollup import MINUTE_MS
from nodescope.read.files.catalog import Catalog
from nodescope.read.files.listing import FileEntry
from nodescope.read.files.rollups import Rollup, choose, find_rollups
from nodescope.read.live.tail import LiveTail
from nodescope.read.query.bucket import Buckets, Points, Samples
from nodescope.read.query.derive import NOTHING, Chunk, SampleDeriver
from nodescope.read.query.fetch import Fetched, Wanted, fetch_minutes, fetch_samples, list_scopes
from nodescope.read.query.minutes import Minutes, derive_minutes, join_cuts
from nodescope.read.query.resolve import Inputs, Rate, ResolvedMetric, resolve_metric
from nodescope.read.query.series_join import Targets

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]
# Rows decoded at once: some 100 MB with their labels.
BATCH_ROWS = 4_000_000
# A counter's first rate needs the sample before; slow tables come every 5 s,
# and a busy node's every 30 s.
LEAD_MS = 35_000
CONTAINER = LABELS.index("l_container_id")
SCOPE = LABELS.index("l_scope")


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


@dataclass(frozen=True, slots=True)
class BucketGrid:
    """The buckets of an answer."""

    from_ms: int
    to_ms: int
    start_ms: int
    width_ms: int
    """0: samples as they are."""

    @property
    def number(self) -> int:
        return (self.to_ms - self.start_ms) // self.width_ms + 1


def make_grid(from_ms: int, to_ms: int, max_points: int) -> BucketGrid:
    """One sample a second is the rule; fewer samples than points stay as they are."""
    span_ms = to_ms - from_ms + 1
    if span_ms <= max_points * 1000:
        return BucketGrid(from_ms, to_ms, from_ms, 0)
    width_ms = math.ceil(span_ms / max_points)
    if width_ms < MINUTE_MS:
        return BucketGrid(from_ms, to_ms, from_ms, width_ms)
    start_ms = from_ms // MINUTE_MS * MINUTE_MS
    # Beginning earlier may take one bucket more than was asked for.
    width_ms = math.ceil((to_ms - start_ms + 1) / max_points / MINUTE_MS) * MINUTE_MS
    return BucketGrid(from_ms, to_ms, start_ms, width_ms)


@dataclass(slots=True)
class Engine:
    """A DuckDB in memory, shared by questions; it holds no data."""

    connection: duckdb.DuckDBPyConnection = field(default_factory=duckdb.connect)

    def __post_init__(self) -> None:
        self.connection.execute("SET TimeZone = 'UTC'")
        # Footers of files seen before are not parsed again.
        self.connection.execute("SET parquet_metadata_cache = true")

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

        `scope` asks for the same name of something else: the `cpu` of a node,
        of each core or process; or picks among the series of a raw name.
        """
        known = {**catalog.metrics, **(tail.metrics if tail else {})}
        asked = resolve_metric(metric, known, rate, scope)
        if containers is not None and asked.scope not in ("", "container"):
            raise RequestRejected(f'"{metric}" is measured per {asked.scope}, not per container')
        if from_ms is None or to_ms is None:
            first, last = whole_range(catalog, tail)
            from_ms = first if from_ms is None else from_ms
            to_ms = last if to_ms is None else to_ms
        if from_ms > to_ms:
            raise RequestRejected(f"the range ends ({to_ms} ms) before it begins ({from_ms} ms)")
        if max_points < 1:
            raise RequestRejected(f"max_points = {max_points} is not accepted; accepted: 1 or more")
        answer = QueryResult(asked, from_ms, to_ms, 0, [])
        grid = make_grid(from_ms, to_ms, max_points)
        answer.width_ms = grid.width_ms
        rollups = find_rollups(catalog.paths, from_ms, to_ms) if grid.width_ms >= MINUTE_MS else []
        for node, entries in split_nodes(catalog, rollups, tail):
            mine = tail if tail and tail.node == node else None
            targets = Targets(asked, node, catalog, tail, containers)
            taken: set[Identity] = set()
            for inputs in asked.variants:
                work = Work(self.connection, asked, inputs, targets, containers, grid)
                work.read_files(entries, [one for one in rollups if one.node == node])
                if mine:
                    work.read_tail(mine)
                answer.lines += work.lines(taken)
                answer.refused += [one for one in work.refused if one not in answer.refused]
        answer.lines.sort(key=lambda line: (line.subject.identity, line.subject.label("l_node_name") or ""))
        return answer


def whole_range(catalog: Catalog, tail: LiveTail | None) -> tuple[int, int]:
    ends = [catalog.to_ms, tail.to_ms if tail else None]
    starts = [catalog.from_ms, min((min(day.clocks) for day in tail.days), default=None) if tail else None]
    for rollup in find_rollups(catalog.paths, 0, 2**62):
        starts.append(rollup.from_ms)
        ends.append(rollup.to_ms)
    found = [one for one in starts if one is not None], [one for one in ends if one is not None]
    if not found[0] or not found[1]:
        raise RequestRejected("there is no data here yet")
    return min(found[0]), max(found[1])


def split_nodes(
    catalog: Catalog, rollups: Sequence[Rollup], tail: LiveTail | None
) -> Iterator[tuple[str, list[FileEntry]]]:
    """Two nodes' first cores are two series: each node is read alone."""
    by_node: dict[str, list[FileEntry]] = {}
    for entry in catalog.entries:
        by_node.setdefault(entry.sidecar.head.node if entry.sidecar else "", []).append(entry)
    for node in [*(rollup.node for rollup in rollups), *([tail.node] if tail and tail.days else [])]:
        by_node.setdefault(node, [])
    yield from sorted(by_node.items())


Sampled = dict[Identity, list[Chunk]]


class Work:
    """One question about one node, with one set of inputs, being answered."""

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        asked: ResolvedMetric,
        inputs: Inputs,
        targets: Targets,
        containers: Sequence[str] | None,
        grid: BucketGrid,
    ) -> None:
        self.connection = connection
        self.asked = asked
        self.inputs = inputs
        self.targets = targets
        # What is measured elsewhere is not found by a container's id.
        self.containers = None if containers is None or asked.of else sorted(set(containers))
        self.grid = grid
        self.derivers: dict[Identity, SampleDeriver] = {}
        self.sums: dict[Identity, Buckets | Samples] = {}
        self.refused: list[str] = []

    # -- files ----------------------------------------------------------------

    def read_files(self, entries: Sequence[FileEntry], rollups: Sequence[Rollup]) -> None:
        from_ms = self.grid.from_ms - LEAD_MS
        entries = [
            entry
            for entry in entries
            if entry.from_ms <= self.grid.to_ms and entry.to_ms >= from_ms and self._has(entry)
        ]
        scopes = list_scopes(entries, self.inputs[0].name)
        entries, rollups = choose(entries, rollups)
        self._read_rollups(rollups, scopes)
        for group in split_overlaps(entries):
            for batch in self._container_batches(group):
                self._read_group(group, batch)

    def _wanted(self, metric: Metric, containers: Sequence[str] | None, from_ms: int) -> Wanted:
        scope = self.asked.of or self.asked.scope
        return Wanted(metric.name, containers, scope, from_ms, self.grid.to_ms)

    def _read_rollups(self, rollups: Sequence[Rollup], scopes: set[str]) -> None:
        """Minutes instead of samples."""
        if not rollups:
            return
        paths = [rollup.path for rollup in rollups]
        start_ms = self.grid.start_ms
        try:
            inputs = [
                fetch_minutes(self.connection, paths, scopes, self._wanted(metric, self.containers, start_ms))
                for metric in self.inputs
            ]
        except NodescopeError as error:
            if len(rollups) == 1:
                self.refused.append(f"{paths[0].name}: {error}")
                return
            # One is broken: each alone, so that the others are served.
            for rollup in rollups:
                self._read_rollups([rollup], scopes)
            return
        joined = [{key: join_cuts(cuts) for key, cuts in fetched.series.items()} for fetched in inputs]
        parts: dict[Identity, list[Minutes]] = {}
        for identity, cut in joined[0].items():
            others = [one.get(identity) for one in joined[1:]]
            minutes = derive_minutes(self.asked.form, self.inputs, self.asked.factor, cut, others)
            for target in self.targets.of(identity):
                parts.setdefault(target, []).append(minutes)
        for target, many in parts.items():
            self._add_minutes(target, self.targets.join_minutes(many))

    def _add_minutes(self, target: Identity, minutes: Minutes) -> None:
        sums = self._sums_of(target)
        inside = self.targets.clip(target, minutes.time_ms)
        if isinstance(sums, Buckets):
            sums.add_summaries(
                minutes.time_ms[inside],
                minutes.minimum[inside],
                minutes.maximum[inside],
                minutes.mean[inside],
                minutes.count[inside],
            )

    def _sums_of(self, target: Identity) -> Buckets | Samples:
        if target not in self.sums:
            grid = self.grid
            self.sums[target] = (
                Buckets(grid.start_ms, grid.width_ms, grid.number) if grid.width_ms else Samples()
            )
        return self.sums[target]

    def _has(self, entry: FileEntry) -> bool:
        """Whether a sidecar says that there is something of it in the file."""
        if entry.sidecar is None:
            return True
        names = entry.sidecar.scopes()
        if not any(metric.name in names for metric in self.inputs):
            return False
        if self.containers is None:
            return True
        wanted = set(self.containers)
        return any(labels[CONTAINER] in wanted for labels, _ in entry.sidecar.labels())

    def _container_batches(self, entries: Sequence[FileEntry]) -> Iterator[list[str] | None]:
        """Containers a few at a time, so that a batch is a few million rows; None for no filter."""
        if self.asked.of or not entries:
            yield None
            return
        grid = self.grid
        first_ms, last_ms = max(grid.from_ms, entries[0].from_ms), min(grid.to_ms, entries[-1].to_ms)
        size = max(1, BATCH_ROWS // (max(1, (last_ms - first_ms) // 1000) * len(self.inputs)))
        wanted = self.containers
        if wanted is None:
            foreign = any(entry.sidecar is None for entry in entries)
            if foreign or list_scopes(entries, self.inputs[0].name) != {"container"}:
                yield None
                return
            wanted = sorted(
                {
                    labels[CONTAINER] or ""
                    for entry in entries
                    if entry.sidecar
                    for labels, _ in entry.sidecar.labels()
                    if labels[SCOPE] == "container"
                }
            )
        if len(wanted) <= size and self.containers is None:
            yield None
            return
        for start in range(0, len(wanted), size):
            yield wanted[start : start + size]

    def _read_group(self, entries: Sequence[FileEntry], containers: list[str] | None) -> None:
        """All inputs of one stretch of time, then derived together."""
        from_ms = self.grid.from_ms - LEAD_MS
        try:
            fetched = [
                fetch_samples(self.connection, entries, self._wanted(metric, containers, from_ms))
                for metric in self.inputs
            ]
        except (duckdb.Error, pa.ArrowException, NodescopeError) as error:
            if len(entries) == 1:
                self.refused.append(f"{entries[0].path.name}: {str(error).splitlines()[0]}")
                return
            # One file is broken: each alone, so that the others are served.
            for entry in entries:
                self._read_group([entry], containers)
            return
        clocks = self._clocks(entries)
        self._derive([to_chunks(one, clocks) for one in fetched])

    def _clocks(self, entries: Sequence[FileEntry]) -> "Clocks | None":
        """A gauge alone needs no clock but its own."""
        ours = [entry for entry in entries if entry.sidecar is not None]
        return clocks_of(ours) if ours and self.asked.form != "value" else None

    # -- the tail -------------------------------------------------------------

    def read_tail(self, tail: LiveTail) -> None:
        inputs: list[Sampled] = []
        for metric in self.inputs:
            sampled: Sampled = {}
            for subject, chunk in tail.chunks(metric.name):
                if self._wants(subject) and len(chunk.value):
                    inside = (chunk.time_ms >= self.grid.from_ms - LEAD_MS) & (
                        chunk.time_ms <= self.grid.to_ms
                    )
                    cut = Chunk(chunk.time_ms[inside], chunk.mono_ns[inside], chunk.value[inside])
                    sampled.setdefault(subject.identity, []).append(cut)
            inputs.append(sampled)
        self._derive(inputs)

    def _wants(self, subject: Subject) -> bool:
        scope = self.asked.of or self.asked.scope
        if scope and subject.label("l_scope") != scope:
            return False
        return self.containers is None or subject.label("l_container_id") in self.containers

    # -- deriving -------------------------------------------------------------

    def _derive(self, inputs: Sequence[Sampled]) -> None:
        parts: dict[Identity, list[tuple[Integers, Floats]]] = {}
        for identity, chunks in inputs[0].items():
            targets = self.targets.of(identity)
            if not targets:
                continue
            others = [join(sampled.get(identity, [])) for sampled in inputs[1:]]
            time_ms, value = self._deriver_of(identity).take((join(chunks), *others))
            inside = (time_ms >= self.grid.from_ms) & (time_ms <= self.grid.to_ms)
            if self.asked.form != "value":
                inside &= ~np.isnan(value)
            if not inside.all():
                time_ms, value = time_ms[inside], value[inside]
            for target in targets if len(time_ms) else ():
                parts.setdefault(target, []).append((time_ms, value))
        for target, many in parts.items():
            time_ms, value = self.targets.join_samples(many)
            inside = self.targets.clip(target, time_ms)
            self._sums_of(target).add(time_ms[inside], value[inside])

    def _deriver_of(self, identity: Identity) -> SampleDeriver:
        if identity not in self.derivers:
            self.derivers[identity] = SampleDeriver(self.asked.form, self.inputs, self.asked.factor)
        return self.derivers[identity]

    def lines(self, taken: set[Identity]) -> list[QueryLine]:
        """What was found and is not taken from a better input already."""
        found = []
        for target, sums in self.sums.items():
            points = sums.points()
            if target in taken or not len(points.time_ms):
                continue
            if self.grid.width_ms and not points.count.any():
                continue
            if self.grid.width_ms:
                points.time_ms[0] = max(self.grid.from_ms, points.time_ms[0])
            taken.add(target)
            found.append(QueryLine(self.targets.subject(target), points))
        return found


# -- helpers ------------------------------------------------------------------------


def split_overlaps(entries: Sequence[FileEntry]) -> list[list[FileEntry]]:
    """
    Stretches that are read together: all files, unless two overlap in time.

    They overlap where the clock was stepped back. Then each is read alone, in
    the order of the monotonic clock, so that a counter is followed as it grew.
    """
    in_order = sorted(entries, key=lambda entry: entry.from_ms)
    if all(later.from_ms > earlier.to_ms for earlier, later in pairwise(in_order)):
        return [in_order] if in_order else []
    return [[entry] for entry in sorted(in_order, key=first_moment)]


def first_moment(entry: FileEntry) -> int:
    ticks = entry.ticks()
    return int(ticks.mono_ns[0]) if ticks and len(ticks.mono_ns) else entry.from_ms * 1_000_000


@dataclass(frozen=True, slots=True)
class Clocks:
    """Wall time to monotonic time for a stretch."""

    time_ms: Integers
    mono_ns: Integers

    def at(self, time_ms: Integers) -> Integers:
        if len(time_ms) == len(self.time_ms) and (time_ms == self.time_ms).all():
            return self.mono_ns
        places = np.clip(np.searchsorted(self.time_ms, time_ms), 0, len(self.time_ms) - 1)
        found: Integers = self.mono_ns[places]
        return found


def clocks_of(entries: Sequence[FileEntry]) -> Clocks:
    ticks = [one for one in (entry.ticks() for entry in entries) if one is not None]
    time_ms = np.concatenate([one.time_ms for one in ticks])
    mono_ns = np.concatenate([one.mono_ns for one in ticks])
    order = np.argsort(time_ms, kind="stable")
    return Clocks(time_ms[order], mono_ns[order])


def to_chunks(fetched: Fetched, clocks: Clocks | None) -> Sampled:
    found: Sampled = {}
    for identity, cuts in fetched.series.items():
        for cut in cuts:
            mono_ns = clocks.at(cut.time_ms) if clocks else cut.time_ms * 1_000_000
            found.setdefault(identity, []).append(Chunk(cut.time_ms, mono_ns, cut.columns["value"]))
    return found


def join(chunks: Sequence[Chunk]) -> Chunk:
    """Pieces of one series, in order of the monotonic clock, whatever the wall clock did."""
    if not chunks:
        return NOTHING
    joined = chunks[0]
    if len(chunks) > 1:
        joined = Chunk(
            np.concatenate([chunk.time_ms for chunk in chunks]),
            np.concatenate([chunk.mono_ns for chunk in chunks]),
            np.concatenate([chunk.value for chunk in chunks]),
        )
    if (np.diff(joined.mono_ns) < 0).any():
        order = np.argsort(joined.mono_ns, kind="stable")
        return Chunk(joined.time_ms[order], joined.mono_ns[order], joined.value[order])
    return joined


def table_of(answer: QueryResult) -> Iterable[dict[str, Any]]:
    """Rows for export and JSON: time, value and the labels that apply."""
    for line in answer.lines:
        labels = {name.removeprefix("l_"): value for name, value in zip(LABELS, line.subject.labels) if value}
        points = line.points
        for place in range(len(points.time_ms)):
            yield {
                "time_ms": int(points.time_ms[place]),
                "min": float(points.minimum[place]),
                "mean": float(points.mean[place]),
                "max": float(points.maximum[place]),
                "count": int(points.count[place]),
                **labels,
            }
