"""
Rows of one metric from many files, cut into series.

The files of an object store come by Arrow, those of others by DuckDB. Columns
that distinguish series are codes, not text: 64 characters a row cost more than
the numbers.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nodescope.keep.label_columns import (
    ID_COLUMNS,
    IDENTITY,
    LABELS,
    OTHER_COLUMNS,
    Identity,
    Labels,
    identify,
)
from nodescope.keep.parquet import cut_rows, join_chunks, unwrap
from nodescope.read.files.listing import FileEntry
from nodescope.read.query.sql import SqlReader, quote, quote_all, render_moment

CONTAINER = "l_container_id"
Columns = dict[str, NDArray[Any]]
Fetched = dict[Identity, list[Columns]]
"""By series its pieces in the order of the files: time_ms, and the numbers that were asked for."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which rows: of a metric, of some containers, of a scope, from when to when."""

    metric: str
    containers: Sequence[str] | None
    scope: str
    from_ms: int
    to_ms: int


# -- which columns distinguish series ----------------------------------------------------------


def list_scopes(entries: Sequence[FileEntry], metric: str) -> set[str]:
    return {scope for entry in entries if entry.sidecar for scope in entry.sidecar.scopes().get(metric, ())}


def identity_columns(scopes: set[str]) -> list[str]:
    """The columns that distinguish series of these scopes."""
    wanted = {column for scope in scopes for column in ID_COLUMNS.get(scope, OTHER_COLUMNS)}
    if len(scopes) > 1 or not wanted or scopes == {"node"}:
        wanted.add("l_scope")
    return [name for name in IDENTITY if name in wanted] if scopes else []


@dataclass(frozen=True, slots=True)
class SeriesNames:
    """From the columns that are selected to whole identities."""

    columns: Sequence[str]
    identities: Mapping[tuple[str | None, ...], Identity]


class LabelRows:
    """The labels of a file, told from others by being the same object: neighbouring files share them."""

    def __init__(self, entry: FileEntry) -> None:
        self.rows = entry.sidecar.labels() if entry.sidecar else ()

    def __hash__(self) -> int:
        return id(self.rows)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LabelRows) and self.rows is other.rows


# A day of hours and some of its newest files; of 100 containers 50 KiB each.
@lru_cache(maxsize=48)
def name_labels(labels: LabelRows, scopes: frozenset[str]) -> SeriesNames:
    columns = identity_columns(set(scopes))
    return SeriesNames(columns, identify_rows(labels.rows, columns, scopes))


def name_series(entries: Sequence[FileEntry], scopes: set[str]) -> SeriesNames:
    columns = identity_columns(scopes)
    found: dict[tuple[str | None, ...], Identity] = {}
    for labels in dict.fromkeys(LabelRows(entry) for entry in entries):
        found |= identify_rows(labels.rows, columns, scopes)
    return SeriesNames(columns, found)


def identify_rows(
    rows: Sequence[tuple[Labels, Any]], columns: Sequence[str], scopes: Collection[str]
) -> dict[tuple[str | None, ...], Identity]:
    places = [LABELS.index(name) for name in columns]
    scope_place = LABELS.index("l_scope")
    return {
        tuple(labels[place] for place in places): identify(labels)
        for labels, _ in rows
        if labels[scope_place] in scopes
    }


# -- questions ------------------------------------------------------------------------


def fetch_samples(sql: SqlReader, entries: Sequence[FileEntry], wanted: Wanted) -> Fetched:
    """From files of an object store, and from those of others, one by one."""
    fetched: Fetched = {}
    ours = [entry for entry in entries if entry.remote is not None]
    scopes = list_scopes(ours, wanted.metric)
    picked = scopes & {wanted.scope} if wanted.scope else scopes
    if ours and picked:
        names = name_series(ours, picked)
        scope = wanted.scope if picked != scopes else ""
        cut_series(fetched, select_remote(ours, wanted, names, scope), names, ("value",))
    for entry in entries:
        if entry.sidecar is None:
            fetch_foreign(sql, entry, wanted, fetched)
    return fetched


def select_remote(entries: Sequence[FileEntry], wanted: Wanted, names: SeriesNames, scope: str) -> pa.Table:
    """From an object store, file by file; the same rows in the same order."""
    columns = list(names.columns)
    if scope and "l_scope" not in columns:
        columns.append("l_scope")
    asked = (wanted.metric, wanted.containers, columns, wanted.from_ms, wanted.to_ms)
    tables = [entry.remote.select(*asked) for entry in entries if entry.remote]
    filled = [table for table in tables if table.num_rows]
    table = pa.concat_tables(filled).unify_dictionaries() if filled else tables[0]
    if not scope or not filled:
        return table
    # Its functions take 9 MiB, and only stores need them.
    import pyarrow.compute as pc  # noqa: PLC0415

    return table.filter(pc.equal(table.column("l_scope"), scope))


def fetch_foreign(sql: SqlReader, entry: FileEntry, wanted: Wanted, fetched: Fetched) -> None:
    # DuckDB is loaded only when such a file is met.
    from nodescope.read.files.other_parquet import read_shape  # noqa: PLC0415

    shape = read_shape(entry.path)
    where = where_rows(wanted, shape.label("l_container_id")) + where_time(entry, wanted)
    columns = ", ".join(f"{shape.label(name)} AS {name}" for name in IDENTITY)
    question = (
        f"SELECT epoch_ms(time) AS time_ms, {shape.value()} AS value, {columns} "  # noqa: S608
        f"FROM read_parquet({quote(str(entry.path))}) WHERE {' AND '.join(where)} "
        f"ORDER BY {', '.join(map(str, range(3, 3 + len(IDENTITY))))}, time_ms"
    )
    cut_series(fetched, sql.run(question), SeriesNames(IDENTITY, {}), ("value",))


def where_rows(wanted: Wanted, container: str) -> list[str]:
    where = [f"metric_name = {quote(wanted.metric)}"]
    if wanted.containers is not None:
        where.append(f"{container} IN ({quote_all(wanted.containers)})")
    return where


def where_time(entry: FileEntry, wanted: Wanted) -> list[str]:
    """Nothing where the file lies within the range as a whole."""
    clauses = []
    if entry.from_ms < wanted.from_ms:
        clauses.append(f"time >= TIMESTAMP '{render_moment(wanted.from_ms)}'")
    if entry.to_ms > wanted.to_ms:
        clauses.append(f"time <= TIMESTAMP '{render_moment(wanted.to_ms)}'")
    return clauses


# -- tables to series -------------------------------------------------------------------


def cut_series(
    fetched: Fetched,
    table: pa.Table,
    names: SeriesNames,
    numbers: Sequence[str],
    moment: str = "time_ms",
    only: Collection[str] | None = None,
) -> None:
    """
    A table in the order of the files, cut where the series changes; each stays in order of time.

    `only` leaves out what is of other containers, where the columns tell.
    """
    if not table.num_rows:
        # Arrow would load pandas, where it is installed, to make an empty array.
        return
    columns = {"time_ms": unwrap(join_chunks(table.column(moment)), 0)}
    # Null means unlimited.
    columns |= {name: unwrap(join_chunks(table.column(name)), np.inf) for name in numbers}
    words = [join_chunks(table.column(name)) for name in names.columns]
    place = names.columns.index(CONTAINER) if only is not None and CONTAINER in names.columns else -1
    for rows, labels in cut_rows(table.num_rows, words):
        if place >= 0 and labels[place] not in (only or ()):
            continue
        identity = names.identities.get(labels) or identity_of(names.columns, labels)
        piece = {name: one[rows] for name, one in columns.items()}
        fetched.setdefault(identity, []).append(piece)


def identity_of(columns: Sequence[str], labels: Sequence[str | None]) -> Identity:
    """An identity from the columns that were selected; what the scope does not use is left out."""
    known = dict(zip(columns, labels))
    return identify(tuple(known.get(name) for name in LABELS))
