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

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from nodescope.base.errors import NodescopeError
from nodescope.base.time_range import TimeRange
from nodescope.keep.label_columns import IDENTITY, LABELS
from nodescope.keep.rollup import MINUTE_MS
from nodescope.read.files.catalog import Catalog
from nodescope.read.files.listing import FileEntry
from nodescope.read.files.rollups import Rollup, choose, find_rollups
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
    """Of one node; a file that cannot be read is left out, as a file that is not there."""
    entries = catalog.select(sought.span.from_ms, sought.span.to_ms)
    names = Names(list_words(entries, sought.scope))
    minutes: list[Rollup] = []
    if sought.step_ms >= MINUTE_MS:
        found = find_rollups(catalog.paths, sought.span.from_ms, sought.span.to_ms)
        entries, minutes = choose(entries, found)
    ours = leave_damaged([entry for entry in entries if entry.is_local])
    others = [entry for entry in entries if not entry.is_local]
    samples = {}
    for metric in sought.metrics:
        pieces = [
            *read_files(engine, ours, sought, metric, names),
            *read_rollups(engine, minutes, sought, metric, names),
            *read_others(engine.sql, others, sought, metric, names),
            *read_tail(tail, sought, metric, names),
        ]
        if pieces:
            samples[metric] = join(pieces, sought)
        engine.reader.give_back()
    return Sweep(names.words, samples)


def leave_damaged(entries: Sequence[FileEntry]) -> list[FileEntry]:
    checked = zip(entries, read_ahead(FileEntry.find_damage, entries), strict=True)
    return [entry for entry, damage in checked if not damage]


def read_files(
    engine: Engine, entries: Sequence[FileEntry], sought: Sought, metric: str, names: "Names"
) -> Iterator[Thinned]:
    """File by file; what was read of one is kept."""

    def sweep(entry: FileEntry) -> FileSweep | None:
        return keep_sweep(
            engine, entry, sought, metric, lambda: sweep_file(engine.reader, entry, sought, metric)
        )

    mine = [entry for entry in entries if has_metric(entry, sought.scope, metric)]
    for found in read_ahead(sweep, mine):
        if found is not None:
            yield take_span(found, sought.span, names)


def read_rollups(
    engine: Engine, rollups: Sequence[Rollup], sought: Sought, metric: str, names: "Names"
) -> Iterator[Thinned]:
    """The minutes that begin in the span."""
    span = TimeRange(sought.span.from_ms + LAST_MS, sought.span.to_ms + LAST_MS)

    def sweep(rollup: Rollup) -> FileSweep | None:
        return keep_sweep(engine, rollup, sought, metric, lambda: sweep_rollup(rollup, sought, metric))

    for found in read_ahead(sweep, rollups):
        if found is not None and len(found.words):
            yield take_span(found, span, names)


def keep_sweep(
    engine: Engine, file: FileEntry | Rollup, sought: Sought, metric: str, make: Callable[[], FileSweep]
) -> FileSweep | None:
    """None where the file cannot be read."""
    try:
        key = name_sweep(file, sought, metric)
        found = engine.sweeps.get(key)
        if found is None:
            found = make()
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
