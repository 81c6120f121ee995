"""
Many files of one partition into one: a streaming k-way merge.

Every source is sorted by (metric, series, time) and is read a batch at a time;
the smallest (metric, series) goes next, from all sources that have it. So
memory follows the number of sources, not of rows. Names that became known
later stand on all rows of the output.

Every source is checked against its checksum before a row of it is taken, and
its pages against theirs while they are read. The output is proven before
anything is removed: its footer must count as many rows as the footers of the
sources together, each source must have given all of its own, and its bytes
must be read back as they were written.
"""

import heapq
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from nodescope.base.block import Floats, Integers
from nodescope.base.errors import ArchiveDamaged, ArchiveRefused
from nodescope.base.metric import Metric
from nodescope.keep.check.sums import FileSum, check_file, find_file_damage
from nodescope.keep.disk import TEMPORARY, Disk
from nodescope.keep.file_writer import publish
from nodescope.keep.folder import PARQUET, SIDECAR, free_path, remove_files, render_stamp
from nodescope.keep.label_columns import IDENTITY, LABELS, Identity, Subject, identify, learn_subject
from nodescope.keep.parquet import (
    MERGED_LEVEL,
    ROW_GROUP_ROWS,
    SampleRows,
    create_archive,
    cut_rows,
    first_line,
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
# Of a single source, for its rollup: a quarter less CPU than in small batches.
ALONE_ROWS = 65_536


Series = tuple[str, Identity, Integers, Floats]
"""Metric, series, times, values: of one source neighbouring rows, of a merge all of them."""


@dataclass(slots=True)
class MergeSource:
    """One input: its footer, its sidecar, how many rows it has given."""

    path: Path
    file: pq.ParquetFile
    sidecar: Sidecar
    groups: Sequence[int]
    """The row groups to take: all, but where a damaged file is salvaged."""
    given: int = 0

    @property
    def rows(self) -> int:
        return sum(self.file.metadata.row_group(number).num_rows for number in self.groups)

    def runs(self, batch_rows: int = BATCH_ROWS) -> Iterator[Series]:
        columns = ["time", "value", "metric_name", *IDENTITY]
        batches = self.file.iter_batches(
            batch_size=batch_rows, row_groups=list(self.groups), columns=columns, use_threads=False
        )
        try:
            for batch in batches:
                self.given += batch.num_rows
                yield from split_runs(batch)
        except (pa.ArrowException, OSError, ValueError, IndexError) as error:
            raise ArchiveDamaged(f"{self.path.name}: {first_line(error)}") from error


def open_source(path: Path) -> MergeSource:
    """A whole file of ours with its sidecar; anything else is refused and stays where it is."""
    sidecar = read_sidecar(path.with_suffix(SIDECAR))
    if sidecar.head.sum:
        check_file(path, sidecar.head.sum)
    return open_groups(path, sidecar.whole())


def open_groups(path: Path, sidecar: Sidecar, groups: Sequence[int] | None = None) -> MergeSource:
    """Some row groups of a file of ours, or all."""
    file = open_parquet(path, read_dictionary=["metric_name", *IDENTITY], pre_buffer=False)
    if read_footer(file, path.name) is None:
        raise ArchiveRefused(f"{path.name}: not written by nodescope")
    every = range(file.metadata.num_row_groups)
    return MergeSource(path, file, sidecar, every if groups is None else groups)


def split_runs(batch: pa.RecordBatch) -> Iterator[Series]:
    """A batch cut where metric or series change."""
    time_ms = unwrap(batch.column("time"), 0)
    value = unwrap(batch.column("value"), np.inf)
    columns = [batch.column(name) for name in ("metric_name", *IDENTITY)]
    for rows, (metric, *labels) in cut_rows(batch.num_rows, columns):
        known = dict(zip(IDENTITY, labels))
        identity = identify(tuple(known.get(name) for name in LABELS))
        yield metric or "", identity, time_ms[rows], value[rows]


def merge_runs(sources: Sequence[MergeSource]) -> Iterator[Series]:
    """In order, each series once."""
    series_of = itemgetter(0, 1)
    batch_rows = BATCH_ROWS if len(sources) > 1 else ALONE_ROWS
    in_turn = heapq.merge(*(source.runs(batch_rows) for source in sources), key=series_of)
    for (metric, identity), runs in groupby(in_turn, series_of):
        _, _, times, values = zip(*runs)
        yield metric, identity, *in_order(times, values)


def in_order(times: Sequence[Integers], values: Sequence[Floats]) -> tuple[Integers, Floats]:
    if len(times) == 1:
        return times[0], values[0]
    time_ms, value = np.concatenate(times), np.concatenate(values)
    if (np.diff(time_ms) < 0).any():
        order = np.argsort(time_ms, kind="stable")
        return time_ms[order], value[order]
    return time_ms, value


def gather_rows(
    many: Iterable[Series], ranks: Mapping[Identity, int], metrics: Mapping[str, Metric]
) -> Iterator[SampleRows]:
    """Series into rows of one metric, cut where they are more than a row group."""
    pending: list[Series] = []
    rows = 0
    for series in many:
        size = len(series[3])
        if pending and (series[0] != pending[0][0] or rows + size > ROW_GROUP_ROWS):
            yield join_series(metrics[pending[0][0]], pending, ranks)
            pending, rows = [], 0
        pending.append(series)
        rows += size
    if pending:
        yield join_series(metrics[pending[0][0]], pending, ranks)


def join_series(
    metric: Metric, many: Sequence[tuple[Any, Identity, Integers, Floats]], ranks: Mapping[Identity, int]
) -> SampleRows:
    _, identities, times, values = zip(*many)
    places = np.array([ranks[identity] for identity in identities], np.int64)
    rank = np.repeat(places, [len(value) for value in values])
    return SampleRows(metric, rank, np.concatenate(times), np.concatenate(values))


# -- sidecars ---------------------------------------------------------------------


def merge_subjects(sidecars: Sequence[Sidecar]) -> dict[Identity, Subject]:
    found: dict[Identity, Subject] = {}
    for subject in (one for sidecar in sidecars for one in sidecar.subjects):
        learn_subject(found, subject.identity, subject)
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
    written = join_sources(disk, sources, "consolidated")
    remove_files(disk, [source.path for source in sources])
    return written


def join_sources(disk: Disk, sources: Sequence[MergeSource], kind: str) -> int:
    """One file, proven and in place, that says it replaces the sources. Its rows."""
    folder = sources[0].path.parent
    # What the sources had replaced is gone or must go as well.
    replaces = sorted(
        {source.path.name for source in sources}
        | {name for source in sources for name in source.sidecar.head.replaces}
    )
    expected = sum(source.rows for source in sources)
    sidecar = merge_sidecars([source.sidecar for source in sources], replaces, expected)
    head = sidecar.head
    last = f"-{render_stamp(head.to_ms)}" if kind == "consolidated" else ""
    path = free_path(folder, f"{kind}-{render_stamp(head.from_ms)}{last}", PARQUET)
    temporary = path.with_name(path.name + TEMPORARY)
    footer = {"segments": head.segments, "replaces": replaces}
    written = write_merged(disk, temporary, sources, sidecar, footer)
    prove(temporary, sources, expected, written)
    sidecar.head = replace(head, sum=written)
    publish(disk, temporary, path, render_sidecar(sidecar))
    return expected


def write_merged(
    disk: Disk, temporary: Path, sources: Sequence[MergeSource], sidecar: Sidecar, footer: Mapping[str, Any]
) -> FileSum | None:
    ranks = {subject.identity: place for place, subject in enumerate(sidecar.subjects)}
    metrics = {metric.name: metric for metric in sidecar.metrics}
    with create_archive(disk, temporary, sidecar.subjects, footer, MERGED_LEVEL) as writer:
        for rows in gather_rows(merge_runs(sources), ranks, metrics):
            writer.add(rows)
    return writer.sum


def prove(
    temporary: Path, sources: Sequence[MergeSource], expected: int, written_sum: FileSum | None
) -> None:
    for source in sources:
        if source.given != source.rows:
            raise ArchiveRefused(f"{source.path.name}: gave {source.given} of its {source.rows} rows")
    written = int(open_parquet(temporary).metadata.num_rows)
    if written != expected:
        raise ArchiveRefused(f"{temporary.name}: has {written} rows; its sources have {expected}")
    if written_sum and find_file_damage(temporary, written_sum):
        raise ArchiveRefused(f"{temporary.name}: other bytes were read back than were written")
