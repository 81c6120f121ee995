"""
Starts and ends of containers in files that have no sidecar: by their first and last sample.

A container that was not there when the files begin has started; one that was
not seen for longer than the slowest table takes, before the files end, has
ended. It was killed for memory where the kernel's own counter says so: a kill
between its last sample and its end is told as an exit.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from nodescope.base.cgroup_metrics import list_raw_names
from nodescope.base.errors import ArchiveRefused
from nodescope.base.metric_names import LIMIT
from nodescope.keep.label_columns import Subject
from nodescope.read.files.catalog import Catalog
from nodescope.read.files.listing import FileEntry

KILLS = frozenset(list_raw_names("memory.events.oom_kill"))
LIMITS = frozenset(list_raw_names(LIMIT))
# Slow tables come every 30 s; a file may begin some seconds after the container.
GONE_MS = 35_000
BEGUN_MS = 5_000

Facts = Mapping[str, float | str]


@dataclass(frozen=True, slots=True)
class SeenEnd:
    """A container's start or end, as its samples show it."""

    kind: str
    """start, exit or oom."""
    at_ms: int
    subject: Subject
    facts: Facts


def infer_events(catalog: Catalog, from_ms: int, to_ms: int) -> Iterator[SeenEnd]:
    """Of containers whose first or last sample is in a file without a sidecar."""
    files = [entry for entry in catalog.entries if entry.sidecar is None and entry.remote is None]
    if not files:
        return
    first_ms, last_ms = catalog.from_ms or 0, catalog.to_ms or 0
    for subject in catalog.containers():
        begun = from_ms <= subject.first_ms <= to_ms and subject.first_ms > first_ms + BEGUN_MS
        if begun and is_in(files, subject.first_ms):
            yield SeenEnd("start", subject.first_ms, subject, {})
        ended = from_ms <= subject.last_ms <= to_ms and subject.last_ms < last_ms - GONE_MS
        if ended and is_in(files, subject.last_ms):
            yield end_of(subject, files)


def is_in(files: Sequence[FileEntry], at_ms: int) -> bool:
    return any(entry.from_ms <= at_ms <= entry.to_ms for entry in files)


def end_of(subject: Subject, files: Sequence[FileEntry]) -> SeenEnd:
    its_id = subject.label("l_container_id") or ""
    lasted = {"lifetime_seconds": (subject.last_ms - subject.first_ms) / 1000}
    newest = next(entry for entry in reversed(files) if entry.from_ms <= subject.last_ms <= entry.to_ms)
    counted = read_counts(newest.path).get(its_id, {})
    kills, limit = (
        max((counted[one] for one in names & counted.keys()), default=0.0) for names in (KILLS, LIMITS)
    )
    facts = {**lasted, "memory_limit_bytes": limit} if limit else lasted
    if kills > 0:
        return SeenEnd("oom", subject.last_ms, subject, {**facts, "oom_kills": kills})
    return SeenEnd("exit", subject.last_ms, subject, facts)


@lru_cache(maxsize=256)
def read_counts(path: Path) -> Mapping[str, Mapping[str, float]]:
    """By container and metric, the largest kill counter and limit of a file; nothing of one that cannot be read."""
    # DuckDB is loaded only when such a file is met.
    from nodescope.read.files.other_parquet import read_shape, run  # noqa: PLC0415

    found: dict[str, dict[str, float]] = {}
    try:
        shape = read_shape(path)
        names = ", ".join(f"'{name}'" for name in sorted(KILLS | LIMITS))
        rows = run(
            path,
            f"SELECT {shape.label('l_container_id')} AS id, metric_name::VARCHAR, max({shape.value()}) "  # noqa: S608 - names of ours
            f"FROM read_parquet(?) WHERE metric_name IN ({names}) GROUP BY ALL",
        )
    except ArchiveRefused:
        return found
    for its_id, name, value in rows:
        if its_id and isinstance(value, float):
            found.setdefault(str(its_id), {})[str(name)] = value
    return found
