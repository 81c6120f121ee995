"""
Many metrics of everything on a node at once, in coarse steps: for questions about the node as a whole.

One sample of each series and step is kept, the last. That is all a counter
needs: the increase between two samples divided by the time between them is its
exact mean rate. A gauge is looked at once a step.
Steps of a minute or more are read from rollups where there are some. Files are
thinned one by one as they are read, so that memory follows the answer.

    sweep = sweep_node(engine, catalog, tail, Sought(names, "container", span, 5000))
    series, time_ms, value = sweep.samples["cgroup.v2.memory.current"]
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from nodescope.base.errors import NodescopeError
from nodescope.base.time_range import TimeRange
from nodescope.keep.label_columns import IDENTITY, LABELS
from nodescope.keep.rollup import MINUTE_MS
from nodescope.read.files.catalog import Catalog
from nodescope.read.files.listing import FileEntry
from nodescope.read.files.rollups import Rollup, choose, find_rollups, reach
from nodescope.read.live.tail import LiveTail
from nodescope.read.query.engine import Engine
from nodescope.read.query.fetch import Wanted, fetch_samples
from nodescope.read.query.file_sweep import (
    LAST_MS,
    FileSweep,
    Sought,
    Thinned,
    column_of,
    name_sweep,
    sweep_file,
    sweep_rollup,
)
from nodescope.read.query.row_reader import read_ahead
from nodescope.read.query.sql import SqlReader

SCOPE = LABELS.index("l_scope")


@dataclass(slots=True)
class Sweep:
    """The first id of each series, and the samples of each metric that has some."""

    names: list[str]
    samples: dict[str, Thinned]


def sweep_node(engine: Engine, catalog: Catalog, tail: LiveTail | None, sought: Sought) -> Sweep:
    """Of one node, all metrics at once."""
    names = Names()
    found = sweep_metrics(engine, catalog, tail, sought, names)
    samples = {metric: thinned for metric, thinned in found if thinned is not None}
    return Sweep(names.words, samples)


def sweep_metrics(
    engine: Engine, catalog: Catalog, tail: LiveTail | None, sought: Sought, names: "Names"
) -> Iterator[tuple[str, Thinned | None]]:
    """
    Of one node, metric by metric, for who makes something smaller of each; None of one without samples.

    `names` has the series of what was yielded. A file that cannot be read is left out, as one that is not there.
    """
    span = sought.span.from_ms, sought.span.to_ms
    entries = catalog.select(*span)
    for word in list_words(entries, sought.scope):
        names.place(word)
    minutes: list[Rollup] = []
    if sought.step_ms >= MINUTE_MS:
        entries, minutes = choose(entries, find_rollups(catalog.paths, *reach(entries, *span)), *span)
    ours = leave_damaged([entry for entry in entries if entry.is_local])
    others = [entry for entry in entries if not entry.is_local]
    closed = read_closed(engine, ours, minutes, sought, names)
    for metric in sought.metrics:
        pieces = [
            *next(closed),
            *read_others(engine.sql, others, sought, metric, names),
            *read_tail(tail, sought, metric, names),
        ]
        yield metric, join(pieces, sought) if pieces else None
        engine.reader.give_back()


def leave_damaged(entries: Sequence[FileEntry]) -> list[FileEntry]:
    checked = zip(entries, read_ahead(FileEntry.find_damage, entries), strict=True)
    return [entry for entry, damage in checked if not damage]


class Piece(NamedTuple):
    """One metric in one file: what is read at once."""

    metric: str
    file: FileEntry | Rollup


def read_closed(
    engine: Engine, entries: Sequence[FileEntry], rollups: Sequence[Rollup], sought: Sought, names: "Names"
) -> Iterator[list[Thinned]]:
    """
    Of each metric in turn its pieces; what was read of a file is kept.

    All metrics are one queue: of a day in one file two are read at a time.
    """
    queue = [
        [
            *(Piece(metric, one) for one in entries if has_metric(one, sought.scope, metric)),
            *(Piece(metric, one) for one in rollups),
        ]
        for metric in sought.metrics
    ]
    coming = read_ahead(
        lambda piece: keep_sweep(engine, piece, sought), (piece for pieces in queue for piece in pieces)
    )
    for pieces in queue:
        read = ((piece, next(coming)) for piece in pieces)
        yield [
            take_span(one, span_of(piece.file, sought.span), names)
            for piece, one in read
            if one is not None and len(one.words)
        ]


def span_of(file: FileEntry | Rollup, span: TimeRange) -> TimeRange:
    """Of a rollup the minutes that begin in the span; each has its time at its end."""
    if isinstance(file, FileEntry):
        return span
    return TimeRange(span.from_ms + LAST_MS, span.to_ms + LAST_MS)


def keep_sweep(engine: Engine, piece: Piece, sought: Sought) -> FileSweep | None:
    """None where the file cannot be read."""
    metric, file = piece
    try:
        key = name_sweep(file, sought, metric)
        found = engine.sweeps.get(key)
        if found is None:
            found = (
                sweep_rollup(file, sought, metric)
                if isinstance(file, Rollup)
                else sweep_file(engine.reader, file, sought, metric)
            )
            engine.sweeps.put(key, found)
    except (NodescopeError, OSError):
        return None
    return found


def take_span(found: FileSweep, span: TimeRange, names: "Names") -> Thinned:
    places = np.array([names.place(word) if word else -1 for word in found.words], np.int64)
    series = places[found.series] if len(places) else found.series.astype(np.int64)
    time_ms = found.time_ms
    inside = (series >= 0) & (time_ms >= span.from_ms) & (time_ms <= span.to_ms)
    return Thinned(series[inside], time_ms[inside], found.value[inside])


def has_metric(entry: FileEntry, scope: str, metric: str) -> bool:
    return entry.sidecar is not None and scope in entry.sidecar.scopes().get(metric, ())


class Names:
    """A place for each series, by the column that names it in its scope."""

    def __init__(self) -> None:
        self.words: list[str] = []
        self._places: dict[str, int] = {}

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


def thin(rows: Thinned, sought: Sought) -> Thinned:
    """The last sample of each series and step; rows are in order of series and time, file by file."""
    if not len(rows.time_ms):
        return rows
    step = sought.step_of(rows.time_ms)
    is_last = np.r_[(rows.series[1:] != rows.series[:-1]) | (step[1:] != step[:-1]), True]
    if is_last.all():
        return rows
    return Thinned(rows.series[is_last], rows.time_ms[is_last], rows.value[is_last])


def join(many: list[Thinned], sought: Sought) -> Thinned:
    """Pieces of one metric, in order of series and time; the pieces are given up, for a day of them is large."""
    joined = many[0] if len(many) == 1 else Thinned(*map(np.concatenate, zip(*many)))
    many.clear()
    series, time_ms, value = joined
    del joined
    order = np.lexsort((time_ms, series))
    series = series[order]
    time_ms = time_ms[order]
    value = value[order]
    return thin(Thinned(series, time_ms, value), sought)


# -- other files, and the tail --------------------------------------------------------


def read_others(
    sql: SqlReader, entries: Sequence[FileEntry], sought: Sought, metric: str, names: Names
) -> Iterator[Thinned]:
    """From an object store, or without a sidecar: series by series."""
    wanted = Wanted(metric, None, sought.scope, sought.span.from_ms, sought.span.to_ms)
    place = IDENTITY.index(column_of(sought.scope))
    for entry in entries:
        try:
            fetched = fetch_samples(sql, [entry], wanted)
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
