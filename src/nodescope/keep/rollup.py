"""
One-minute rollups: what is left of a long past when its samples have gone.

    rollup/dt=.../identifier=.../minute-<UTC>-<UTC>.parquet

One row for each series and minute that had a sample: time (start of the
minute, UTC), metric_name, metric_kind, min, max, mean, last, count, and the
label columns of the archive. A counter has three numbers more: rate_min,
rate_mean and rate_max, its increase per second from sample to sample, so that
a spike of one second still shows in a chart of a year; a gauge has null
there. Made from consolidated files; the footer says which segments of the log
are in it, so that none is rolled up twice: a rollup whose segments another one
has as well is removed.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from nodescope.base.block import Floats, Integers
from nodescope.base.errors import ArchiveRefused
from nodescope.base.metric import Metric
from nodescope.base.rates import derive_growth
from nodescope.keep.disk import TEMPORARY, Disk
from nodescope.keep.folder import PARQUET, ArchiveFile, DataFolder, list_partition, render_stamp
from nodescope.keep.label_columns import LABELS
from nodescope.keep.merge import MergeSource, merge_runs, open_source
from nodescope.keep.parquet import (
    TEXT,
    VERSION,
    close_writer,
    encode_strings,
    open_parquet,
    open_writer,
    read_footer,
    repeat_codes,
    repeat_strings,
    wrap,
)
from nodescope.keep.sidecar import merge_segments

MINUTE_MS = 60_000
# Eleven numbers a row and fourteen labels: some 10 MiB while it is made.
ROW_GROUP_ROWS = 65_536
NUMBERS = ("min", "max", "mean", "last")
RATES = ("rate_min", "rate_mean", "rate_max")
# A counter's growth over a longer gap is known, but not when it happened.
GAP_SECONDS = 120.0
SCHEMA = pa.schema(
    [
        pa.field("time", pa.timestamp("ms", tz="UTC"), nullable=False),
        pa.field("metric_name", TEXT, nullable=False),
        pa.field("metric_kind", TEXT, nullable=False),
        *(pa.field(name, pa.float64()) for name in NUMBERS),
        pa.field("count", pa.int64(), nullable=False),
        *(pa.field(name, pa.float64()) for name in RATES),
        *(pa.field(name, TEXT) for name in LABELS),
    ]
)


Summary = tuple[Integers | Floats, ...]
"""Minute, min, max, mean, last, count, and a counter's rates."""


def summarize(metric: Metric, time_ms: Integers, mono_ns: Integers, value: Floats) -> Summary:
    """Of one series; unlimited stays unlimited."""
    minutes = time_ms // MINUTE_MS * MINUTE_MS
    starts = np.flatnonzero(np.r_[True, minutes[1:] != minutes[:-1]])
    ends = np.r_[starts[1:], len(minutes)]
    count = ends - starts
    return (
        minutes[starts],
        np.minimum.reduceat(value, starts),
        np.maximum.reduceat(value, starts),
        np.add.reduceat(value, starts) / count,
        value[ends - 1],
        count,
        *summarize_rates(metric, mono_ns, value, starts),
    )


def summarize_rates(
    metric: Metric, mono_ns: Integers, value: Floats, starts: Integers
) -> tuple[Floats, Floats, Floats]:
    """(lowest, mean, highest) increase per second of the intervals that end in each minute."""
    nothing = np.full(len(starts), np.nan)
    if metric.kind != "counter":
        return nothing, nothing, nothing
    with np.errstate(invalid="ignore"):
        increase, elapsed = (np.r_[np.nan, one] for one in derive_growth(value, mono_ns, metric))
        good = (elapsed <= GAP_SECONDS) & np.isfinite(increase)
        rate = np.divide(increase, elapsed, out=np.full(len(value), np.nan), where=good)
    seconds = np.add.reduceat(np.where(good, elapsed, 0.0), starts)
    grown = np.add.reduceat(np.where(good, increase, 0.0), starts)
    return (
        # fmin and fmax leave out NaN unless there is nothing else.
        np.fmin.reduceat(rate, starts),
        np.divide(grown, seconds, out=nothing.copy(), where=seconds > 0),
        np.fmax.reduceat(rate, starts),
    )


def write_rollup(disk: Disk, folder: Path, source: MergeSource) -> Path:
    head = source.sidecar.head
    disk.make_folder(folder)
    # The same name again is the same content, or more of it: it is replaced.
    path = folder / f"minute-{render_stamp(head.from_ms)}-{render_stamp(head.to_ms)}{PARQUET}"
    temporary = path.with_name(path.name + TEMPORARY)
    footer = {"kind": "minute", "node": head.node, "segments": head.segments, "replaces": []}
    with disk.create(temporary) as output:
        writer = open_writer(output, SCHEMA)
        for table in tabulate_source(source):
            writer.write_table(table)
        close_writer(writer, {"version": VERSION, **footer})
        output.sync()
    disk.rename(temporary, path)
    disk.sync_folder(folder)
    return path


def tabulate_source(source: MergeSource) -> Iterator[pa.Table]:
    """One table for each row group."""
    subjects, ticks = source.sidecar.subjects, source.sidecar.ticks
    ranks = {subject.identity: place for place, subject in enumerate(subjects)}
    metrics = {metric.name: metric for metric in source.sidecar.metrics}
    codes = [encode_strings([subject.labels[place] for subject in subjects]) for place in range(len(LABELS))]
    pending: list[tuple[Metric, int, Summary]] = []
    rows = 0
    for name, identity, time_ms, value in merge_runs([source]):
        places = np.searchsorted(ticks.time_ms, time_ms)
        mono_ns = ticks.mono_ns[np.minimum(places, len(ticks.mono_ns) - 1)]
        summary = summarize(metrics[name], time_ms, mono_ns, value)
        pending.append((metrics[name], ranks[identity], summary))
        rows += len(summary[0])
        if rows >= ROW_GROUP_ROWS:
            yield tabulate(pending, codes)
            pending, rows = [], 0
    if pending:
        yield tabulate(pending, codes)


def tabulate(
    pending: Sequence[tuple[Metric, int, Summary]], codes: Sequence[tuple[Integers, list[str]]]
) -> pa.Table:
    metrics, ranks, summaries = zip(*pending)
    lengths = np.array([len(summary[0]) for summary in summaries])
    whole = [np.concatenate(parts) for parts in zip(*summaries)]
    rank = np.array(ranks)
    arrays = {
        "time": wrap(whole[0], SCHEMA.field("time").type),
        "metric_name": repeat_strings([metric.name for metric in metrics], lengths),
        "metric_kind": repeat_strings([metric.kind for metric in metrics], lengths),
        **{name: wrap(one, pa.float64(), np.isfinite(one)) for name, one in zip(NUMBERS, whole[1:5])},
        "count": wrap(whole[5], pa.int64()),
        **{name: wrap(one, pa.float64(), np.isfinite(one)) for name, one in zip(RATES, whole[6:])},
        **{name: repeat_codes(code[rank], words, lengths) for name, (code, words) in zip(LABELS, codes)},
    }
    return pa.Table.from_arrays([arrays[name] for name in SCHEMA.names], schema=SCHEMA)


# -- which are missing ------------------------------------------------------------


def read_rollup_segments(path: Path) -> dict[str, Any]:
    footer = read_footer(open_parquet(path), path.name)
    return dict(footer["segments"]) if footer else {}


def covers(outer: Sequence[Mapping[str, Any]], inner: Mapping[str, Any]) -> bool:
    """Whether every segment of inner is in one of outer."""
    joined = merge_segments(outer)
    return all(
        any(start <= first and last <= end for start, end in joined.get(run, ()))
        for run, ranges in inner.items()
        for first, last in ranges
    )


def renew_rollups(disk: Disk, folder: DataFolder, partition: Path) -> int:
    """A rollup for every consolidated file that has none; rollups that it contains are removed."""
    files = [file for file in list_partition(partition) if file.kind == "consolidated"]
    made = 0
    for file in files:
        target = folder.rollup.partition(file.day, file.identifier)
        try:
            source = open_source(file.path)
            segments = dict(source.sidecar.head.segments)
            known = {one.path: read_rollup_segments(one.path) for one in list_rollups(target)}
        except (ArchiveRefused, OSError):
            continue
        if covers(list(known.values()), segments):
            continue
        fresh = write_rollup(disk, target, source)
        made += 1
        for path, inside in known.items():
            if path != fresh and covers([segments], inside):
                disk.remove(path)
    return made


def list_rollups(target: Path) -> list[ArchiveFile]:
    return [file for file in list_partition(target) if file.kind == "minute"]
