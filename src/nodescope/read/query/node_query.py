"""
One query of one node, with one set of inputs: read, derived, put into buckets.

Pruned in this order: files by partition and sidecar (time, metric, container),
row groups by the statistics of metric_name and l_container_id. What is left is
read a few million rows at a time, derived, and put into buckets: memory
follows the answer, not the archive.
"""

from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import groupby, pairwise
from pathlib import Path

import numpy as np

from nodescope.base.block import Floats, Integers
from nodescope.base.errors import NodescopeError
from nodescope.base.log import Log
from nodescope.base.metric import Metric
from nodescope.base.time_range import TimeRange
from nodescope.keep.label_columns import LABELS, Identity, Subject
from nodescope.keep.parquet import first_line
from nodescope.keep.rollup import MINUTE_MS
from nodescope.read.files.derived_cache import DerivedCache
from nodescope.read.files.listing import FileEntry
from nodescope.read.files.rollups import Rollup, choose
from nodescope.read.live.tail import LiveTail
from nodescope.read.query.bucket import BucketGrid, Buckets, Points, Samples, make_buckets
from nodescope.read.query.derive import Carried, Chunk, SampleDeriver, join_chunks, pick
from nodescope.read.query.fetch import Fetched, Wanted, fetch_samples, list_scopes
from nodescope.read.query.metric_rows import ROWS_AT_ONCE, SMALL_ROWS, count_rows
from nodescope.read.query.minute_cells import (
    BucketTable,
    MinuteCells,
    derive_cells,
    gather_minutes,
)
from nodescope.read.query.minutes import (
    derive_minutes,
    derive_together,
    fetch_minutes,
    join_pieces,
    list_numbers,
)
from nodescope.read.query.resolve import Inputs, ResolvedMetric
from nodescope.read.query.row_reader import RowReader, RowSource, read_ahead
from nodescope.read.query.series_join import Targets
from nodescope.read.query.sql import SqlReader

log = Log("read")
# Rows decoded at once: some 100 MB with their labels.
BATCH_ROWS = 4_000_000
# A counter's first rate needs the sample before; slow tables come every 5 s,
# and a busy node's every 30 s.
LEAD_MS = 35_000
CONTAINER = LABELS.index("l_container_id")
SCOPE = LABELS.index("l_scope")
Sampled = dict[Identity, list[Chunk]]
CGROUPS = {"container", "service"}
# Rollups of hours that are derived together: of 100 containers and three metrics, some 20 MiB.
TOGETHER_MS = 3 * 3_600_000
# So few containers are read alone; of more, everything is kept for the next question.
FEW = 16


@dataclass(slots=True)
class NodeQuery:
    """One query of one node, with one set of inputs, while it is being answered."""

    reader: RowReader
    sql: SqlReader
    resolved: ResolvedMetric
    inputs: Inputs
    targets: Targets
    containers: Sequence[str] | None
    grid: BucketGrid
    cache: DerivedCache[MinuteCells]
    carried: dict[Identity, Carried] = field(default_factory=dict)
    """What each series brings along from the stretch before."""
    sums: dict[Identity, Buckets | Samples] = field(default_factory=dict)
    refused: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        # A pod's or core's series have no container id.
        is_any = self.containers is None or self.resolved.of
        self.containers = None if is_any else sorted(set(self.containers or ()))

    # -- files ----------------------------------------------------------------

    def read_files(self, entries: Sequence[FileEntry], rollups: Sequence[Rollup]) -> None:
        from_ms = self.grid.from_ms - LEAD_MS
        entries = [
            entry
            for entry in entries
            if entry.from_ms <= self.grid.to_ms and entry.to_ms >= from_ms and self._has(entry)
        ]
        scopes = list_scopes(entries, self.inputs[0].name)
        entries, rollups = choose(entries, rollups, self.grid.from_ms, self.grid.to_ms)
        if rollups:
            self._read_rollups(rollups, scopes)
        entries = self._leave_damaged(entries)
        for group in split_overlaps(entries):
            for is_kept, some in groupby(group, self._can_keep):
                mine = list(some)
                if is_kept:
                    self._read_minutes(mine)
                    continue
                for batch in self._container_batches(mine):
                    self._read_group(mine, batch)

    def _leave_damaged(self, entries: Sequence[FileEntry]) -> list[FileEntry]:
        """A file whose bytes changed is named, and not read."""
        found = list(zip(entries, read_ahead(FileEntry.find_damage, entries), strict=True))
        for damage in (damage for _, damage in found if damage):
            self.refused.append(damage)
            say_damage(damage)
        return [entry for entry, damage in found if not damage]

    # -- in minutes, which are kept ---------------------------------------------

    def _can_keep(self, entry: FileEntry) -> bool:
        """In whole minutes, of series that are not joined to others; a file of many days is read in parts instead."""
        if self.grid.width_ms < MINUTE_MS or self.resolved.of or not entry.is_local:
            return False
        scopes = {scope for metric in self.inputs for scope in list_scopes([entry], metric.name)}
        if self.containers is not None and not scopes <= CGROUPS:
            return False
        return entry.ticks() is not None and count_rows(entry, self.inputs[0].name) <= ROWS_AT_ONCE

    def _read_minutes(self, entries: Sequence[FileEntry]) -> None:
        """File by file in order of time; what is known of a file is not read again."""
        few = self._list_few()
        wanted = [self._wanted(metric, few, self.grid.from_ms - LEAD_MS) for metric in self.inputs]
        unknown = [entry for entry in entries if self._know_minutes(entry, few) is None]
        has_large = few is None and any(entry.rows > SMALL_ROWS for entry in unknown)
        with self.reader.turn if has_large else nullcontext():
            self._add_files(entries, few, RowSource(self.reader, wanted, unknown))

    def _add_files(
        self, entries: Sequence[FileEntry], few: Sequence[str] | None, source: "RowSource"
    ) -> None:
        table = BucketTable(self.grid, self.containers)
        for entry in entries:
            cells = self._know_minutes(entry, few)
            if cells is None or cells.before != [self.carried.get(one) for one in cells.identities]:
                cells = self._make_minutes(entry, few, source)
            else:
                self.carried.update(zip(cells.identities, cells.after))
            if cells is not None:
                table.add(cells)
        self._absorb(table)

    def _absorb(self, table: BucketTable) -> None:
        for identity, buckets in table.rows():
            known = self.sums.setdefault(identity, buckets)
            if known is not buckets and isinstance(known, Buckets):
                known.absorb(buckets)

    def _list_few(self) -> Sequence[str] | None:
        """The containers that are asked for, where they are few; else all are read."""
        return self.containers if self.containers is not None and len(self.containers) <= FEW else None

    def _know_minutes(self, entry: FileEntry, few: Sequence[str] | None) -> MinuteCells | None:
        if not self._is_inside(entry):
            return None
        names = (self._name_minutes([entry], one) for one in (few, None))
        return next((cells for name in names if (cells := self.cache.get(name))), None)

    def _is_inside(self, entry: FileEntry) -> bool:
        return self.grid.from_ms <= entry.from_ms and entry.to_ms <= self.grid.to_ms

    def _name_minutes(
        self, files: Sequence[FileEntry] | Sequence[Rollup], few: Sequence[str] | None
    ) -> Hashable:
        versions = tuple((file.path, file.mtime_ns) for file in files)
        names = tuple(metric.name for metric in self.inputs)
        asked = (self.resolved.form, self.resolved.factor, self.resolved.scope, names)
        return versions, asked, None if few is None else tuple(few)

    def _make_minutes(
        self, entry: FileEntry, few: Sequence[str] | None, source: "RowSource"
    ) -> MinuteCells | None:
        """None where the file cannot be read, which is named."""
        ticks = entry.ticks()
        try:
            pieces = source.take(entry)
        except NodescopeError as error:
            self.refused.append(
                f"{entry.path.name}: {first_line(error).removeprefix(f'{entry.path.name}: ')}"
            )
            return None
        is_inside = self._is_inside(entry)
        if not is_inside:
            ends = self.grid.from_ms - LEAD_MS, self.grid.to_ms
            pieces = [[one.within(*ends) for one in rows] for rows in pieces]
        if ticks is None:
            return None
        span = TimeRange(self.grid.from_ms, self.grid.to_ms)
        cells = derive_cells(pieces, ticks, self._make_deriver, self.carried, span)
        if is_inside:
            self.cache.put(self._name_minutes([entry], few), cells)
        return cells

    # -- in samples ---------------------------------------------------------------

    def _wanted(self, metric: Metric, containers: Sequence[str] | None, from_ms: int) -> Wanted:
        scope = self.resolved.of or self.resolved.scope
        return Wanted(metric.name, containers, scope, from_ms, self.grid.to_ms)

    # -- from rollups -------------------------------------------------------------

    def _read_rollups(self, rollups: Sequence[Rollup], scopes: set[str]) -> None:
        """Minutes instead of samples, the rollups of some hours together."""
        if self.resolved.of:
            self._join_rollups(rollups, scopes)
            return
        table = BucketTable(self.grid, self.containers)
        in_order = sorted(rollups, key=lambda one: one.from_ms)
        for _, some in groupby(in_order, lambda one: one.from_ms // TOGETHER_MS):
            self._add_rollups(table, list(some), scopes)
        self._absorb(table)

    def _add_rollups(self, table: BucketTable, rollups: Sequence[Rollup], scopes: set[str]) -> None:
        few = self._list_few()
        names = [self._name_minutes(rollups, one) for one in (few, None)]
        cells = self.cache.get(names[0]) or self.cache.get(names[1])
        if cells is None:
            inputs = self._fetch_rollups(rollups, scopes, few, (0, 2**42))
            if inputs is None:
                # One is broken: each alone, so that the others are served.
                for rollup in rollups if len(rollups) > 1 else ():
                    self._add_rollups(table, [rollup], scopes)
                return
            cells = gather_minutes(self._derive_rollups(inputs))
            self.cache.put(names[0], cells)
        table.add(cells)

    def _fetch_rollups(
        self,
        rollups: Sequence[Rollup],
        scopes: set[str],
        containers: Sequence[str] | None,
        span: tuple[int, int],
    ) -> list[Fetched] | None:
        """Of each input its minutes by series; None where one of the rollups is broken."""
        scope, form = self.resolved.of or self.resolved.scope, self.resolved.form
        return self._fetch(
            lambda place, metric: fetch_minutes(
                rollups, scopes, Wanted(metric.name, containers, scope, *span), list_numbers(form, place)
            ),
            [rollup.path for rollup in rollups],
        )

    def _derive_rollups(self, inputs: Sequence[Fetched]) -> dict[Identity, Points]:
        """By series."""
        form, factor = self.resolved.form, self.resolved.factor
        joined = [{key: join_pieces(pieces) for key, pieces in fetched.items()} for fetched in inputs]
        if len(joined) == 1:
            return derive_together(form, self.inputs, factor, joined[0])
        return {
            identity: derive_minutes(
                form, self.inputs, factor, first, [one.get(identity) for one in joined[1:]]
            )
            for identity, first in joined[0].items()
        }

    def _join_rollups(self, rollups: Sequence[Rollup], scopes: set[str]) -> None:
        """Of a pod or a node: its parts are added up minute by minute."""
        span = (self.grid.start_ms, self.grid.to_ms)
        inputs = self._fetch_rollups(rollups, scopes, self.containers, span)
        if inputs is None:
            for rollup in rollups if len(rollups) > 1 else ():
                self._join_rollups([rollup], scopes)
            return
        parts: dict[Identity, list[Points]] = {}
        for identity, minutes in self._derive_rollups(inputs).items():
            for target in self.targets.of(identity):
                parts.setdefault(target, []).append(minutes)
        for target, many in parts.items():
            self._add_minutes(target, self.targets.join_minutes(many))

    def _fetch(self, fetch: Callable[[int, Metric], Fetched], paths: Sequence[Path]) -> list[Fetched] | None:
        """Every input, by its place; None where a file is broken, which is named when it is the only one."""
        try:
            return [fetch(place, metric) for place, metric in enumerate(self.inputs)]
        except NodescopeError as error:
            if len(paths) == 1:
                name = paths[0].name
                self.refused.append(f"{name}: {first_line(error).removeprefix(f'{name}: ')}")
            return None

    def _add_minutes(self, target: Identity, minutes: Points) -> None:
        sums = self._sums_of(target)
        if isinstance(sums, Buckets):
            sums.add_summaries(minutes, self.targets.clip(target, minutes.time_ms))

    def _sums_of(self, target: Identity) -> Buckets | Samples:
        if target not in self.sums:
            grid = self.grid
            self.sums[target] = (
                make_buckets(grid.start_ms, grid.width_ms, grid.number) if grid.width_ms else Samples()
            )
        return self.sums[target]

    def _has(self, entry: FileEntry) -> bool:
        """Whether a sidecar says that there is something of it in the file."""
        if entry.sidecar is None:
            return True
        names = entry.sidecar.scopes()
        if not any(metric.name in names for metric in self.inputs):
            return False
        if self.containers is None:
            return True
        wanted = set(self.containers)
        return any(labels[CONTAINER] in wanted for labels, _ in entry.sidecar.labels())

    def _container_batches(self, entries: Sequence[FileEntry]) -> Iterator[Sequence[str] | None]:
        """Containers a few at a time, so that a batch is a few million rows; None for no filter."""
        if self.resolved.of or not entries:
            yield None
            return
        grid = self.grid
        first_ms, last_ms = max(grid.from_ms, entries[0].from_ms), min(grid.to_ms, entries[-1].to_ms)
        size = max(1, BATCH_ROWS // (max(1, (last_ms - first_ms) // 1000) * len(self.inputs)))
        wanted = self.containers
        if wanted is None:
            foreign = any(entry.sidecar is None for entry in entries)
            if foreign or list_scopes(entries, self.inputs[0].name) != {"container"}:
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

    def _read_group(self, entries: Sequence[FileEntry], containers: Sequence[str] | None) -> None:
        """All inputs of one stretch of time, then derived together."""
        from_ms = self.grid.from_ms - LEAD_MS
        fetched = self._fetch(
            lambda _, metric: self._fetch_samples(entries, self._wanted(metric, containers, from_ms)),
            [entry.path for entry in entries],
        )
        if fetched is None:
            for entry in entries if len(entries) > 1 else ():
                self._read_group([entry], containers)
            return
        clocks = self._clocks(entries)
        self._derive([to_chunks(one, clocks) for one in fetched])

    def _fetch_samples(self, entries: Sequence[FileEntry], wanted: Wanted) -> Fetched:
        ours = [entry for entry in entries if entry.is_local]
        others = [entry for entry in entries if not entry.is_local]
        fetched = fetch_samples(self.sql, others, wanted) if others else {}
        for rows in self.reader.read_all(ours, wanted):
            for identity, where in zip(rows.identities, rows.slices()):
                piece = {"time_ms": rows.time_ms[where], "value": rows.value[where]}
                fetched.setdefault(identity, []).append(piece)
        return fetched

    def _clocks(self, entries: Sequence[FileEntry]) -> "Clocks | None":
        """None: a gauge alone needs no monotonic clock."""
        ours = [entry for entry in entries if entry.sidecar is not None]
        return clocks_of(ours) if ours and self.resolved.form != "value" else None

    # -- the tail -------------------------------------------------------------

    def read_tail(self, tail: LiveTail) -> None:
        inputs: list[Sampled] = []
        for metric in self.inputs:
            sampled: Sampled = {}
            for subject, chunk in tail.chunks(metric.name):
                if self._wants(subject) and len(chunk.value):
                    first_ms = self.grid.from_ms - LEAD_MS
                    inside = (chunk.time_ms >= first_ms) & (chunk.time_ms <= self.grid.to_ms)
                    sampled.setdefault(subject.identity, []).append(pick(chunk, inside))
            inputs.append(sampled)
        self._derive(inputs)

    def _wants(self, subject: Subject) -> bool:
        scope = self.resolved.of or self.resolved.scope
        if scope and subject.label("l_scope") != scope:
            return False
        return self.containers is None or subject.label("l_container_id") in self.containers

    # -- deriving -------------------------------------------------------------

    def _derive(self, inputs: Sequence[Sampled]) -> None:
        parts: dict[Identity, list[tuple[Integers, Floats]]] = {}
        for identity, chunks in inputs[0].items():
            targets = self.targets.of(identity)
            if not targets:
                continue
            others = [join_chunks(sampled.get(identity, [])) for sampled in inputs[1:]]
            deriver = self._make_deriver(identity)
            time_ms, value = deriver.take((join_chunks(chunks), *others))
            self.carried[identity] = deriver.carried()
            inside = (time_ms >= self.grid.from_ms) & (time_ms <= self.grid.to_ms)
            if self.resolved.form != "value":
                inside &= ~np.isnan(value)
            if not inside.all():
                time_ms, value = time_ms[inside], value[inside]
            for target in targets if len(time_ms) else ():
                parts.setdefault(target, []).append((time_ms, value))
        for target, many in parts.items():
            time_ms, value = self.targets.join_samples(many)
            inside = self.targets.clip(target, time_ms)
            self._sums_of(target).add(time_ms[inside], value[inside])

    def _make_deriver(self, identity: Identity) -> SampleDeriver:
        """It goes on where the stretch before ended."""
        deriver = SampleDeriver(self.resolved.form, self.inputs, self.resolved.factor)
        if carried := self.carried.get(identity):
            deriver.carry(carried)
        return deriver

    def take_series(self, taken: set[Identity]) -> list[tuple[Subject, Points]]:
        """What was found and is not taken from a better input already."""
        found = []
        for target, sums in self.sums.items():
            points = sums.points()
            if target in taken or not len(points.time_ms):
                continue
            if self.grid.width_ms and not points.count.any():
                continue
            if self.grid.width_ms:
                points.time_ms[0] = max(self.grid.from_ms, points.time_ms[0])
            taken.add(target)
            found.append((self.targets.subject(target), points))
        return found


@lru_cache(maxsize=1024)
def say_damage(damage: str) -> None:
    """Once: a page asks for the same file every second."""
    log.warning("file not read", reason=damage)


# -- helpers ------------------------------------------------------------------------


def split_overlaps(entries: Sequence[FileEntry]) -> list[list[FileEntry]]:
    """
    Files that are read together: all, unless two overlap in time.

    They overlap where the clock was stepped back. Then each is read alone, in
    the order of the monotonic clock, so that a counter is followed as it grew.
    """
    in_order = sorted(entries, key=lambda entry: entry.from_ms)
    if all(later.from_ms > earlier.to_ms for earlier, later in pairwise(in_order)):
        return [in_order] if in_order else []
    return [[entry] for entry in sorted(in_order, key=first_moment)]


def first_moment(entry: FileEntry) -> int:
    ticks = entry.ticks()
    return int(ticks.mono_ns[0]) if ticks and len(ticks.mono_ns) else entry.from_ms * 1_000_000


@dataclass(frozen=True, slots=True)
class Clocks:
    """From wall time to monotonic time, over the files that are read together."""

    time_ms: Integers
    mono_ns: Integers

    def at(self, time_ms: Integers) -> Integers:
        if len(time_ms) == len(self.time_ms) and (time_ms == self.time_ms).all():
            return self.mono_ns
        places = np.clip(np.searchsorted(self.time_ms, time_ms), 0, len(self.time_ms) - 1)
        # Rows of a file that lost its sidecar are no ticks of these: they count from the nearest one.
        found: Integers = self.mono_ns[places] + (time_ms - self.time_ms[places]) * 1_000_000
        return found


def clocks_of(entries: Sequence[FileEntry]) -> Clocks:
    ticks = [one for one in (entry.ticks() for entry in entries) if one is not None]
    time_ms = np.concatenate([one.time_ms for one in ticks])
    mono_ns = np.concatenate([one.mono_ns for one in ticks])
    order = np.argsort(time_ms, kind="stable")
    return Clocks(time_ms[order], mono_ns[order])


def to_chunks(fetched: Fetched, clocks: Clocks | None) -> Sampled:
    found: Sampled = {}
    for identity, pieces in fetched.items():
        for piece in pieces:
            time_ms = piece["time_ms"]
            mono_ns = clocks.at(time_ms) if clocks else time_ms * 1_000_000
            found.setdefault(identity, []).append(Chunk(time_ms, mono_ns, piece["value"]))
    return found
