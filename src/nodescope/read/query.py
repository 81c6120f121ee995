"""
One question to the archive and the live tail: a metric, of whom, from when to when.

Pruned in this order: files by partition and sidecar (time, metric, container),
row groups by the statistics of metric_name and l_container_id, then by the
bloom filter; the last two by DuckDB, from the WHERE clause. What is left is
read a few million rows at a time, derived, and put into buckets: memory
follows the answer, not the archive.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nodescope.base.errors import ArchiveRefused, NodescopeError, RequestRejected
from nodescope.base.metric import Metric
from nodescope.keep.series import ID_COLUMNS, IDENTITY, LABELS, Identity, Subject, identify
from nodescope.read.bucket import Buckets, Points, Samples
from nodescope.read.catalog import Catalog, Entry
from nodescope.read.derive import NOTHING, Chunk, Deriver
from nodescope.read.foreign import read_shape
from nodescope.read.resolve import Asked, Rate, resolve_metric
from nodescope.read.rollups import WIDTH_MS, Rollup, choose, find_rollups
from nodescope.read.tail import Tail

Integers = NDArray[np.int64]
# Rows decoded at once: some 100 MB with their strings.
BATCH_ROWS = 4_000_000
# A counter's first rate needs the sample before; slow tables come every 5 s,
# and a busy node's every 30 s.
LEAD_MS = 35_000
CONTAINER = LABELS.index("l_container_id")
SCOPE = LABELS.index("l_scope")


@dataclass(slots=True)
class Line:
    """One series of an answer."""

    subject: Subject
    points: Points


@dataclass(slots=True)
class Answer:
    """Series, the width of a bucket (0: samples as they are), and what could not be read."""

    asked: Asked
    from_ms: int
    to_ms: int
    width_ms: int
    lines: list[Line]
    refused: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Engine:
    """A DuckDB in memory, shared by questions; it holds no data."""

    connection: duckdb.DuckDBPyConnection = field(default_factory=duckdb.connect)

    def __post_init__(self) -> None:
        self.connection.execute("SET TimeZone = 'UTC'")
        # Footers of files seen before are not parsed again.
        self.connection.execute("SET parquet_metadata_cache = true")

    def query(
        self,
        catalog: Catalog,
        metric: str,
        containers: Sequence[str] | None = None,
        from_ms: int | None = None,
        to_ms: int | None = None,
        max_points: int = 1000,
        rate: Rate = "auto",
        tail: Tail | None = None,
    ) -> Answer:
        """Full container ids, or None for all; times default to all there is."""
        known = {**catalog.metrics, **(tail.metrics if tail else {})}
        asked = resolve_metric(metric, known, rate)
        first, last = whole_range(catalog, tail)
        from_ms = first if from_ms is None else from_ms
        to_ms = last if to_ms is None else to_ms
        if from_ms > to_ms:
            raise RequestRejected(f"the range ends ({to_ms} ms) before it begins ({from_ms} ms)")
        if max_points < 1:
            raise RequestRejected(f"max_points = {max_points} is not accepted; accepted: 1 or more")
        work = Work(self, asked, containers, from_ms, to_ms, max_points)
        work.read_files(catalog)
        if tail:
            work.read_tail(tail)
        return work.answer()


def whole_range(catalog: Catalog, tail: Tail | None) -> tuple[int, int]:
    ends = [catalog.to_ms, tail.to_ms if tail else None]
    starts = [catalog.from_ms, min((min(day.clocks) for day in tail.days), default=None) if tail else None]
    found = [one for one in starts if one is not None], [one for one in ends if one is not None]
    if not found[0] or not found[1]:
        raise RequestRejected("there is no data here yet")
    return min(found[0]), max(found[1])


Sampled = dict[Identity, list[Chunk]]


class Work:
    """One question being answered."""

    def __init__(
        self,
        engine: Engine,
        asked: Asked,
        containers: Sequence[str] | None,
        from_ms: int,
        to_ms: int,
        max_points: int,
    ) -> None:
        self.engine = engine
        self.asked = asked
        self.containers = None if containers is None else sorted(set(containers))
        self.from_ms, self.to_ms = from_ms, to_ms
        span_ms = to_ms - from_ms + 1
        # One sample a second is the rule; fewer samples than points stay as they are.
        self.width_ms = 0 if span_ms <= max_points * 1000 else math.ceil(span_ms / max_points)
        self.number = math.ceil(span_ms / self.width_ms) if self.width_ms else 0
        self.derivers: dict[Identity, Deriver] = {}
        self.sums: dict[Identity, Buckets | Samples] = {}
        self.subjects: dict[Identity, Subject] = {}
        self.refused: list[str] = []
        self.pods: set[str] | None = None

    # -- files ----------------------------------------------------------------

    def read_files(self, catalog: Catalog) -> None:
        entries = [entry for entry in catalog.select(self.from_ms - LEAD_MS, self.to_ms) if self._has(entry)]
        if self.asked.by_pod and self.containers is not None:
            wanted = set(self.containers)
            self.pods = {
                one.label("l_pod_uid") or ""
                for one in catalog.containers()
                if one.label("l_container_id") in wanted
            }
        if self._may_use_rollups():
            rollups = find_rollups(catalog.paths, self.from_ms - LEAD_MS, self.to_ms)
            entries, rollups = choose(entries, rollups)
            for rollup in rollups:
                self._read_rollup(rollup)
        for group in split_overlaps(entries):
            for batch in self._container_batches(group):
                self._read_group(group, batch)

    def _may_use_rollups(self) -> bool:
        return self.width_ms >= WIDTH_MS and self.asked.form in ("value", "rate") and not self.asked.by_pod

    def _read_rollup(self, rollup: Rollup) -> None:
        """Minutes instead of samples: exact for a gauge's buckets, a minute's mean for a rate."""
        metric = self.asked.metrics[0]
        where = [f"metric_name = {quote(metric.name)}"]
        if self.containers is not None:
            where.append(f"l_container_id IN ({', '.join(map(quote, self.containers))})")
        numbers = 'epoch_ms("time") AS time_ms, "last" AS value, "min", "max", "mean", "count"'
        question = (
            f"SELECT {numbers}, {', '.join(LABELS)} FROM read_parquet({quote(str(rollup.path))}) "  # noqa: S608
            f"WHERE {' AND '.join(where)}"
        )
        try:
            table = run_arrow(self.engine.connection, question)
        except ArchiveRefused as error:
            self.refused.append(f"{rollup.path.name}: {error}")
            return
        for labels, rows in split_series(table):
            subject = Subject(labels)
            self.subjects.setdefault(subject.identity, subject)
            self._add_minutes(subject.identity, rows)

    def _add_minutes(self, identity: Identity, rows: pa.Table) -> None:
        columns = {
            name: rows.column(name).to_numpy() for name in ("time_ms", "value", "min", "max", "mean", "count")
        }
        sums = self._sums_of(identity)
        scale = self.asked.metrics[0].scale * self.asked.factor
        time_ms = columns["time_ms"]
        if self.asked.form == "rate":
            # A counter's last sample of a minute lies in its last second.
            chunk = Chunk(time_ms, time_ms * 1_000_000, columns["value"])
            _, value = self.derivers[identity].take((chunk,))
            inside = (time_ms >= self.from_ms) & (time_ms <= self.to_ms)
            sums.add(time_ms[inside], value[inside])
        elif isinstance(sums, Buckets):
            low, high, mean = (columns[name] * scale for name in ("min", "max", "mean"))
            sums.add_summaries(time_ms, low, high, mean, columns["count"])

    def _sums_of(self, identity: Identity) -> Buckets | Samples:
        if identity not in self.sums:
            asked = self.asked
            self.derivers[identity] = Deriver(asked.form, asked.metrics, asked.factor)
            self.sums[identity] = (
                Buckets(self.from_ms, self.width_ms, self.number) if self.width_ms else Samples()
            )
        return self.sums[identity]

    def _has(self, entry: Entry) -> bool:
        """Whether a sidecar says that there is something of it in the file."""
        if entry.sidecar is None:
            return True
        names = entry.sidecar.scopes()
        if not any(metric.name in names for metric in self.asked.metrics):
            return False
        if self.containers is None or self.asked.by_pod:
            return True
        wanted = set(self.containers)
        return any(labels[CONTAINER] in wanted for labels, _ in entry.sidecar.labels())

    def _container_batches(self, entries: Sequence[Entry]) -> Iterator[list[str] | None]:
        """Containers a few at a time, so that a batch is a few million rows; None for no filter."""
        if self.asked.by_pod or not entries:
            yield None
            return
        seconds = max(1, (min(self.to_ms, entries[-1].to_ms) - max(self.from_ms, entries[0].from_ms)) // 1000)
        size = max(1, BATCH_ROWS // (seconds * len(self.asked.metrics)))
        wanted = self.containers
        if wanted is None:
            if any(entry.sidecar is None for entry in entries) or not self._is_of_containers(entries):
                yield None
                return
            wanted = sorted(
                {
                    labels[CONTAINER] or ""
                    for entry in entries
                    if entry.sidecar
                    for labels, _ in entry.sidecar.labels()
                    if labels[SCOPE] == "container"
                }
            )
        if len(wanted) <= size and self.containers is None:
            yield None
            return
        for start in range(0, len(wanted), size):
            yield wanted[start : start + size]

    def _is_of_containers(self, entries: Sequence[Entry]) -> bool:
        scopes = {
            scope
            for entry in entries
            if entry.sidecar
            for scope in entry.sidecar.scopes().get(self.asked.metrics[0].name, ())
        }
        return scopes == {"container"}

    def _read_group(self, entries: Sequence[Entry], containers: list[str] | None) -> None:
        """All inputs of one stretch of time, then derived together."""
        try:
            inputs = [self._fetch(entries, metric, containers) for metric in self.asked.metrics]
        except (duckdb.Error, pa.ArrowException, NodescopeError) as error:
            if len(entries) == 1:
                self.refused.append(f"{entries[0].path.name}: {str(error).splitlines()[0]}")
                return
            # One file is broken: each alone, so that the others are served.
            for entry in entries:
                self._read_group([entry], containers)
            return
        self._derive(inputs)

    def _fetch(self, entries: Sequence[Entry], metric: Metric, containers: list[str] | None) -> Sampled:
        ours = [entry for entry in entries if entry.sidecar is not None]
        sampled: Sampled = {}
        if ours:
            columns = identity_columns(ours, metric.name)
            if columns:
                table = self._select(ours, metric.name, containers, columns)
                gather(sampled, table, columns, clocks_of(ours), self._subject_lookup(ours, columns))
        for entry in entries:
            if entry.sidecar is None:
                table = self._select_foreign(entry, metric.name, containers)
                gather(sampled, table, IDENTITY, None, None)
        return sampled

    def _select(
        self, entries: Sequence[Entry], metric: str, containers: list[str] | None, columns: Sequence[str]
    ) -> pa.Table:
        if entries[0].remote:
            return self._select_remote(entries, metric, containers, columns)
        where = [f"metric_name = {quote(metric)}"]
        if containers is not None:
            where.append(f"l_container_id IN ({', '.join(map(quote, containers))})")
        where += self._time_clause(entries, "TIMESTAMPTZ", "+00")
        question = (
            f"SELECT epoch_ms(time) AS time_ms, value, {', '.join(columns)} "  # noqa: S608 - names of ours, values quoted
            f"FROM read_parquet([{', '.join(quote(str(entry.path)) for entry in entries)}]) "
            f"WHERE {' AND '.join(where)}"
        )
        return run_arrow(self.engine.connection, question)

    def _select_remote(
        self, entries: Sequence[Entry], metric: str, containers: list[str] | None, columns: Sequence[str]
    ) -> pa.Table:
        """From an object store, file by file; the same rows in the same order."""
        span = (self.from_ms - LEAD_MS, self.to_ms)
        tables = [
            entry.remote.select(metric, containers, columns, *span) for entry in entries if entry.remote
        ]
        filled = [table for table in tables if table.num_rows]
        return pa.concat_tables(filled) if filled else tables[0]

    def _select_foreign(self, entry: Entry, metric: str, containers: list[str] | None) -> pa.Table:
        shape = read_shape(entry.path)
        where = [f"metric_name = {quote(metric)}", *self._time_clause([entry], "TIMESTAMP", "")]
        if containers is not None:
            where.append(f"{shape.label('l_container_id')} IN ({', '.join(map(quote, containers))})")
        columns = ", ".join(f"{shape.label(name)} AS {name}" for name in IDENTITY)
        question = (
            f"SELECT epoch_ms(time) AS time_ms, {shape.value()} AS value, {columns} "  # noqa: S608
            f"FROM read_parquet({quote(str(entry.path))}) WHERE {' AND '.join(where)} ORDER BY ALL"
        )
        table = run_arrow(self.engine.connection, question)
        return table.select(["time_ms", "value", *IDENTITY])

    def _time_clause(self, entries: Sequence[Entry], kind: str, zone: str) -> list[str]:
        """Nothing where the files lie within the range as a whole."""
        clauses = []
        from_ms = self.from_ms - LEAD_MS
        if min(entry.from_ms for entry in entries) < from_ms:
            clauses.append(f"time >= {kind} '{render_moment(from_ms)}{zone}'")
        if max(entry.to_ms for entry in entries) > self.to_ms:
            clauses.append(f"time <= {kind} '{render_moment(self.to_ms)}{zone}'")
        return clauses

    def _subject_lookup(
        self, entries: Sequence[Entry], columns: Sequence[str]
    ) -> dict[tuple[str | None, ...], Identity]:
        """From the columns that were selected to the whole identity."""
        places = [LABELS.index(name) for name in columns]
        found: dict[tuple[str | None, ...], Identity] = {}
        seen: set[int] = set()
        for entry in entries:
            rows = entry.sidecar.labels() if entry.sidecar else ()
            if id(rows) in seen:
                continue
            seen.add(id(rows))
            for labels, details in rows:
                identity = identify(labels)
                found[tuple(labels[place] for place in places)] = identity
                self.subjects[identity] = Subject(labels, details)
        return found

    # -- the tail -------------------------------------------------------------

    def read_tail(self, tail: Tail) -> None:
        inputs: list[Sampled] = []
        for metric in self.asked.metrics:
            sampled: Sampled = {}
            for subject, chunk in tail.chunks(metric.name):
                if self._wants(subject) and len(chunk.value):
                    self.subjects.setdefault(subject.identity, subject)
                    inside = (chunk.time_ms >= self.from_ms - LEAD_MS) & (chunk.time_ms <= self.to_ms)
                    cut = Chunk(chunk.time_ms[inside], chunk.mono_ns[inside], chunk.value[inside])
                    sampled.setdefault(subject.identity, []).append(cut)
            inputs.append(sampled)
        self._derive(inputs)

    def _wants(self, subject: Subject) -> bool:
        if self.containers is None:
            return True
        if self.asked.by_pod:
            return self.pods is None or (subject.label("l_pod_uid") or "") in self.pods
        return subject.label("l_container_id") in self.containers

    # -- deriving -------------------------------------------------------------

    def _derive(self, inputs: Sequence[Sampled]) -> None:
        for identity, chunks in inputs[0].items():
            if self.pods is not None and identity[IDENTITY.index("l_pod_uid")] not in self.pods:
                continue
            others = [join(sampled.get(identity, [])) for sampled in inputs[1:]]
            sums = self._sums_of(identity)
            time_ms, value = self.derivers[identity].take((join(chunks), *others))
            inside = (time_ms >= self.from_ms) & (time_ms <= self.to_ms)
            if self.asked.form != "value":
                inside &= ~np.isnan(value)
            if inside.any():
                sums.add(time_ms[inside], value[inside])

    def answer(self) -> Answer:
        lines = []
        for identity, sums in self.sums.items():
            points = sums.points()
            if len(points.time_ms) and (self.width_ms == 0 or points.count.any()):
                lines.append(Line(self.subjects.get(identity) or bare_subject(identity), points))
        lines.sort(key=lambda line: line.subject.identity)
        return Answer(self.asked, self.from_ms, self.to_ms, self.width_ms, lines, self.refused)


# -- helpers ------------------------------------------------------------------------


def bare_subject(identity: Identity) -> Subject:
    known = dict(zip(IDENTITY, identity))
    return Subject(tuple(known.get(name) or None for name in LABELS))


def quote(text: str) -> str:
    """A string literal of SQL."""
    return "'" + text.replace("'", "''") + "'"


def render_moment(time_ms: int) -> str:
    return datetime.fromtimestamp(time_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]


def run_arrow(connection: duckdb.DuckDBPyConnection, question: str) -> pa.Table:
    try:
        return connection.cursor().sql(question).to_arrow_table()
    except duckdb.Error as error:
        raise ArchiveRefused(str(error).splitlines()[0]) from error


def split_overlaps(entries: Sequence[Entry]) -> list[list[Entry]]:
    """
    Stretches that are read together: all files, unless two overlap in time.

    They overlap where the clock was stepped back. Then each is read alone, in
    the order of the monotonic clock, so that a counter is followed as it grew.
    """
    in_order = sorted(entries, key=lambda entry: entry.from_ms)
    if all(later.from_ms > earlier.to_ms for earlier, later in pairwise(in_order)):
        return [in_order] if in_order else []
    return [[entry] for entry in sorted(in_order, key=first_moment)]


def first_moment(entry: Entry) -> int:
    ticks = entry.ticks()
    return int(ticks.mono_ns[0]) if ticks and len(ticks.mono_ns) else entry.from_ms * 1_000_000


def identity_columns(entries: Sequence[Entry], metric: str) -> list[str]:
    """The columns that tell this metric's series apart, by the scopes it has."""
    scopes = {scope for entry in entries if entry.sidecar for scope in entry.sidecar.scopes().get(metric, ())}
    wanted = {column for scope in scopes for column in ID_COLUMNS.get(scope, ("l_device",))}
    if len(scopes) > 1 or not wanted or scopes == {"node"}:
        wanted.add("l_scope")
    return [name for name in IDENTITY if name in wanted] if scopes else []


@dataclass(frozen=True, slots=True)
class Clocks:
    """Wall time to monotonic time for a stretch."""

    time_ms: Integers
    mono_ns: Integers

    def at(self, time_ms: Integers) -> Integers:
        places = np.clip(np.searchsorted(self.time_ms, time_ms), 0, len(self.time_ms) - 1)
        found: Integers = self.mono_ns[places]
        return found


def clocks_of(entries: Sequence[Entry]) -> Clocks:
    ticks = [one for one in (entry.ticks() for entry in entries) if one is not None]
    time_ms = np.concatenate([one.time_ms for one in ticks])
    mono_ns = np.concatenate([one.mono_ns for one in ticks])
    order = np.argsort(time_ms, kind="stable")
    return Clocks(time_ms[order], mono_ns[order])


def gather(
    sampled: Sampled,
    table: pa.Table,
    columns: Sequence[str],
    clocks: Clocks | None,
    lookup: dict[tuple[str | None, ...], Identity] | None,
) -> None:
    """A table in the order of the files, cut into series; each stays in order of time."""
    if not table.num_rows:
        return
    codes = []
    words: list[list[str | None]] = []
    for name in columns:
        encoded = table.column(name).combine_chunks()
        if not isinstance(encoded, pa.DictionaryArray):
            encoded = encoded.dictionary_encode()
        codes.append(encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False))
        words.append([*encoded.dictionary.to_pylist(), None])
    time_ms = table.column("time_ms").to_numpy()
    value = table.column("value").to_numpy()
    if table.column("value").null_count:
        value = np.where(table.column("value").is_null().to_numpy(), np.inf, value)
    changed = np.zeros(len(time_ms), bool)
    changed[0] = True
    for code in codes:
        changed[1:] |= code[1:] != code[:-1]
    starts = np.flatnonzero(changed)
    mono_ns = clocks.at(time_ms) if clocks else time_ms * 1_000_000
    for start, end in zip(starts.tolist(), [*starts[1:].tolist(), len(time_ms)]):
        labels = tuple(word[code[start]] for word, code in zip(words, codes))
        identity = lookup.get(labels) if lookup is not None else tuple(label or "" for label in labels)
        if identity is None:
            identity = spread(columns, labels)
        chunk = Chunk(time_ms[start:end], mono_ns[start:end], value[start:end])
        sampled.setdefault(identity, []).append(chunk)


def split_series(table: pa.Table) -> Iterator[tuple[tuple[str | None, ...], pa.Table]]:
    """A rollup's rows by series; they lie together."""
    if not table.num_rows:
        return
    columns = [table.column(name).combine_chunks().dictionary_encode() for name in LABELS]
    changed = np.zeros(table.num_rows, bool)
    changed[0] = True
    for column in columns:
        code = column.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        changed[1:] |= code[1:] != code[:-1]
    starts = np.flatnonzero(changed).tolist()
    for start, end in zip(starts, [*starts[1:], table.num_rows]):
        yield tuple(column[start].as_py() for column in columns), table.slice(start, end - start)


def spread(columns: Sequence[str], labels: Sequence[str | None]) -> Identity:
    known = dict(zip(columns, labels))
    return tuple(known.get(name) or "" for name in IDENTITY)


def join(chunks: Sequence[Chunk]) -> Chunk:
    """Pieces of one series, in order of the monotonic clock."""
    if not chunks:
        return NOTHING
    if len(chunks) == 1:
        return chunks[0]
    joined = Chunk(
        np.concatenate([chunk.time_ms for chunk in chunks]),
        np.concatenate([chunk.mono_ns for chunk in chunks]),
        np.concatenate([chunk.value for chunk in chunks]),
    )
    if (np.diff(joined.mono_ns) < 0).any():
        order = np.argsort(joined.mono_ns, kind="stable")
        return Chunk(joined.time_ms[order], joined.mono_ns[order], joined.value[order])
    return joined


def table_of(answer: Answer) -> Iterable[dict[str, Any]]:
    """Rows for export and JSON: time, value and the labels that apply."""
    for line in answer.lines:
        labels = {name.removeprefix("l_"): value for name, value in zip(LABELS, line.subject.labels) if value}
        points = line.points
        for place in range(len(points.time_ms)):
            yield {
                "time_ms": int(points.time_ms[place]),
                "min": float(points.minimum[place]),
                "mean": float(points.mean[place]),
                "max": float(points.maximum[place]),
                "count": int(points.count[place]),
                **labels,
            }
