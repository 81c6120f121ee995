"""
The catalog: the metrics, series and time range of the files that are served.

It is made from sidecars; of files without one the metrics and series are read
from the file itself, when they are needed.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from nodescope.base.errors import RequestRejected
from nodescope.base.metric import Metric
from nodescope.keep.label_columns import Identity, Subject, learn_subject
from nodescope.read.files.listing import FileEntry, Refusal, list_files

# Ids are shortened to this in tables for people; docker's habit.
SHORT_CHARACTERS = 12


@dataclass
class Catalog:
    """A snapshot; make another to see newer files."""

    entries: tuple[FileEntry, ...]
    refusals: tuple[Refusal, ...]
    paths: tuple[Path, ...] = ()
    opened: tuple[FileEntry, ...] = ()
    """What is served and what another file replaces, in the order of the folders."""

    @property
    def from_ms(self) -> int | None:
        return min((entry.from_ms for entry in self.entries), default=None)

    @property
    def to_ms(self) -> int | None:
        return max((entry.to_ms for entry in self.entries), default=None)

    @property
    def rows(self) -> int:
        return sum(entry.rows for entry in self.entries)

    @cached_property
    def metrics(self) -> dict[str, Metric]:
        """By name; the newest sidecar that describes a metric wins; without one its bare name counts."""
        found: dict[str, Metric] = {}
        for entry in self.entries:
            if entry.sidecar is None:
                # Arrow and DuckDB are loaded only when such a file is met.
                from nodescope.read.files.other_parquet import read_metrics  # noqa: PLC0415

                found.update({metric.name: metric for metric in read_metrics(entry.path)})
        seen: set[int] = set()
        for entry in self.entries:
            # Neighbouring files share the parsed tuple: looked at once.
            rows = entry.sidecar.metrics() if entry.sidecar else ()
            if id(rows) not in seen:
                seen.add(id(rows))
                found.update({metric.name: metric for metric in rows})
        return dict(sorted(found.items()))

    @cached_property
    def subjects(self) -> dict[Identity, Subject]:
        """Everything that has rows, with its first and last sample over all files."""
        found: dict[Identity, Subject] = {}
        for labelled, group in group_by_labels(self.entries):
            if labelled is None:
                from nodescope.read.files.other_parquet import read_subjects  # noqa: PLC0415

                for entry in group:
                    learn_all(found, read_subjects(entry.path))
            else:
                learn_all(found, list_subjects(labelled, group))
        return found

    def containers(self) -> list[Subject]:
        return [subject for subject in self.subjects.values() if subject.label("l_scope") == "container"]

    def select(self, from_ms: int, to_ms: int) -> list[FileEntry]:
        """Files that may have rows in [from, to]."""
        return [entry for entry in self.entries if entry.from_ms <= to_ms and entry.to_ms >= from_ms]


Labelled = tuple[tuple[tuple[str | None, ...], dict[str, str]], ...]


def group_by_labels(entries: Sequence[FileEntry]) -> Iterator[tuple[Labelled | None, list[FileEntry]]]:
    """Neighbouring files with the same series share one parsed list; they are looked at together."""
    key: Labelled | None = None
    group: list[FileEntry] = []
    for entry in entries:
        labels = entry.sidecar.labels() if entry.sidecar else None
        if group and labels is not key:
            yield key, group
            group = []
        key = labels
        group.append(entry)
    if group:
        yield key, group


def list_subjects(labelled: Labelled, group: Sequence[FileEntry]) -> list[Subject]:
    """First and last sample over files with the same series; mostly each file's whole span."""
    first = np.full(len(labelled), 2**62, np.int64)
    last = np.full(len(labelled), -(2**62), np.int64)
    for entry in group:
        seen = entry.sidecar.story.seen if entry.sidecar else {}
        mine = np.tile(np.array([[entry.from_ms], [entry.to_ms]], np.int64), (1, len(labelled)))
        for place, span in seen.items():
            mine[:, int(place)] = span
        first, last = np.minimum(first, mine[0]), np.maximum(last, mine[1])
    return [
        Subject(labels, dict(details), from_ms, to_ms)
        for (labels, details), from_ms, to_ms in zip(labelled, first.tolist(), last.tolist())
    ]


def learn_all(found: dict[Identity, Subject], subjects: Iterable[Subject]) -> None:
    for subject in subjects:
        learn_subject(found, subject.identity, subject)


# -- making one -------------------------------------------------------------------


def read_catalog(paths: Sequence[Path], before: Catalog | None = None) -> Catalog:
    """
    A catalog of data folders, other folders with Parquet, or single files.

    What an earlier catalog knew of a file is taken over while the file is the
    same. The same catalog comes back when nothing is new.
    """
    for path in paths:
        if not path.exists():
            raise RequestRejected(f"no such file or folder: {path}")
    known = {entry.path: entry for entry in before.opened if is_unchanged(entry)} if before else {}
    listing = list_files(paths, known)
    opened, refusals = tuple(listing.opened.values()), tuple(listing.refusals)
    if before and (before.paths, before.opened, before.refusals) == (tuple(paths), opened, refusals):
        return before
    served = sorted(listing.served(), key=lambda entry: (entry.from_ms, entry.path.name))
    return Catalog(tuple(served), refusals, tuple(paths), opened)


def is_unchanged(entry: FileEntry) -> bool:
    """The file is the one that was opened; one without a sidecar is looked at again."""
    if entry.sidecar is None:
        return False
    try:
        status = entry.path.stat()
    except OSError:
        return False
    return (status.st_size, status.st_mtime_ns) == (entry.size_bytes, entry.mtime_ns)
