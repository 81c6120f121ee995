"""
Many files of one partition into one: a streaming k-way merge.

Every source is sorted by (metric, series, time) and is read a batch at a time;
the smallest (metric, series) goes next, from all sources that have it. So
memory follows the number of sources, not of rows. Names that became known
later stand on all rows of the output.

The output is proven before anything is removed: its footer must count as many
rows as the footers of the sources together, and each source must have given
all of its own.
"""

import heapq
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from nodescope.base.block import Floats, Integers
from nodescope.base.errors import ArchiveRefused
from nodescope.base.metric import Metric
from nodescope.keep.disk import TEMPORARY, Disk
from nodescope.keep.file_writer import publish
from nodescope.keep.folder import PARQUET, SIDECAR, free_path, remove_files, render_stamp
from nodescope.keep.label_columns import IDENTITY, LABELS, Identity, Subject, identify
from nodescope.keep.parquet import (
    ROW_GROUP_ROWS,
    ArchiveWriter,
    SampleRows,
    cut_rows,
    open_parquet,
    read_footer,
    unwrap,
)
from nodescope.keep.sidecar import (
    Head,
    Sidecar,
    Ticks,
    merge_segments,
    read_sidecar,
    render_sidecar,
)

# Rows decoded at once per source: half a MiB, beside its open pages. Measured
# on seven files of 800,000 rows: 8,192 peak at 225 MiB, 32,768 at 282.
BATCH_ROWS = 8_192


@dataclass(frozen=True, slots=True)
class Run:
    """Neighbouring rows of one series in one source."""

    metric: str
    identity: Identity
    time_ms: Integers
    value: Floats


@dataclass(slots=True)
class MergeSource:
    """One input: its footer, its sidecar, how many rows it has given."""

    path: Path
    file: pq.ParquetFile
    sidecar: Sidecar
    given: int = 0

    @property
    def rows(self) -> int:
        return int(self.file.metadata.num_rows)

    def runs(self) -> Iterator[Run]:
        columns = ["time", "value", "metric_name", *IDENTITY]
        for batch in self.file.iter_batches(batch_size=BATCH_ROWS, columns=columns, use_threads=False):
            self.given += batch.num_rows
            yield from split_runs(batch)


def open_source(path: Path) -> MergeSource:
    """A file of ours with its sidecar; anything else is refused and stays where it is."""
    file = open_parquet(path, read_dictionary=["metric_name", *IDENTITY], pre_buffer=False)
    if read_footer(file, path.name) is None:
        raise ArchiveRefused(f"{path.name}: not written by nodescope")
    return MergeSource(path, file, read_sidecar(path.with_suffix(SIDECAR)).whole())


def split_runs(batch: pa.RecordBatch) -> Iterator[Run]:
    """A batch cut where metric or series change."""
    time_ms = unwrap(batch.column("time"), 0)
    value = unwrap(batch.column("value"), np.inf)
    columns = [batch.column(name) for name in ("metric_name", *IDENTITY)]
    for rows, (metric, *labels) in cut_rows(batch.num_rows, columns):
        known = dict(zip(IDENTITY, labels))
        identity = identify(tuple(known.get(name) for name in LABELS))
        yield Run(metric or "", identity, time_ms[rows], value[rows])


def merge_runs(sources: Sequence[MergeSource]) -> Iterator[tuple[str, Identity, Integers, Floats]]:
    """(metric, series, times, values) in order, each series once."""
    heap: list[tuple[str, Identity, int, Run]] = []
    streams = [source.runs() for source in sources]

    def advance(place: int) -> None:
        run = next(streams[place], None)
        if run is not None:
            heapq.heappush(heap, (run.metric, run.identity, place, run))

    for place in range(len(streams)):
        advance(place)
    while heap:
        metric, identity = heap[0][:2]
        times, values = [], []
        while heap and heap[0][:2] == (metric, identity):
            _, _, place, run = heapq.heappop(heap)
            times.append(run.time_ms)
            values.append(run.value)
            advance(place)
        yield metric, identity, *in_order(times, values)


def in_order(times: Sequence[Integers], values: Sequence[Floats]) -> tuple[Integers, Floats]:
    if len(times) == 1:
        return times[0], values[0]
    time_ms, value = np.concatenate(times), np.concatenate(values)
    if (np.diff(time_ms) < 0).any():
        order = np.argsort(time_ms, kind="stable")
        return time_ms[order], value[order]
    return time_ms, value


@dataclass(slots=True)
class Collector:
    """Series into rows of one metric, handed to the writer when they are many."""

    writer: ArchiveWriter
    ranks: Mapping[Identity, int]
    kinds: Mapping[str, str]
    _metric: str = ""
    _parts: list[tuple[int, Integers, Floats]] = field(default_factory=list)
    _rows: int = 0

    def add(self, metric: str, identity: Identity, time_ms: Integers, value: Floats) -> None:
        if metric != self._metric or self._rows + len(value) > ROW_GROUP_ROWS:
            self.flush()
            self._metric = metric
        self._parts.append((self.ranks[identity], time_ms, value))
        self._rows += len(value)

    def flush(self) -> None:
        if not self._parts:
            return
        lengths = [len(value) for _, _, value in self._parts]
        rank = np.repeat(np.array([rank for rank, _, _ in self._parts], np.int64), lengths)
        time_ms = np.concatenate([time_ms for _, time_ms, _ in self._parts])
        value = np.concatenate([value for _, _, value in self._parts])
        self.writer.add(SampleRows(self._metric, self.kinds[self._metric], rank, time_ms, value))
        self._parts, self._rows = [], 0


# -- sidecars ---------------------------------------------------------------------


def merge_subjects(sidecars: Sequence[Sidecar]) -> dict[Identity, Subject]:
    found: dict[Identity, Subject] = {}
    for sidecar in sidecars:
        for subject in sidecar.subjects:
            there = found.setdefault(
                subject.identity, Subject(subject.labels, subject.details, subject.first_ms, subject.last_ms)
            )
            there.learn(subject)
    return dict(sorted(found.items()))


def merge_ticks(sidecars: Sequence[Sidecar]) -> Ticks:
    runs = tuple(sorted({run for sidecar in sidecars for run in sidecar.ticks.runs}))
    places = {run: place for place, run in enumerate(runs)}
    time_ms = np.concatenate([sidecar.ticks.time_ms for sidecar in sidecars])
    mono_ns = np.concatenate([sidecar.ticks.mono_ns for sidecar in sidecars])
    run = np.concatenate(
        [
            np.array([places[name] for name in sidecar.ticks.runs], np.int64)[sidecar.ticks.run]
            for sidecar in sidecars
        ]
    )
    order = np.argsort(time_ms, kind="stable")
    return Ticks(time_ms[order], mono_ns[order], run[order], runs)


def merge_outcomes(sidecars: Sequence[Sidecar]) -> list[tuple[int, dict[str, list[str]]]]:
    """Changes only: each file begins with all sources, the merged one once."""
    found: list[tuple[int, dict[str, list[str]]]] = []
    before: dict[str, list[str]] = {}
    for time_ms, outcomes in sorted(
        (one for sidecar in sidecars for one in sidecar.outcomes), key=lambda one: one[0]
    ):
        changed = {name: words for name, words in outcomes.items() if before.get(name, [""])[0] != words[0]}
        before.update(changed)
        if changed:
            found.append((time_ms, changed))
    return found


def merge_sidecars(sidecars: Sequence[Sidecar], replaces: Sequence[str], rows: int) -> Sidecar:
    in_time = sorted(sidecars, key=lambda sidecar: sidecar.head.from_ms)
    metrics: dict[str, Metric] = {}
    scopes: dict[str, set[str]] = {}
    for sidecar in in_time:
        metrics.update({metric.name: metric for metric in sidecar.metrics})
        for name, words in sidecar.scopes.items():
            scopes.setdefault(name, set()).update(words)
    head = Head(
        rows,
        min(sidecar.head.from_ms for sidecar in in_time),
        max(sidecar.head.to_ms for sidecar in in_time),
        in_time[-1].head.node,
        in_time[-1].head.identifier,
        merge_segments(sidecar.head.segments for sidecar in in_time),
        tuple(replaces),
    )
    events = [event for sidecar in in_time for event in sidecar.events]
    return Sidecar(
        head,
        tuple(metric for _, metric in sorted(metrics.items())),
        tuple(merge_subjects(in_time).values()),
        merge_ticks(in_time),
        {name: tuple(sorted(words)) for name, words in scopes.items()},
        sorted(events, key=lambda event: event["at_ms"]),
        merge_outcomes(in_time),
    )


# -- the whole ----------------------------------------------------------------------


def merge_files(disk: Disk, paths: Sequence[Path]) -> int:
    """One file that replaces the given ones; they are removed when it is proven and in place. Its rows."""
    sources = [open_source(path) for path in paths]
    folder = paths[0].parent
    # What the sources had replaced is gone or must go as well.
    replaces = sorted(
        {source.path.name for source in sources}
        | {name for source in sources for name in source.sidecar.head.replaces}
    )
    expected = sum(source.rows for source in sources)
    sidecar = merge_sidecars([source.sidecar for source in sources], replaces, expected)
    head = sidecar.head
    stem = f"consolidated-{render_stamp(head.from_ms)}-{render_stamp(head.to_ms)}"
    path = free_path(folder, stem, PARQUET)
    temporary = path.with_name(path.name + TEMPORARY)
    footer = {"segments": head.segments, "replaces": replaces}
    write_merged(disk, temporary, sources, sidecar, footer)
    prove(temporary, sources, expected)
    publish(disk, temporary, path, render_sidecar(sidecar))
    remove_files(disk, [source.path for source in sources])
    return expected


def write_merged(
    disk: Disk, temporary: Path, sources: Sequence[MergeSource], sidecar: Sidecar, footer: Mapping[str, Any]
) -> None:
    ranks = {subject.identity: place for place, subject in enumerate(sidecar.subjects)}
    kinds: dict[str, str] = {metric.name: metric.kind for metric in sidecar.metrics}
    with disk.create(temporary) as output:
        with ArchiveWriter(output, sidecar.subjects, footer) as writer:
            collector = Collector(writer, ranks, kinds)
            for metric, identity, time_ms, value in merge_runs(sources):
                collector.add(metric, identity, time_ms, value)
            collector.flush()
        output.sync()


def prove(temporary: Path, sources: Sequence[MergeSource], expected: int) -> None:
    for source in sources:
        if source.given != source.rows:
            raise ArchiveRefused(f"{source.path.name}: gave {source.given} of its {source.rows} rows")
    written = int(open_parquet(temporary).metadata.num_rows)
    if written != expected:
        raise ArchiveRefused(f"{temporary.name}: has {written} rows; its sources have {expected}")
