"""
The catalog: what a data folder holds, from names, sidecars and footers only.

Rows are never read. A file that another one replaces is left out; one that
cannot be read is named with its reason, and the others are served. Files
without a sidecar of ours (fgm's own, or one that was lost) are opened for
their footer when somebody asks.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from nodescope.base.errors import ArchiveRefused, NodescopeError, RequestRejected
from nodescope.base.metric import Metric
from nodescope.base.text import hint_nearest
from nodescope.keep.folder import (
    NOT_DATA,
    PARQUET,
    SIDECAR,
    ArchiveFile,
    parse_file,
)
from nodescope.keep.label_columns import LABELS, Identity, Subject
from nodescope.keep.sidecar import OpenSidecar, SidecarStory, Ticks, read_sidecar

if TYPE_CHECKING:
    # Arrow is not needed to list a folder.
    from nodescope.read.files.remote_parquet import RemoteFile

CONTAINER = LABELS.index("l_container_id")
# Ids are shortened to this in tables for people; docker's habit.
SHORT_CHARACTERS = 12


@dataclass(slots=True)
class FileEntry:
    """One Parquet file that is served."""

    path: Path
    from_ms: int
    to_ms: int
    rows: int
    size_bytes: int
    sidecar: OpenSidecar | None
    """None: not written by us, or its sidecar was lost."""
    mtime_ns: int = 0
    remote: "RemoteFile | None" = None
    """Where the rows are read when they lie in an object store."""

    def story(self) -> SidecarStory | None:
        """Events and outcomes; parsed once."""
        return self.sidecar.story() if self.sidecar else None

    def ticks(self) -> Ticks | None:
        return self.sidecar.ticks() if self.sidecar else None

    def events(self) -> list[dict[str, Any]]:
        """As the sidecar has them; read/query/events.py tells them."""
        return self.sidecar.story().events if self.sidecar else []


@dataclass(frozen=True, slots=True)
class Refusal:
    """A file that is not served, and why."""

    path: Path
    reason: str


@dataclass(slots=True)
class CatalogContainer:
    """A container over all files it is in."""

    subject: Subject
    files: int = 1

    @property
    def container_id(self) -> str:
        return self.subject.label("l_container_id") or ""


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
        """By name; the newest sidecar's word on a metric wins, a bare name's counts where there is none."""
        found: dict[str, Metric] = {}
        for entry in self.entries:
            if entry.sidecar is None:
                found.update({metric.name: metric for metric in read_foreign_metrics(entry.path)})
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
        """Everything that has rows, with first and last sight over all files."""
        found: dict[Identity, Subject] = {}
        for labelled, group in group_by_labels(self.entries):
            if labelled is None:
                for entry in group:
                    learn_all(found, read_foreign_subjects(entry))
            else:
                learn_all(found, list_subjects(labelled, group))
        return found

    def containers(self) -> list[Subject]:
        return [subject for subject in self.subjects.values() if subject.label("l_scope") == "container"]

    def resolve_container(self, text: str) -> str:
        """A full id from an id, its beginning, or a pod's or container's name; else a refusal."""
        matches = self._match(text)
        if len(matches) == 1:
            return matches[0].label("l_container_id") or ""
        if matches:
            names = ", ".join(describe(subject) for subject in matches[:5])
            more = f" and {len(matches) - 5} more" if len(matches) > 5 else ""
            raise RequestRejected(f'container "{text}" is ambiguous: {names}{more}')
        known = {
            name
            for subject in self.containers()
            for name in (subject.label("l_container_name"), subject.label("l_pod_name"))
            if name
        }
        raise RequestRejected(
            f'no container "{text}"{hint_nearest(text, known)} (nodescope containers lists all {len(self.containers())})'
        )

    def resolve_lives(self, text: str) -> list[str]:
        """As above; a name whose matches are one container's lives means all of them, in order."""
        matches = self._match(text)
        places = {(one.label("l_pod_uid"), one.label("l_container_name")) for one in matches}
        if len(places) != 1 or not all(next(iter(places))):
            return [self.resolve_container(text)]
        lives = sorted(matches, key=lambda one: one.first_ms)
        return list(dict.fromkeys(one.label("l_container_id") or "" for one in lives))

    def _match(self, text: str) -> list[Subject]:
        containers = self.containers()
        by_id = [one for one in containers if (one.label("l_container_id") or "").startswith(text)]
        exact = [one for one in by_id if one.label("l_container_id") == text]
        if exact or (by_id and text):
            return exact or by_id
        pod, _, name = text.rpartition("/")
        return [
            one
            for one in containers
            if (name and name in (one.label("l_container_name"), one.label("l_pod_name")))
            and (not pod or pod in (one.label("l_pod_name"), one.label("l_namespace")))
        ]

    def select(self, from_ms: int, to_ms: int) -> list[FileEntry]:
        """Files that may have rows in [from, to]."""
        return [entry for entry in self.entries if entry.from_ms <= to_ms and entry.to_ms >= from_ms]


def describe(subject: Subject) -> str:
    short = (subject.label("l_container_id") or "")[:SHORT_CHARACTERS]
    name = "/".join(part for part in (subject.label("l_pod_name"), subject.label("l_container_name")) if part)
    return f"{short} ({name})" if name else short


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
    """First and last sight over files with the same series; mostly each file's whole span."""
    first = np.full(len(labelled), 2**62, np.int64)
    last = np.zeros(len(labelled), np.int64)
    for entry in group:
        seen = entry.sidecar.story().seen if entry.sidecar else {}
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
        identity = subject.identity
        there = found.get(identity)
        if there is None:
            found[identity] = subject
        else:
            there.learn(subject)


# -- making one -------------------------------------------------------------------


def find_parquet(path: Path, note: Callable[[OSError], None]) -> Iterator[Path]:
    """
    Data files under a path: a folder of ours, any folder, or one file. Rollups are not data.

    What may not be looked at is noted: a folder that cannot be read is not an empty one.
    """
    try:
        is_file = path.is_file()
    except OSError as error:
        note(error)
        return
    if is_file:
        yield path
        return

    def note_standing(error: OSError) -> None:
        # Gone since it was listed: merged or removed, as files are.
        if not isinstance(error, FileNotFoundError):
            note(error)

    for folder, folders, names in os.walk(path, onerror=note_standing):
        folders[:] = sorted(name for name in folders if name not in NOT_DATA)
        yield from (Path(folder, name) for name in sorted(names) if name.endswith(PARQUET))


def refuse_folder(error: OSError) -> Refusal:
    return Refusal(Path(error.filename), f"{error.filename}: {error.strerror}")


def open_entry(path: Path) -> FileEntry:
    status = path.stat()
    size_bytes = status.st_size
    sidecar_path = path.with_suffix(SIDECAR)
    try:
        sidecar = read_sidecar(sidecar_path)
    except (ArchiveRefused, OSError):
        # Lost, damaged, or fgm's bincode: the file itself can tell.
        return open_foreign(path, size_bytes)
    head = sidecar.head
    if size_bytes < 12:
        raise ArchiveRefused(f"{path.name}: too short to be Parquet")
    return FileEntry(path, head.from_ms, head.to_ms, head.rows, size_bytes, sidecar, status.st_mtime_ns)


def open_foreign(path: Path, size_bytes: int) -> FileEntry:
    """By its footer. Arrow is loaded only when such a file is met."""
    from nodescope.read.files.other_parquet import read_span  # noqa: PLC0415

    span = read_span(path)
    return FileEntry(path, span.from_ms, span.to_ms, span.rows, size_bytes, None)


def read_foreign_metrics(path: Path) -> tuple[Metric, ...]:
    from nodescope.read.files.other_parquet import read_metrics  # noqa: PLC0415

    return read_metrics(path)


def read_foreign_subjects(entry: FileEntry) -> list[Subject]:
    from nodescope.read.files.other_parquet import read_subjects  # noqa: PLC0415

    return read_subjects(entry.path)


def read_catalog(paths: Sequence[Path], before: Catalog | None = None) -> Catalog:
    """
    A catalog of data folders, other folders with Parquet, or single files.

    A file does not change once it has its name: what an earlier catalog knew
    of it is taken over. The same catalog comes back when nothing is new.
    """
    for path in paths:
        if not path.exists():
            raise RequestRejected(f"no such file or folder: {path}")
    known = {entry.path: entry for entry in before.opened} if before else {}
    entries: list[FileEntry] = []
    refusals: list[Refusal] = []
    replaced: set[Path] = set()

    def note(error: OSError) -> None:
        refusals.append(refuse_folder(error))

    for path in (found for root in paths for found in find_parquet(root, note)):
        try:
            entry = reuse_entry(known.get(path)) or open_entry(path)
        except FileNotFoundError:
            # Merged away between listing and opening; its rows are in the output.
            continue
        except (NodescopeError, OSError) as error:
            refusals.append(Refusal(path, str(error)))
            continue
        entries.append(entry)
        if entry.sidecar:
            replaced.update(path.with_name(name) for name in entry.sidecar.head.replaces)
    if before and before.paths == tuple(paths) and same(before, entries, refusals):
        return before
    served = [entry for entry in entries if entry.path not in replaced]
    served.sort(key=lambda entry: (entry.from_ms, entry.path.name))
    return Catalog(tuple(served), tuple(refusals), tuple(paths), tuple(entries))


def reuse_entry(entry: FileEntry | None) -> FileEntry | None:
    """As long as the file is the one that was opened."""
    if entry is None or entry.sidecar is None:
        return None
    status = entry.path.stat()
    is_same = (status.st_size, status.st_mtime_ns) == (entry.size_bytes, entry.mtime_ns)
    return entry if is_same else None


def same(before: Catalog, entries: Sequence[FileEntry], refusals: Sequence[Refusal]) -> bool:
    return (
        len(before.opened) == len(entries)
        and all(one is other for one, other in zip(before.opened, entries))
        and before.refusals == tuple(refusals)
    )


def name_file(path: Path) -> ArchiveFile | None:
    return parse_file(path)
