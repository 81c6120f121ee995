"""
Parquet files that have no sidecar of ours: fgm's own, or ours whose sidecar was lost.

fgm writes `value_int` and `value_float` (a float wins), `time` without a zone
(it is UTC), and no scope: what has a container id is a container. Its sidecar
is bincode, or missing; neither is needed here. Only footers, and the columns
that name things, are read.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path

import duckdb
import pyarrow.parquet as pq

from nodescope.base.errors import ArchiveRefused, ArchiveTruncated
from nodescope.base.metric import Kind, Metric
from nodescope.base.unit_guess import UNKNOWN, KernelUnit, unit_of
from nodescope.keep.label_columns import LABELS, Subject
from nodescope.keep.parquet import first_line, open_parquet, read_footer

NEEDED = ("time", "metric_name")
# Only columns that name things are read.
MEMORY = "256MiB"
LINUX = (("cpu.", KernelUnit("seconds", 0.01)), ("memory.", KernelUnit("bytes", 1024.0)))
LEAST_IN_BYTES = 2.0**33


@dataclass(frozen=True, slots=True)
class FileShape:
    """How a file's columns are read as ours."""

    columns: frozenset[str]

    def value(self) -> str:
        if "value" in self.columns:
            return "value"
        parts = [name for name in ("value_float", "value_int") if name in self.columns]
        return f"coalesce({', '.join(f'{name}::DOUBLE' for name in parts)})"

    def label(self, name: str) -> str:
        if name in self.columns:
            # fgm writes an empty string where nothing is known.
            return f"nullif({name}::VARCHAR, '')"
        if name == "l_scope" and "l_container_id" in self.columns:
            return "CASE WHEN nullif(l_container_id, '') IS NULL THEN 'node' ELSE 'container' END"
        return "NULL::VARCHAR"

    def kind(self) -> str:
        return "metric_kind::VARCHAR" if "metric_kind" in self.columns else "'gauge'"


def read_shape(path: Path) -> FileShape:
    return shape_of(open_parquet(path), path.name)


def shape_of(file: pq.ParquetFile, name: str) -> FileShape:
    # A newer version of our own is refused here, by name.
    read_footer(file, name)
    columns = frozenset(file.schema_arrow.names)
    missing = [column for column in NEEDED if column not in columns]
    if missing or not columns & {"value", "value_float", "value_int"}:
        wanted = ", ".join(missing) or "value (or value_int, value_float)"
        raise ArchiveRefused(f"{name}: no column {wanted}; not an archive of metrics")
    return FileShape(columns)


def read_span(path: Path) -> tuple[int, int, int]:
    """(first ms, last ms, rows) by the row groups' statistics; where they are missing, by the rows."""
    file = open_parquet(path)
    shape_of(file, path.name)
    metadata = file.metadata
    places = range(metadata.num_columns)
    found: list[datetime] = []
    for group in map(metadata.row_group, range(metadata.num_row_groups)):
        column = next(one for one in map(group.column, places) if one.path_in_schema == "time")
        statistics = column.statistics
        if statistics is None or not statistics.has_min_max:
            return scan_span(path)
        found += [statistics.min, statistics.max]
    if not found:
        raise ArchiveRefused(f"{path.name}: it has no rows")
    times = [to_ms(one) for one in found]
    return min(times), max(times), metadata.num_rows


def read_node(path: Path) -> str:
    """The one node that all rows name, by the row groups' statistics; empty where they name none, or several."""
    file = open_parquet(path)
    if "l_node_name" not in file.schema_arrow.names:
        return ""
    names: set[str] = set()
    for group in map(file.metadata.row_group, range(file.metadata.num_row_groups)):
        columns = map(group.column, range(file.metadata.num_columns))
        statistics = next(one for one in columns if one.path_in_schema == "l_node_name").statistics
        if statistics is None or not statistics.has_min_max:
            return scan_node(path)
        names |= {str(statistics.min), str(statistics.max)}
    return names.pop() if len(names) == 1 else ""


def scan_node(path: Path) -> str:
    rows = run(path, "SELECT DISTINCT l_node_name::VARCHAR FROM read_parquet(?) LIMIT 3")
    names = {str(name) for (name,) in rows if name}
    return names.pop() if len(names) == 1 else ""


def to_ms(moment: datetime) -> int:
    return round((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)


def scan_span(path: Path) -> tuple[int, int, int]:
    rows = run(path, "SELECT epoch_ms(min(time)), epoch_ms(max(time)), count(*) FROM read_parquet(?)")
    first, last, count = (int(str(one)) for one in rows[0])
    return first, last, count


def run(path: Path, question: str) -> list[tuple[object, ...]]:
    try:
        with duckdb.connect() as connection:
            connection.execute(f"SET memory_limit = '{MEMORY}'")
            return connection.cursor().execute(question, [str(path)]).fetchall()
    except duckdb.Error as error:
        raise ArchiveTruncated(f"{path.name}: {first_line(error)}") from error


@lru_cache(maxsize=4096)
def read_metrics(path: Path) -> tuple[Metric, ...]:
    shape = read_shape(path)
    question = f"SELECT DISTINCT metric_name::VARCHAR, {shape.kind()} FROM read_parquet(?) ORDER BY 1"  # noqa: S608
    kinds: dict[str, Kind] = {"counter": "counter"}
    rows = [(str(name), kinds.get(str(kind), "gauge")) for name, kind in run(path, question)]
    is_linux = any(name.startswith("cgroup.") for name, _ in rows) and counts_kilobytes(path, shape)
    return tuple(describe_metric(name, kind, is_linux=is_linux) for name, kind in rows)


def counts_kilobytes(path: Path, shape: FileShape) -> bool:
    """Whether its meminfo is in the kernel's own kB: as bytes, a node would have less than 8 GiB; as kB, 8 TiB."""
    question = f"SELECT max({shape.value()}) FROM read_parquet(?) WHERE metric_name = 'memory.MemTotal'"  # noqa: S608
    ((most,),) = run(path, question)
    return isinstance(most, float) and most < LEAST_IN_BYTES


def describe_metric(name: str, kind: Kind, *, is_linux: bool) -> Metric:
    """By its name alone: what the sidecar would have said, as far as the name fixes it."""
    known = unit_of(name)
    if is_linux:
        # A file with cgroups is of a Linux node: ticks and kB are what they are there.
        known = (
            next((unit for start, unit in LINUX if name.startswith(start)), known)
            if known is UNKNOWN
            else known
        )
    return Metric(name, kind, "", unit=known.unit, scale=known.scale)


@lru_cache(maxsize=4096)
def _subject_rows(path: Path) -> Sequence[tuple[object, ...]]:
    shape = read_shape(path)
    columns = ", ".join(f"{shape.label(name)} AS {name}" for name in LABELS)
    return run(
        path,
        f"SELECT {columns}, epoch_ms(min(time)), epoch_ms(max(time)) FROM read_parquet(?) GROUP BY ALL",  # noqa: S608
    )


def read_subjects(path: Path) -> list[Subject]:
    found = []
    for row in _subject_rows(path):
        labels = tuple(None if value is None else str(value) for value in row[: len(LABELS)])
        first, last = row[len(LABELS) :]
        found.append(Subject(labels, {}, int(str(first)), int(str(last))))
    return found
