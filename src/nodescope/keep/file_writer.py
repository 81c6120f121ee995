"""
One file of the archive with its sidecar, there as a whole or not at all.

The Parquet file is written under a temporary name and synced; then the
sidecar gets its name, then the Parquet file.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from nodescope.base.block import Integers
from nodescope.keep.disk import TEMPORARY, Disk
from nodescope.keep.folder import SIDECAR
from nodescope.keep.label_columns import Subject
from nodescope.keep.parquet import SampleRows, create_archive
from nodescope.keep.sidecar import Head, Sidecar, Ticks, render_sidecar

# Before any time that a clock can say.
NEVER_MS = -(2**62)


def begin_head(
    ticks: Ticks, node: str, partition: Path, segments: Mapping[str, Sequence[Sequence[int]]]
) -> Head:
    """Of a file whose rows are not written yet."""
    from_ms, to_ms = int(ticks.time_ms[0]), int(ticks.time_ms[-1])
    return Head(0, from_ms, to_ms, node, partition.name.removeprefix("identifier="), segments)


def write_file(disk: Disk, path: Path, sidecar: Sidecar, parts: Iterable[SampleRows]) -> tuple[int, int]:
    """
    (rows, bytes) of a file; each part is a metric, in order of name, its ranks are places in the subjects.

    The sidecar lacks what follows from the rows: their number, metrics, scopes, and which subjects have any.
    """
    temporary = path.with_name(path.name + TEMPORARY)
    subjects = sidecar.subjects
    metrics = []
    scopes: dict[str, tuple[str, ...]] = {}
    scope_of = [subject.label("l_scope") or "" for subject in subjects]
    spans = SeriesSpans(len(subjects))
    footer = {"segments": sidecar.head.segments, "replaces": []}
    with create_archive(disk, temporary, subjects, footer) as writer:
        for part in parts:
            metrics.append(part.metric)
            writer.add(part)
            places = spans.note(part.rank, part.time_ms)
            scopes[part.metric.name] = tuple(sorted({scope_of[place] for place in places}))
    sidecar.head = replace(sidecar.head, rows=writer.rows, sum=writer.sum)
    sidecar.metrics, sidecar.scopes, sidecar.subjects = tuple(metrics), scopes, tuple(spans.mark(subjects))
    publish(disk, temporary, path, render_sidecar(sidecar))
    return writer.rows, writer.output.tell()


def publish(disk: Disk, temporary: Path, path: Path, sidecar: bytes) -> None:
    """Sidecar first: a Parquet file that has its name has its sidecar, too."""
    disk.write_whole(path.with_suffix(SIDECAR), sidecar)
    disk.rename(temporary, path)
    disk.sync_folder(path.parent)


class SeriesSpans:
    """First and last sample of each series of a file."""

    def __init__(self, size: int) -> None:
        self._first = np.full(size, 2**62, np.int64)
        # A clock may say 1926: a time below zero is a time.
        self._last = np.full(size, NEVER_MS, np.int64)
        self._before: tuple[Integers, Integers, list[int]] | None = None

    def note(self, rank: Integers, time_ms: Integers) -> list[int]:
        """Rows of one metric, sorted by series and time; the series that they are of."""
        # Metrics of one table that miss nothing share their arrays.
        if self._before and self._before[0] is rank and self._before[1] is time_ms:
            return self._before[2]
        starts = np.flatnonzero(np.r_[True, rank[1:] != rank[:-1]])
        ends = np.r_[starts[1:], len(rank)] - 1
        places = rank[starts]
        self._first[places] = np.minimum(self._first[places], time_ms[starts])
        self._last[places] = np.maximum(self._last[places], time_ms[ends])
        found: list[int] = places.tolist()
        self._before = (rank, time_ms, found)
        return found

    def mark(self, subjects: Sequence[Subject]) -> list[Subject]:
        """Those that have a sample, each with the time of its first and last."""
        kept = []
        for subject, first, last in zip(subjects, self._first.tolist(), self._last.tolist()):
            if last > NEVER_MS:
                subject.first_ms, subject.last_ms = first, last
                kept.append(subject)
        return kept
