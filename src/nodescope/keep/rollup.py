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
has as well is removed. An hour that is over has one, in place of those that its
parts had while it was not. Its checksum lies beside it as minute-<UTC>-<UTC>.sum.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from nodescope.base.block import Floats, Integers
from nodescope.base.errors import ArchiveDamaged, ArchiveRefused
from nodescope.base.metric import Metric
from nodescope.base.rates import derive_growth
from nodescope.keep.check.seal import seal_json, unseal_json
from nodescope.keep.check.sums import FileSum, SummingOutput, check_file, sum_from_json, sum_to_json
from nodescope.keep.disk import TEMPORARY, Disk
from nodescope.keep.folder import (
    MS_PER_HOUR,
    PARQUET,
    ArchiveFile,
    DataFolder,
    companion_of,
    list_partition,
    remove_files,
    render_stamp,
)
from nodescope.keep.label_columns import LABELS
from nodescope.keep.merge import MergeSource, merge_runs, open_source
from nodescope.keep.parquet import (
    MERGED_LEVEL,
    TEXT,
    VERSION,
    abandon_writer,
    close_writer,
    encode_strings,
    open_parquet,
    open_writer,
    read_footer,
    repeat_codes,
    repeat_strings,
    wrap,
)
from nodescope.keep.sidecar import merge_segments, read_sidecar

MINUTE_MS = 60_000
# Eleven numbers a row and fourteen labels: some 10 MiB while it is made.
ROW_GROUP_ROWS = 65_536
# A question is about one metric: where so many rows are together, the next metric begins a row group.
# An hour of 100 containers has 6,000 rows of each. Every row group has its own words and a part of the
# footer, which take longer to read than some rows more (docs/decisions/0109).
ROW_GROUP_LEAST = 20_000
# Which row groups a reader may skip; of single numbers nobody asks.
STATISTICS = ("time", "metric_name", "l_container_id", "l_scope")
# Beyond these binary digits a mean of sixty samples and a rate are noise, which does not pack. A mean has
# them of what the minute spans from its lowest to its highest sample, a rate of itself: a reading's moment
# is known less well (docs/decisions/0109).
MEAN_DIGITS = 16
RATE_DIGITS = 20
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


Note = Callable[[Path, BaseException], None]
"""Hears of a file that cannot be read, and why."""
Summary = tuple[Integers | Floats, ...]
"""Minute, min, max, mean, last, count, and a counter's rates."""


def summarize(metric: Metric, time_ms: Integers, mono_ns: Integers, value: Floats) -> Summary:
    """Of one series; unlimited stays unlimited."""
    minutes = time_ms // MINUTE_MS * MINUTE_MS
    edges = np.flatnonzero(minutes[1:] != minutes[:-1]) + 1
    starts, ends = np.append(0, edges), np.append(edges, len(minutes))
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


def round_means(mean: Floats, low: Floats, high: Floats) -> Floats:
    """Each between its lowest and its highest sample, and their very value where they are the same."""
    with np.errstate(invalid="ignore", over="ignore"):
        # A step is a power of two; half of one is at most 2**-MEAN_DIGITS of the span.
        step = np.frexp(high - low)[1] - MEAN_DIGITS
        rounded = np.ldexp(np.rint(np.ldexp(mean, -step)), step)
    return np.where(np.isfinite(rounded), np.clip(rounded, low, high), mean)


def round_rates(rate: Floats) -> Floats:
    """In order: the mean of a minute stays between its lowest and its highest."""
    share, power = np.frexp(rate)
    with np.errstate(over="ignore"):
        rounded = np.ldexp(np.rint(np.ldexp(share, RATE_DIGITS)), power - RATE_DIGITS)
    return np.where(np.isfinite(rounded), rounded, rate)


def summarize_rates(
    metric: Metric, mono_ns: Integers, value: Floats, starts: Integers
) -> tuple[Floats, Floats, Floats]:
    """(lowest, mean, highest) increase per second of the intervals that end in each minute."""
    nothing = np.full(len(starts), np.nan)
    if metric.kind != "counter":
        return nothing, nothing, nothing
    with np.errstate(invalid="ignore"):
        increase, elapsed = (np.append(np.nan, one) for one in derive_growth(value, mono_ns, metric))
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


def write_rollup(disk: Disk, folder: Path, source: MergeSource, parts: Sequence[Path] = ()) -> Path:
    """
    Of a file; the rollups of its parts are removed when it is whole, and before it has its name.

    Between the two, and after a crash there, nobody sees a minute twice: the samples are read, and rolled up again.
    """
    head = source.sidecar.head
    disk.make_folder(folder)
    # The same name again is the same content, or more of it: it is replaced.
    path = folder / f"minute-{render_stamp(head.from_ms)}-{render_stamp(head.to_ms)}{PARQUET}"
    temporary = path.with_name(path.name + TEMPORARY)
    footer = {"kind": "minute", "node": head.node, "segments": head.segments, "replaces": []}
    with disk.removing_half(temporary), disk.create(temporary) as output:
        summing = SummingOutput(output)
        writer = open_writer(summing, SCHEMA, MERGED_LEVEL, write_statistics=list(STATISTICS))
        try:
            for table in tabulate_source(source):
                writer.write_table(table)
                summing.end_piece()
            close_writer(writer, {"version": VERSION, **footer})
        finally:
            abandon_writer(writer)
        output.sync()
    if parts:
        remove_files(disk, [part for part in parts if part != path])
    disk.write_whole(companion_of(path), seal_json({"file": sum_to_json(summing.finish())}))
    disk.rename(temporary, path)
    disk.sync_folder(folder)
    return path


def read_rollup_sum(path: Path) -> FileSum | None:
    """None: the rollup is older than checksums are, or its checksum was lost."""
    try:
        content = json.loads(unseal_json(companion_of(path).read_bytes()).data)
        return sum_from_json(content["file"])
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ArchiveDamaged(f"{companion_of(path).name}: damaged, the rollup cannot be checked") from error


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
        if rows >= ROW_GROUP_LEAST and name != pending[-1][0].name:
            yield tabulate(pending, codes)
            pending, rows = [], 0
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
    whole[3] = round_means(whole[3], low=whole[1], high=whole[2])
    whole[6:] = map(round_rates, whole[6:])
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


def check_rollup(path: Path) -> None:
    """ArchiveDamaged where its bytes are not those that were written."""
    expected = read_rollup_sum(path)
    if expected:
        check_file(path, expected)


def read_rollup_segments(path: Path) -> dict[str, Any]:
    check_rollup(path)
    footer = read_footer(open_parquet(path), path.name) or {}
    return dict(footer.get("segments", {}))


def covers(outer: Sequence[Mapping[str, Any]], inner: Mapping[str, Any]) -> bool:
    """Whether every segment of inner is in one of outer."""
    joined = merge_segments(outer)
    return all(
        any(start <= first and last <= end for start, end in joined.get(run, ()))
        for run, ranges in inner.items()
        for first, last in ranges
    )


def note_nothing(path: Path, error: BaseException) -> None:
    del path, error


def renew_rollups(disk: Disk, folder: DataFolder, partition: Path, note: Note = note_nothing) -> int:
    """
    A rollup for every consolidated file that has none, and one for an hour in place of several.

    Rollups that another one contains are removed. Of a day's file those of its hours stay.
    """
    files = [file for file in list_partition(partition) if file.kind == "consolidated"]
    target = folder.rollup.partition(
        partition.parent.name.removeprefix("dt="), partition.name.removeprefix("identifier=")
    )
    made = 0
    for file in files:
        known = read_known_rollups(target, note)
        try:
            segments = dict(read_sidecar(file.sidecar).head.segments)
            parts = [path for path, inside in known.items() if covers([segments], inside)]
            is_one = len(parts) < 2 or not is_in_an_hour(file)
            if is_one and covers(list(known.values()), segments):
                continue
            write_rollup(disk, target, open_source(file.path), parts)
        except (ArchiveRefused, OSError, ArithmeticError, ValueError, KeyError) as error:
            note(file.path, error)
            continue
        made += 1
    drop_contained(disk, read_known_rollups(target, note))
    return made


def is_in_an_hour(file: ArchiveFile) -> bool:
    return file.to_ms is not None and file.from_ms // MS_PER_HOUR == file.to_ms // MS_PER_HOUR


def drop_contained(disk: Disk, known: Mapping[Path, Mapping[str, Any]]) -> None:
    """Those whose segments another one has as well: of this pass, or of one that was stopped here."""
    left = dict(known)
    for path, inside in known.items():
        others = [segments for other, segments in left.items() if other != path]
        if any(covers([segments], inside) for segments in others):
            remove_files(disk, [path])
            del left[path]


def read_known_rollups(target: Path, note: Note) -> dict[Path, Mapping[str, Any]]:
    """One that cannot be read counts as not there: it is made again while its samples are."""
    known: dict[Path, Mapping[str, Any]] = {}
    for one in list_rollups(target):
        try:
            known[one.path] = read_rollup_segments(one.path)
        except (ArchiveRefused, OSError) as error:
            note(one.path, error)
    return known


def list_rollups(target: Path) -> list[ArchiveFile]:
    return [file for file in list_partition(target) if file.kind == "minute"]
