"""
Rows of one metric from many files, cut into series.

Row groups are pruned by DuckDB from the WHERE clause: by the statistics of
metric_name and l_container_id, then by the bloom filter. The columns that
distinguish series come back as codes, not as text: the sidecars list every
word that can occur, and 64 characters a row cost more than the numbers.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from nodescope.base.errors import ArchiveRefused
from nodescope.keep.label_columns import ID_COLUMNS, IDENTITY, LABELS, OTHER_COLUMNS, Identity, identify
from nodescope.keep.parquet import cut_rows, first_line, unwrap
from nodescope.keep.rollup import NUMBERS, RATES
from nodescope.read.files.listing import FileEntry
from nodescope.read.files.other_parquet import read_shape

Columns = dict[str, NDArray[Any]]
Fetched = dict[Identity, list[Columns]]
"""By series its pieces in the order of the files: time_ms, and the numbers that were asked for."""
# More words than this are cheaper as text than as a type of their own in the
# question: a node has thousands of processes in a day.
WORDS_MOST = 2000
MINUTE_COLUMNS = (*NUMBERS, "count", *RATES)


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which rows: of a metric, of some containers, of a scope, from when to when."""

    metric: str
    containers: Sequence[str] | None
    scope: str
    from_ms: int
    to_ms: int


def quote(text: str) -> str:
    """A string literal of SQL."""
    return "'" + text.replace("'", "''") + "'"


def quote_all(words: Iterable[str]) -> str:
    return ", ".join(map(quote, words))


def render_moment(time_ms: int) -> str:
    return datetime.fromtimestamp(time_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]


def run_arrow(connection: duckdb.DuckDBPyConnection, question: str) -> pa.Table:
    try:
        return connection.cursor().sql(question).to_arrow_table()
    except duckdb.Error as error:
        raise ArchiveRefused(first_line(error)) from error


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
    """From the columns that are selected to whole identities, and every word that they may have."""

    columns: Sequence[str]
    identities: Mapping[tuple[str | None, ...], Identity]
    words: Sequence[Sequence[str]]

    def select(self) -> str:
        parts = []
        for column, words in zip(self.columns, self.words):
            few = 0 < len(words) <= WORDS_MOST
            parts.append(f"{column}::ENUM({quote_all(words)}) AS {column}" if few else column)
        return ", ".join(parts)


def name_series(entries: Sequence[FileEntry], scopes: set[str]) -> SeriesNames:
    columns = identity_columns(scopes)
    places = [LABELS.index(name) for name in columns]
    scope_place = LABELS.index("l_scope")
    found: dict[tuple[str | None, ...], Identity] = {}
    seen: set[int] = set()
    for entry in entries:
        rows = entry.sidecar.labels() if entry.sidecar else ()
        if id(rows) in seen:
            continue
        seen.add(id(rows))
        for labels, _ in rows:
            if labels[scope_place] in scopes:
                found[tuple(labels[place] for place in places)] = identify(labels)
    words = [sorted({key[place] or "" for key in found} - {""}) for place in range(len(columns))]
    return SeriesNames(columns, found, words)


# -- questions ------------------------------------------------------------------------


def fetch_samples(
    connection: duckdb.DuckDBPyConnection, entries: Sequence[FileEntry], wanted: Wanted
) -> Fetched:
    """From files of ours in one question, from others one by one."""
    fetched: Fetched = {}
    ours = [entry for entry in entries if entry.sidecar is not None]
    scopes = list_scopes(ours, wanted.metric)
    picked = scopes & {wanted.scope} if wanted.scope else scopes
    if ours and picked:
        names = name_series(ours, picked)
        scope = wanted.scope if picked != scopes else ""
        select = select_remote if ours[0].remote else select_local
        cut_series(fetched, select(connection, ours, wanted, names, scope), names, ("value",))
    for entry in entries:
        if entry.sidecar is None:
            fetch_foreign(connection, entry, wanted, fetched)
    return fetched


def select_local(
    connection: duckdb.DuckDBPyConnection,
    entries: Sequence[FileEntry],
    wanted: Wanted,
    names: SeriesNames,
    scope: str,
) -> pa.Table:
    where = where_rows(wanted, "l_container_id", scope) + where_time(entries, wanted, "TIMESTAMPTZ", "+00")
    files = quote_all(str(entry.path) for entry in entries)
    question = (
        f"SELECT epoch_ms(time) AS time_ms, value, {names.select()} "  # noqa: S608 - names of ours, values quoted
        f"FROM read_parquet([{files}]) WHERE {' AND '.join(where)}"
    )
    return run_arrow(connection, question)


def select_remote(
    _: duckdb.DuckDBPyConnection, entries: Sequence[FileEntry], wanted: Wanted, names: SeriesNames, scope: str
) -> pa.Table:
    """From an object store, file by file; the same rows in the same order."""
    columns = list(names.columns)
    if scope and "l_scope" not in columns:
        columns.append("l_scope")
    asked = (wanted.metric, wanted.containers, columns, wanted.from_ms, wanted.to_ms)
    tables = [entry.remote.select(*asked) for entry in entries if entry.remote]
    filled = [table for table in tables if table.num_rows]
    table = pa.concat_tables(filled).unify_dictionaries() if filled else tables[0]
    return table.filter(pc.equal(table.column("l_scope"), scope)) if scope and filled else table


def fetch_foreign(
    connection: duckdb.DuckDBPyConnection, entry: FileEntry, wanted: Wanted, fetched: Fetched
) -> None:
    shape = read_shape(entry.path)
    where = where_rows(wanted, shape.label("l_container_id"), "")
    where += where_time([entry], wanted, "TIMESTAMP", "")
    columns = ", ".join(f"{shape.label(name)} AS {name}" for name in IDENTITY)
    question = (
        f"SELECT epoch_ms(time) AS time_ms, {shape.value()} AS value, {columns} "  # noqa: S608
        f"FROM read_parquet({quote(str(entry.path))}) WHERE {' AND '.join(where)} "
        f"ORDER BY {', '.join(map(str, range(3, 3 + len(IDENTITY))))}, time_ms"
    )
    cut_series(fetched, run_arrow(connection, question), SeriesNames(IDENTITY, {}, ()), ("value",))


def fetch_minutes(
    connection: duckdb.DuckDBPyConnection, paths: Sequence[Path], scopes: set[str], wanted: Wanted
) -> Fetched:
    """From rollups. Their rows name their series; the scopes say which columns to select."""
    fetched: Fetched = {}
    where = where_rows(wanted, "l_container_id", wanted.scope)
    where.append(f"time >= TIMESTAMPTZ '{render_moment(wanted.from_ms)}+00'")
    where.append(f"time <= TIMESTAMPTZ '{render_moment(wanted.to_ms)}+00'")
    columns = [*identity_columns(scopes), "l_scope"] if scopes else IDENTITY
    columns = [name for name in IDENTITY if name in columns]
    numbers = ", ".join(f'"{name}"' for name in MINUTE_COLUMNS)
    question = (
        f'SELECT epoch_ms("time") AS time_ms, {numbers}, {", ".join(columns)} '  # noqa: S608
        f"FROM read_parquet([{quote_all(map(str, paths))}]) WHERE {' AND '.join(where)}"
    )
    table = run_arrow(connection, question)
    cut_series(fetched, table, SeriesNames(columns, {}, ()), MINUTE_COLUMNS)
    return fetched


def where_rows(wanted: Wanted, container: str, scope: str) -> list[str]:
    where = [f"metric_name = {quote(wanted.metric)}"]
    if wanted.containers is not None:
        where.append(f"{container} IN ({quote_all(wanted.containers)})")
    if scope:
        where.append(f"l_scope = {quote(scope)}")
    return where


def where_time(entries: Sequence[FileEntry], wanted: Wanted, kind: str, zone: str) -> list[str]:
    """Nothing where the files lie within the range as a whole."""
    clauses = []
    if min(entry.from_ms for entry in entries) < wanted.from_ms:
        clauses.append(f"time >= {kind} '{render_moment(wanted.from_ms)}{zone}'")
    if max(entry.to_ms for entry in entries) > wanted.to_ms:
        clauses.append(f"time <= {kind} '{render_moment(wanted.to_ms)}{zone}'")
    return clauses


# -- tables to series -------------------------------------------------------------------


def cut_series(fetched: Fetched, table: pa.Table, names: SeriesNames, numbers: Sequence[str]) -> None:
    """A table in the order of the files, cut where the series changes; each stays in order of time."""
    columns = {"time_ms": unwrap(table.column("time_ms").combine_chunks(), 0)}
    # Null means unlimited.
    columns |= {name: unwrap(table.column(name).combine_chunks(), np.inf) for name in numbers}
    words = [table.column(name).combine_chunks() for name in names.columns]
    for rows, labels in cut_rows(table.num_rows, words):
        identity = names.identities.get(labels) or identity_of(names.columns, labels)
        piece = {name: one[rows] for name, one in columns.items()}
        fetched.setdefault(identity, []).append(piece)


def identity_of(columns: Sequence[str], labels: Sequence[str | None]) -> Identity:
    """An identity from the columns that were selected; what the scope does not use is left out."""
    known = dict(zip(columns, labels))
    return identify(tuple(known.get(name) for name in LABELS))
