"""
Many metrics of everything on a node at once, in coarse steps: for questions about the node as a whole.

One sample of each series and step is kept, the last. That is all a counter
needs: the increase between two samples divided by the time between them is its
exact mean rate. A gauge is looked at once a step.
Steps of a minute or more are read from rollups where there are some. Rows are fetched some
metrics at a time and thinned at once, so that memory follows the answer.

    sweep = sweep_node(engine, catalog, tail, Sought(names, "container", span, 5000))
    series, time_ms, value = sweep.samples["cgroup.v2.memory.current"]
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nodescope.base.errors import NodescopeError
from nodescope.keep.label_columns import IDENTITY, LABELS
from nodescope.keep.parquet import unwrap
from nodescope.keep.rollup import MINUTE_MS
from nodescope.read.files.catalog import Catalog
from nodescope.read.files.listing import FileEntry
from nodescope.read.files.rollups import Rollup, choose, find_rollups
from nodescope.read.live.tail import LiveTail
from nodescope.read.query.engine import Engine
from nodescope.read.query.fetch import (
    Wanted,
    fetch_samples,
    list_scopes,
    quote,
    quote_all,
    render_moment,
    run_arrow,
    where_time,
)
from nodescope.read.query.file_sweep import (
    AskedSweep,
    FileSweep,
    Sought,
    Thinned,
    can_keep,
    column_of,
    name_sweep,
    sweep_file,
)

# Metrics fetched at once: of 100 containers and 90 minutes 1.5 million rows, 30 MB.
METRICS_AT_ONCE = 3
MANY_FILES = 20
# What stands for null: no such series; unlimited.
MISSING = {"series": -1, "value": np.inf}
SCOPE = LABELS.index("l_scope")


@dataclass(slots=True)
class Sweep:
    """The first id of each series, and the samples of each metric that has some."""

    names: list[str]
    samples: dict[str, Thinned]


def sweep_node(engine: Engine, catalog: Catalog, tail: LiveTail | None, sought: Sought) -> Sweep:
    """Of one node; a file that cannot be read is left out, as a file that is not there."""
    entries = catalog.select(sought.span.from_ms, sought.span.to_ms)
    names = Names(list_words(entries, sought.scope))
    minutes: list[Rollup] = []
    if sought.step_ms >= MINUTE_MS:
        found = find_rollups(catalog.paths, sought.span.from_ms, sought.span.to_ms)
        entries, minutes = choose(entries, found)
    ours = [entry for entry in entries if entry.sidecar is not None and entry.remote is None]
    large = [entry for entry in ours if sought.metrics and can_keep(entry, sought.metrics[0])]
    asked = [entry for entry in ours if entry not in large]
    others = [entry for entry in entries if entry not in ours]
    parts: dict[str, list[Thinned]] = {}
    for some in split_metrics(catalog.entries, sought, len(asked)):
        for question in (ask_samples(asked, sought, some, names), ask_minutes(minutes, sought, some, names)):
            for metric, found_rows in keep_thinned(engine, question, sought, some, names):
                parts.setdefault(metric, []).append(found_rows)
    for metric in sought.metrics:
        for piece in (
            *read_large(engine, large, sought, metric, names),
            *read_others(engine.connection, others, sought, metric, names),
            *read_tail(tail, sought, metric, names),
        ):
            parts.setdefault(metric, []).append(piece)
    return Sweep(names.words, {metric: join(many, sought) for metric, many in parts.items()})


def read_large(
    engine: Engine, entries: Sequence[FileEntry], sought: Sought, metric: str, names: "Names"
) -> Iterator[Thinned]:
    """File by file; what was read of one is kept."""
    span = sought.span
    for entry in entries:
        if not has_metric(entry, sought.scope, metric):
            continue
        try:
            key = name_sweep(entry, sought, metric)
            found = engine.sweeps.get(key)
            if not isinstance(found, FileSweep):
                found = sweep_file(entry, sought, metric)
                engine.sweeps.put(key, found)
        except (NodescopeError, OSError):
            continue
        places = np.array([names.place(word) if word else -1 for word in found.words], np.int64)
        series = places[found.series]
        inside = (series >= 0) & (found.time_ms >= span.from_ms) & (found.time_ms <= span.to_ms)
        yield Thinned(series[inside], found.time_ms[inside], found.value[inside])


def has_metric(entry: FileEntry, scope: str, metric: str) -> bool:
    return entry.sidecar is not None and scope in entry.sidecar.scopes().get(metric, ())


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


def split_metrics(entries: Sequence[FileEntry], sought: Sought, files: int) -> Iterator[Sequence[str]]:
    """Those that the node has of this scope, a few at a time; more where each question opens many files."""
    there = [
        name for name in sought.metrics if any(has_metric(entry, sought.scope, name) for entry in entries)
    ]
    at_once = METRICS_AT_ONCE + (2 if files > MANY_FILES else 0)
    for start in range(0, len(there), at_once):
        yield there[start : start + at_once]


Question = tuple[Sequence[Path], Callable[[Sequence[Path]], str]]
"""Files, and the question that is put to some of them."""


def keep_thinned(
    engine: Engine, question: Question, sought: Sought, metrics: Sequence[str], names: Names
) -> list[tuple[str, Thinned]]:
    """The same question about the same files has the same answer."""
    span = (sought.span.from_ms, sought.span.to_ms, sought.step_ms, sought.scope)
    versions = tuple((path, find_version(path)) for path in question[0])
    key = (versions, tuple(metrics), span, tuple(names.words))
    kept = engine.sweeps.get(key)
    if not isinstance(kept, AskedSweep):
        kept = AskedSweep(list(fetch_thinned(engine.connection, question, sought, metrics)))
        engine.sweeps.put(key, kept)
    return kept.samples


def find_version(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0


def fetch_thinned(
    connection: duckdb.DuckDBPyConnection, question: Question, sought: Sought, metrics: Sequence[str]
) -> Iterator[tuple[str, Thinned]]:
    """All files in one question; where that fails each alone, so that a broken one costs only itself."""
    paths, render = question
    if not paths:
        return
    try:
        table = run_arrow(connection, render(paths))
    except NodescopeError:
        for path in paths if len(paths) > 1 else ():
            yield from fetch_thinned(connection, ([path], render), sought, metrics)
        return
    rows = thin_table(table, sought)
    for place, metric in enumerate(sorted(metrics)):
        mine = (rows["metric"] == place) & (rows["series"] >= 0)
        series = rows["series"][mine].astype(np.int64)
        yield metric, Thinned(series, rows["time_ms"][mine], rows["value"][mine])


def ask_samples(
    entries: Sequence[FileEntry], sought: Sought, metrics: Sequence[str], names: Names
) -> Question:
    whole = Wanted("", None, sought.scope, sought.span.from_ms, sought.span.to_ms)
    where = where_time(entries, whole, "TIMESTAMPTZ", "+00") if entries else []
    if any(list_scopes(entries, metric) != {sought.scope} for metric in metrics):
        where.append(f"l_scope = {quote(sought.scope)}")
    paths = [entry.path for entry in entries]
    return paths, lambda some: render_question(some, sought, metrics, names.words, ("time", "value"), where)


def ask_minutes(rollups: Sequence[Rollup], sought: Sought, metrics: Sequence[str], names: Names) -> Question:
    """The last sample of a minute is what a rollup has of it."""
    first, last = (render_moment(moment) for moment in (sought.span.from_ms, sought.span.to_ms))
    where = [f"time >= TIMESTAMPTZ '{first}+00'", f"time <= TIMESTAMPTZ '{last}+00'"]
    where.append(f"l_scope = {quote(sought.scope)}")
    paths = [rollup.path for rollup in rollups]
    return paths, lambda some: render_question(
        some, sought, metrics, names.words, ("time + INTERVAL 59 SECOND", '"last"'), where
    )


def render_question(
    paths: Sequence[Path],
    sought: Sought,
    metrics: Sequence[str],
    words: Sequence[str],
    columns: tuple[str, str],
    more: Sequence[str],
) -> str:
    where = [f"metric_name IN ({quote_all(metrics)})", *more]
    moment, value = columns
    named = column_of(sought.scope)
    return (
        f"SELECT metric_name::ENUM({quote_all(sorted(metrics))}) AS metric, "  # noqa: S608 - names of ours, values quoted
        f"TRY_CAST({named} AS ENUM({quote_all(words) or quote('')})) AS series, epoch_ms({moment}) AS time_ms, "
        f"{value} AS value FROM read_parquet([{quote_all(map(str, paths))}]) WHERE {' AND '.join(where)}"
    )


def thin_table(table: pa.Table, sought: Sought) -> dict[str, NDArray[Any]]:
    """All columns at the last row of each metric, series and step: rows lie in this order, file by file."""
    columns = {
        name: unwrap(codes_of(table.column(name).combine_chunks()), MISSING.get(name, 0))
        for name in table.column_names
    }
    if not table.num_rows:
        return columns
    step = sought.step_of(columns["time_ms"])
    is_last = np.ones(len(step), bool)
    is_last[:-1] = step[1:] != step[:-1]
    for name in ("series", "metric"):
        is_last[:-1] |= columns[name][1:] != columns[name][:-1]
    return {name: column[is_last] for name, column in columns.items()}


def codes_of(array: pa.Array) -> pa.Array:
    return array.indices if pa.types.is_dictionary(array.type) else array


def thin(rows: Thinned, sought: Sought) -> Thinned:
    """The last sample of each series and step; rows are in order of series and time, file by file."""
    if not len(rows.time_ms):
        return rows
    step = sought.step_of(rows.time_ms)
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
