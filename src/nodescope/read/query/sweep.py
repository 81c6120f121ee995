"""
Many metrics of everything on a node at once, in coarse steps: for questions about the node as a whole.

One sample of each series and step is kept, the last. That is all a counter
needs: the increase between two samples divided by the time between them is its
exact mean rate. A gauge is looked at once a step. Rows are fetched some
metrics at a time and thinned at once, so that memory follows the answer.

    sweep = sweep_node(engine.connection, catalog, tail, Sought(names, "container", span, 5000))
    series, time_ms, value = sweep.samples["cgroup.v2.memory.current"]
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import duckdb
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nodescope.base.block import Floats, Integers
from nodescope.base.errors import NodescopeError
from nodescope.base.time_range import TimeRange
from nodescope.keep.label_columns import ID_COLUMNS, IDENTITY, LABELS
from nodescope.keep.parquet import unwrap
from nodescope.read.files.catalog import Catalog
from nodescope.read.files.listing import FileEntry
from nodescope.read.live.tail import LiveTail
from nodescope.read.query.fetch import Wanted, fetch_samples, quote, quote_all, run_arrow, where_time

# Metrics fetched at once: of 100 containers and 90 minutes 2 million rows, 40 MB.
METRICS_AT_ONCE = 4
# What stands for null: no such series; unlimited.
MISSING = {"series": -1, "value": np.inf}
SCOPE = LABELS.index("l_scope")


@dataclass(frozen=True, slots=True)
class Sought:
    """Which metrics of which scope, when, and in steps of how long."""

    metrics: Sequence[str]
    scope: str
    span: TimeRange
    step_ms: int


class Thinned(NamedTuple):
    """One metric: for each sample its series (a place in `Sweep.names`), time and value; by series, then time."""

    series: Integers
    time_ms: Integers
    value: Floats


NOTHING = Thinned(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))


@dataclass(slots=True)
class Sweep:
    """The first id of each series, and the samples of each metric that has some."""

    names: list[str]
    samples: dict[str, Thinned]


def sweep_node(
    connection: duckdb.DuckDBPyConnection, catalog: Catalog, tail: LiveTail | None, sought: Sought
) -> Sweep:
    """Of one node; a file that cannot be read is left out, as a file that is not there."""
    entries = catalog.select(sought.span.from_ms, sought.span.to_ms)
    ours = [entry for entry in entries if entry.sidecar is not None and entry.remote is None]
    others = [entry for entry in entries if entry not in ours]
    names = Names(list_words(ours, sought.scope))
    parts: dict[str, list[Thinned]] = {}
    for some in split_metrics(ours, sought):
        for metric, found in fetch_thinned(connection, ours, sought, some, names):
            parts.setdefault(metric, []).append(found)
    for metric in sought.metrics:
        for found in (
            *read_others(connection, others, sought, metric, names),
            *read_tail(tail, sought, metric, names),
        ):
            parts.setdefault(metric, []).append(found)
    return Sweep(names.words, {metric: join(many, sought) for metric, many in parts.items()})


class Names:
    """A place for each series, by the column that names it in its scope."""

    def __init__(self, words: Sequence[str]) -> None:
        self.words = list(words)
        self._places = {word: place for place, word in enumerate(words)}

    def place(self, word: str) -> int:
        if word not in self._places:
            self._places[word] = len(self.words)
            self.words.append(word)
        return self._places[word]


def list_words(entries: Sequence[FileEntry], scope: str) -> list[str]:
    place = LABELS.index(column_of(scope))
    found: set[str] = set()
    seen: set[int] = set()
    for entry in entries:
        rows = entry.sidecar.labels() if entry.sidecar else ()
        # Neighbouring files share the parsed tuple.
        if id(rows) not in seen:
            seen.add(id(rows))
            found.update(labels[place] or "" for labels, _ in rows if labels[SCOPE] == scope)
    return sorted(found - {""})


def column_of(scope: str) -> str:
    return ID_COLUMNS[scope][0] if scope in ID_COLUMNS else "l_scope"


def split_metrics(entries: Sequence[FileEntry], sought: Sought) -> Iterator[Sequence[str]]:
    """Those that the files have of this scope, a few at a time."""
    there = [
        name
        for name in sought.metrics
        if any(sought.scope in entry.sidecar.scopes().get(name, ()) for entry in entries if entry.sidecar)
    ]
    for start in range(0, len(there), METRICS_AT_ONCE):
        yield there[start : start + METRICS_AT_ONCE]


def fetch_thinned(
    connection: duckdb.DuckDBPyConnection,
    entries: Sequence[FileEntry],
    sought: Sought,
    metrics: Sequence[str],
    names: Names,
) -> Iterator[tuple[str, Thinned]]:
    """All files in one question; where that fails each alone, so that a broken one costs only itself."""
    try:
        table = run_arrow(connection, render_question(entries, sought, metrics, names.words))
    except NodescopeError:
        for entry in entries if len(entries) > 1 else ():
            yield from fetch_thinned(connection, [entry], sought, metrics, names)
        return
    rows = thin_table(table, sought)
    for place, metric in enumerate(sorted(metrics)):
        mine = (rows["metric"] == place) & (rows["series"] >= 0)
        series = rows["series"][mine].astype(np.int64)
        yield metric, Thinned(series, rows["time_ms"][mine], rows["value"][mine])


def thin_table(table: pa.Table, sought: Sought) -> dict[str, NDArray[Any]]:
    """All columns at the last row of each metric, series and step: rows lie in this order, file by file."""
    columns = {
        name: unwrap(codes_of(table.column(name).combine_chunks()), MISSING.get(name, 0))
        for name in table.column_names
    }
    if not table.num_rows:
        return columns
    step = ((columns["time_ms"] - sought.span.from_ms) // sought.step_ms).astype(np.int32)
    is_last = np.ones(len(step), bool)
    is_last[:-1] = step[1:] != step[:-1]
    for name in ("series", "metric"):
        is_last[:-1] |= columns[name][1:] != columns[name][:-1]
    return {name: column[is_last] for name, column in columns.items()}


def codes_of(array: pa.Array) -> pa.Array:
    return array.indices if pa.types.is_dictionary(array.type) else array


def render_question(
    entries: Sequence[FileEntry], sought: Sought, metrics: Sequence[str], words: Sequence[str]
) -> str:
    whole = Wanted("", None, sought.scope, sought.span.from_ms, sought.span.to_ms)
    where = [f"metric_name IN ({quote_all(metrics)})", f"l_scope = {quote(sought.scope)}"]
    where += where_time(entries, whole, "TIMESTAMPTZ", "+00")
    named = column_of(sought.scope)
    return (
        f"SELECT metric_name::ENUM({quote_all(sorted(metrics))}) AS metric, "  # noqa: S608 - names of ours, values quoted
        f"TRY_CAST({named} AS ENUM({quote_all(words) or quote('')})) AS series, epoch_ms(time) AS time_ms, value "
        f"FROM read_parquet([{quote_all(str(entry.path) for entry in entries)}]) WHERE {' AND '.join(where)}"
    )


def thin(rows: Thinned, sought: Sought) -> Thinned:
    """The last sample of each series and step; rows are in order of series and time, file by file."""
    if not len(rows.time_ms):
        return NOTHING
    step = (rows.time_ms - sought.span.from_ms) // sought.step_ms
    is_last = np.r_[(rows.series[1:] != rows.series[:-1]) | (step[1:] != step[:-1]), True]
    return Thinned(rows.series[is_last], rows.time_ms[is_last], rows.value[is_last])


def join(many: Sequence[Thinned], sought: Sought) -> Thinned:
    """Pieces of one metric, in order of series and time."""
    joined = many[0] if len(many) == 1 else Thinned(*map(np.concatenate, zip(*many)))
    order = np.lexsort((joined.time_ms, joined.series))
    ordered = Thinned(joined.series[order], joined.time_ms[order], joined.value[order])
    return thin(ordered, sought)


# -- other files, and the tail --------------------------------------------------------


def read_others(
    connection: duckdb.DuckDBPyConnection,
    entries: Sequence[FileEntry],
    sought: Sought,
    metric: str,
    names: Names,
) -> Iterator[Thinned]:
    """From an object store, or without a sidecar: series by series."""
    wanted = Wanted(metric, None, sought.scope, sought.span.from_ms, sought.span.to_ms)
    place = IDENTITY.index(column_of(sought.scope))
    for entry in entries:
        try:
            fetched = fetch_samples(connection, [entry], wanted)
        except NodescopeError:
            continue
        for identity, pieces in fetched.items():
            for piece in pieces if identity[place] else ():
                series = np.full(len(piece["time_ms"]), names.place(identity[place]), np.int64)
                yield thin(Thinned(series, piece["time_ms"], piece["value"]), sought)


def read_tail(tail: LiveTail | None, sought: Sought, metric: str, names: Names) -> Iterator[Thinned]:
    if tail is None or metric not in tail.metrics:
        return
    for subject, chunk in tail.chunks(metric):
        word = subject.label(column_of(sought.scope))
        if not word or (subject.label("l_scope") or "node") != sought.scope:
            continue
        inside = (chunk.time_ms >= sought.span.from_ms) & (chunk.time_ms <= sought.span.to_ms)
        series = np.full(int(inside.sum()), names.place(word), np.int64)
        yield thin(Thinned(series, chunk.time_ms[inside], chunk.value[inside]), sought)
