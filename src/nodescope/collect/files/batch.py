"""
One batch call reads a tier: descriptors, layouts and target columns in, arrays out.

A segment is one table's share of a tier. This is the plain Python reader, the
reference for ever; a native one may take its place behind `read_segments`
without any source noticing.

Per file the outcome is one of: ok, gone (the thing it belonged to is no
more), not offered (this kernel has no such thing), denied, unparsable, too
large, failed. What could not be read is NaN.
"""

import errno
import os
from array import array
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from sys import intern
from types import MappingProxyType
from typing import Protocol

import numpy as np

from nodescope.base.block import Block, Table, Values
from nodescope.base.clock import thread_cpu_ns
from nodescope.base.entity import Entity
from nodescope.base.errors import ParseError
from nodescope.base.text import clean_text
from nodescope.collect.files.fit import fit
from nodescope.collect.files.idle_rows import IdleRows, Mask
from nodescope.collect.files.layout import NAN, DeviceRows, GridLayout, Parser, plan_rows
from nodescope.collect.files.native import Native, NativeGrid
from nodescope.collect.files.roots import FILE_BYTES, Descriptors, NodeRoot
from nodescope.collect.files.still_files import StillFiles
from nodescope.collect.files.unchanged_parent import Numbers, UnchangedParents, WatchedFile
from nodescope.collect.run.guard import run_guarded

# ENODEV is what a descriptor of a removed cgroup answers, ESRCH one of a dead
# process; EOPNOTSUPP is what a kernel booted with psi=0 says.
GONE = frozenset({errno.ENODEV, errno.ESRCH})
NOT_OFFERED = frozenset({errno.ENOENT, errno.EOPNOTSUPP, errno.ENOTDIR})
DENIED = frozenset({errno.EACCES, errno.EPERM})
# PATH_MAX of linux/limits.h.
PATH_CHARACTERS = 4096


@dataclass(frozen=True, slots=True)
class FileFault:
    """Why a file gave no values in this reading."""

    path: str
    status: str
    text: str

    def __str__(self) -> str:
        return f"{self.path}: {self.text}"


def describe_fault(path: str, error: Exception) -> FileFault:
    # Tenants name cgroups, and faults are shown in /status and in the log.
    path = clean_text(path, PATH_CHARACTERS)
    if isinstance(error, ParseError):
        return FileFault(path, "unparsable", str(error))
    number = error.errno if isinstance(error, OSError) else None
    text = os.strerror(number).lower() if number else str(error)
    if number in GONE:
        return FileFault(path, "gone", text)
    if number in NOT_OFFERED:
        return FileFault(path, "not_offered", text)
    if number in DENIED:
        return FileFault(path, "denied", text)
    if number == errno.EFBIG:
        return FileFault(path, "too_large", text)
    return FileFault(path, "failed", text)


class ReadSegment(Protocol):
    """One table's share of a tier."""

    table: Table
    faults: list[FileFault]
    cost_ns: int

    def read(self) -> None:
        """Fill the values from the files; remember faults."""
        ...

    def block(self, mono_ns: int) -> Block | None:
        """What was read, as a block; None when there is nothing to tell."""
        ...

    def close(self) -> None: ...


def read_segments(segments: Iterable[ReadSegment]) -> None:
    """Read all files of the due segments; each segment learns its own cost."""
    before = thread_cpu_ns()
    for segment in segments:
        _, outcome = run_guarded(segment.table.source, segment.read, None)
        if outcome.state != "ok":
            segment.faults = [FileFault(segment.table.name, "raised", outcome.reason)]
        after = thread_cpu_ns()
        segment.cost_ns = after - before
        before = after


def read_again(descriptor: int, data: bytes, asked_bytes: int) -> bytes:
    """The rest of a file that filled the buffer; EFBIG beyond any sense."""
    parts = [data]
    offset = len(data)
    step = asked_bytes
    while offset <= FILE_BYTES:
        step = min(step * 4, 2**20)
        more = os.pread(descriptor, step, offset)
        if not more:
            return b"".join(parts)
        parts.append(more)
        offset += len(more)
    raise OSError(errno.EFBIG, os.strerror(errno.EFBIG))


# Descriptor (or -1), path, bytes to ask for, parser, first cell, cell behind the last.
Step = tuple[int, str, int, Parser, int, int]
Program = list[Step]


@dataclass(slots=True)
class GridEntry:
    """
    A file made ready: an open descriptor (or -1), and its layout.

    5,000 containers have 100,000 of these. What several share is one object.
    """

    descriptor: int
    folder: str
    name: str
    layout: GridLayout
    parent: str = ""
    """The file that tells whether this one may have changed."""

    @property
    def path(self) -> str:
        return f"{self.folder}/{self.name}" if self.folder else self.name


class FileGrid:
    """
    A segment with fixed rows: every file fills some columns of one row.

    Rows are added and removed as entities come and go; the entries of the
    others stay as they are, descriptors included.
    """

    def __init__(
        self,
        table: Table,
        layouts: tuple[GridLayout, ...],
        root: NodeRoot,
        descriptors: Descriptors,
        *,
        is_rare: bool = False,
    ) -> None:
        """`is_rare` where it is not read at every tick: others need their descriptors more."""
        self.table = table
        self._is_rare = is_rare
        self.faults: list[FileFault] = []
        self.cost_ns = 0
        self.readings = 0
        self._root = root
        self._descriptors = descriptors
        # One parser per layout, shared by all rows: what it remembers of one
        # cgroup's file holds for the next.
        self._parsers = {id(layout): layout.parser() for layout in layouts}
        self._native = NativeGrid(root.native, layouts) if root.native else None
        self._rows: dict[Entity, list[GridEntry]] = {}
        self._entities: tuple[Entity, ...] = ()
        # Where a layout's columns are: first, behind the last.
        self._spans = {
            id(layout): (first, first + len(layout.metrics))
            for layout in layouts
            for first in (table.columns[layout.metrics[0].name],)
        }
        self._entries: list[GridEntry] = []
        self._firsts = np.empty(0, dtype=np.int64)
        """Of every entry: the first cell of its row."""
        self._row_of = self._firsts
        self._slices: dict[int, slice] = {}
        """Where the entries of a layout are, by its id."""
        self._program: Program = []
        """The same for the plain reader, where it reads everything."""
        self._flat: Values = np.empty(0)
        self._before: dict[Entity, list[float]] = {}
        # The last reading of the set before, until this one has been read.
        self._former: tuple[tuple[Entity, ...], Values] = ((), np.empty(0))
        self._places: tuple[tuple[Entity, ...], dict[tuple[str, tuple[str, ...]], int]] = ((), {})
        self.width = len(table.metrics)
        self.gone_rows: set[int] = set()
        self._open_faults: dict[Entity, list[FileFault]] = {}
        self._parents = UnchangedParents(table.name, root, descriptors)
        self.idle_rows: IdleRows | None = None
        """Tells which rows need not be read, where another grid can."""
        self.still_files: StillFiles | None = None
        """Tells which files of a row need not be read, where others of the same row can."""
        self.seldom: Mapping[int, int] = {}
        """Layouts, by id, whose files are read only every so many readings: what is set and not measured."""
        self._reads_all = True

    @property
    def entities(self) -> tuple[Entity, ...]:
        """By row."""
        return self._entities

    def add(
        self,
        entity: Entity,
        files: Iterable[tuple[str, GridLayout]],
        parents: Mapping[str, str] = MappingProxyType({}),
    ) -> list[FileFault]:
        """
        Open an entity's files; those this node does not offer are left out.

        `parents` names, for some of them, a file that is unchanged while they are.
        """
        entries = []
        faults = []
        for path, layout in files:
            try:
                entries.append(self._open(path, layout, intern(parents.get(path, ""))))
            except OSError as error:
                fault = describe_fault(path, error)
                if fault.status not in ("not_offered", "gone"):
                    faults.append(fault)
        self._rows[entity] = entries
        if faults:
            self._open_faults[entity] = faults
        return faults

    def _open(self, path: str, layout: GridLayout, parent: str) -> GridEntry:
        # Below a parent that stands still a file is read every fifth tick, or more seldom.
        is_rare, is_seldom = self._is_rare or bool(parent), id(layout) in self.seldom
        descriptor = self._descriptors.keep(
            self.table.name, self._root.open(path), is_rare=is_rare, is_seldom=is_seldom
        )
        folder, _, name = path.rpartition("/")
        return GridEntry(descriptor, intern(folder), intern(name), layout, parent)

    def remove(self, entity: Entity) -> None:
        self._open_faults.pop(entity, None)
        for entry in self._rows.pop(entity, ()):
            self._descriptors.close(self.table.name, entry.descriptor)
        self._rows = fit(self._rows)

    def replace(self, old: Entity, new: Entity) -> None:
        """The same thing with other labels: its descriptors stay."""
        self._rows[new] = self._rows.pop(old)
        if old in self._open_faults:
            self._open_faults[new] = self._open_faults.pop(old)

    def arrange(self, entities: tuple[Entity, ...]) -> None:
        """Fix the order of the rows; call once after the set changed."""
        if len(self._flat):
            self._former = (self._entities, self._flat)
        self._entities = entities
        self._flat = np.empty(0)
        self._place()
        starts = np.array([self._spans[id(entry.layout)][0] for entry in self._entries], dtype=np.int64)
        cells = self._firsts + starts
        self._parents.arrange(WatchedFile(entry.parent, entry.layout) for entry in self._entries)
        if self._native:
            descriptors = np.array([entry.descriptor for entry in self._entries], dtype=np.int32)
            self._native.arrange_columns(descriptors, [entry.layout for entry in self._entries], cells)
        else:
            self._program = [self._step(number) for number in range(len(self._entries))]

    def _place(self) -> None:
        """The same file of all rows, then the next: the kernel's code for it is still at hand."""
        entries: dict[int, list[GridEntry]] = {layout: [] for layout in self._spans}
        firsts = {layout: array("q") for layout in self._spans}
        for number, entity in enumerate(self._entities):
            for entry in self._rows.get(entity, ()):
                entries[id(entry.layout)].append(entry)
                firsts[id(entry.layout)].append(number * self.width)
        order = sorted(self._spans, key=lambda layout: self._spans[layout])
        self._entries = [entry for layout in order for entry in entries[layout]]
        # Not one list of pairs: 100,000 small objects, made anew at every change, leave holes in the heap.
        joined = array("q")
        for layout in order:
            joined.extend(firsts[layout])
        self._firsts = np.array(joined, dtype=np.int64)
        self._row_of = self._firsts // self.width
        ends = np.cumsum([len(entries[layout]) for layout in order]).tolist()
        self._slices = {layout: slice(end - len(entries[layout]), end) for layout, end in zip(order, ends)}

    def _step(self, number: int) -> Step:
        """What the plain reader does with one file."""
        entry, first = self._entries[number], int(self._firsts[number])
        start, stop = self._spans[id(entry.layout)]
        parse = self._parsers[id(entry.layout)]
        return entry.descriptor, entry.path, entry.layout.read_bytes, parse, first + start, first + stop

    def read(self) -> None:
        wanted = self._choose()
        values, faults = self._begin(wanted is None), []
        if wanted is not None and self.still_files:
            # Those that tell whether the others stand still come first.
            first = self.still_files.pick_witnesses(wanted, self._slices)
            faults += self._read_files(values, first.nonzero()[0])
            before = self._flat.reshape(-1, self.width)
            self.still_files.leave_out(
                wanted, self._slices, self._row_of, before, values.reshape(-1, self.width)
            )
        faults += self._read_files(values, None if wanted is None else wanted.nonzero()[0])
        if self.still_files:
            before, now = self._flat.reshape(-1, self.width), values.reshape(-1, self.width)
            self.still_files.note(self._slices, before, now)
        if faults:
            self.read_all_next()
        # A file that could not be opened stays a fault as long as its row.
        self._keep(values, [fault for found in self._open_faults.values() for fault in found] + faults)

    def read_all_next(self) -> None:
        """Whatever parents and other grids say: every file is read by the next reading."""
        self._reads_all = True

    def _choose(self) -> Mask | None:
        """Which files must be read now; None when it is everything, and nothing is kept."""
        turn = self._parents.next_turn()
        idle = self.idle_rows.find(self._entities) if self.idle_rows else None
        reads_all, self._reads_all = self._reads_all, False
        # A set that was arranged anew has nothing to keep.
        if reads_all or not len(self._flat):
            return None
        if turn is None and idle is None and not self.seldom and not self.still_files:
            return None
        wanted = np.ones(len(self._entries), dtype=np.bool_) if turn is None else turn.copy()
        if idle is not None:
            wanted &= ~idle[self._row_of]
        for layout, period in self.seldom.items():
            place = self._slices.get(layout, slice(0))
            # Rows in turn, so that no reading has much more to do than the others; idle ones like the others.
            wanted[place] = (self._row_of[place] + self.readings) % period == 0
        return wanted

    def _begin(self, is_whole: bool) -> Values:
        """Cells before a reading: what a file said that is not read again stays true."""
        if not is_whole:
            return self._flat.copy()
        values = np.empty(len(self._entities) * self.width)
        values.fill(NAN)
        return values

    def _read_files(self, values: Values, files: Numbers | None) -> list[FileFault]:
        """Into their cells: all files, or those of these numbers. A cell that could not be read is NaN."""
        if not self._native:
            program = self._program if files is None else [self._program[number] for number in files.tolist()]
            return self._read_plainly(program, values)
        faults, undecided = [], []
        for number, code in self._native.read_into(values, files):
            step = self._step(number)
            if code > 0:
                values[step[4] : step[5]] = NAN
                faults.append(self._note(step[1], OSError(code, os.strerror(code)), step[4] // self.width))
            else:
                undecided.append(step)
        return faults + self._read_plainly(undecided, values)

    def _read_plainly(self, program: Program, cells: Values) -> list[FileFault]:
        """The reference reader: every file of a program into its cells."""
        faults = []
        pread = os.pread
        for descriptor, path, size, parse, start, stop in program:
            try:
                data = pread(descriptor, size, 0) if descriptor >= 0 else self._root.read(path)
                if len(data) == size and descriptor >= 0:
                    data = read_again(descriptor, data, size)
                cells[start:stop] = parse(data)
            except (OSError, ParseError) as error:
                cells[start:stop] = NAN
                faults.append(self._note(path, error, start // self.width))
        return faults

    def _keep(self, values: Values, faults: list[FileFault]) -> None:
        # Rows that are gone now keep their last good cells for an obituary: it comes before the next reading.
        gone = [self._entities[row] for row in self.gone_rows if row < len(self._entities)]
        self._before = {entity: row for entity in gone if (row := self._row(entity))}
        self._flat = values
        self.readings += 1
        self._former = ((), np.empty(0))
        if self._places[0] is not self._entities:
            # Thousands of containers may have gone with the set before.
            self._places = ((), {})
        self.faults = faults

    def _note(self, path: str, error: Exception, row: int) -> FileFault:
        fault = describe_fault(path, error)
        if fault.status == "gone" or (fault.status == "not_offered" and self._root.is_fixture is False):
            self.gone_rows.add(row)
        return fault

    def last_row(self, entity: Entity) -> dict[str, float]:
        """What the last readings knew of an entity; a cell that failed in the last comes from before."""
        values: dict[str, float] = {}
        for row in (self._before.get(entity), self._row(entity)):
            named = zip(self.table.metrics, row or ())
            values.update({metric.name: value for metric, value in named if value == value})  # noqa: PLR0124
        return values

    def _row(self, entity: Entity) -> list[float] | None:
        entities, flat = (self._entities, self._flat) if len(self._flat) else self._former
        known_entities, places = self._places
        if known_entities is not entities:
            # By what cannot change: its labels may have come since.
            places = {(known.scope, known.ids): number for number, known in enumerate(entities)}
            self._places = (entities, places)
        start = places.get((entity.scope, entity.ids), len(entities)) * self.width
        return [float(value) for value in flat[start : start + self.width]] or None

    def read_row(self, entity: Entity) -> list[float]:
        """One entity's values right now, outside the tick: for a last look."""
        values = [NAN] * self.width
        for entry in self._rows.get(entity, ()):
            try:
                data = (
                    os.pread(entry.descriptor, 65536, 0)
                    if entry.descriptor >= 0
                    else self._root.read(entry.path)
                )
                start, stop = self._spans[id(entry.layout)]
                values[start:stop] = self._parsers[id(entry.layout)](data)
            except (OSError, ParseError):
                continue
        return values

    def block(self, mono_ns: int) -> Block | None:
        return Block(self.table, self._entities, self.matrix(), mono_ns)

    def matrix(self) -> Values:
        """The last reading, one row an entity."""
        return self._flat.reshape(len(self._entities), self.width)

    def close(self) -> None:
        for entity in list(self._rows):
            self.remove(entity)
        self._parents.close()
        self._program = []
        self._entries = []
        self._entities = ()


@dataclass(slots=True)
class DeviceTable:
    """
    A segment whose rows are found in one file: disks, interfaces, cores.

    The tuple of entities is made anew only when the names in the file change.
    """

    table: Table
    path: str
    layout: DeviceRows
    name_entity: Callable[[str], Entity]
    root: NodeRoot
    limit: int
    faults: list[FileFault] = field(default_factory=list)
    cost_ns: int = 0
    dropped: int = 0
    _descriptor: int = -1
    _names: list[str] = field(default_factory=list)
    _entities: tuple[Entity, ...] = ()
    _values: Values = field(default_factory=lambda: np.empty((0, 0)))
    _native: NativeGrid | None = None
    """Knows the lines as they stood; None until a file was plain."""

    def open(self) -> None:
        self._descriptor = self.root.open(self.path)

    def read(self) -> None:
        if not self._read_natively():
            self._read_plainly()

    def _read_natively(self) -> bool:
        """Whether the lines stood where they stood before."""
        if self._native is None:
            return False
        shape = (len(self._names), len(self.table.metrics))
        values, unread = self._native.read(shape[0] * shape[1])
        if unread:
            return False
        self.faults = []
        self._values = values.reshape(shape)
        return True

    def _read_plainly(self) -> None:
        self.faults = []
        self._native = None
        data = b""
        try:
            size = self.layout.read_bytes
            data = os.pread(self._descriptor, size, 0)
            if len(data) == size:
                data = read_again(self._descriptor, data, size)
            names, rows = self.layout.parser()(data)
        except (OSError, ParseError) as error:
            self.faults.append(describe_fault(self.path, error))
            names, rows = [], []
        is_plain = not self.faults and len(set(names)) == len(names) <= self.limit
        if len(set(names)) != len(names):
            first = dict(reversed(list(zip(names, rows))))
            names, rows = list(first)[::-1], list(first.values())[::-1]
        # The first rows of the file stay, the rest is over the scope's limit.
        self.dropped = max(0, len(names) - self.limit)
        names, rows = names[: self.limit], rows[: self.limit]
        if names != self._names:
            self._names = names
            self._entities = tuple(self.name_entity(name) for name in names)
        self._values = np.array(rows, dtype=np.float64).reshape(len(rows), len(self.table.metrics))
        if is_plain and self.root.native:
            self._learn(self.root.native, data)

    def _learn(self, native: Native, data: bytes) -> None:
        plan = plan_rows(self.layout, data, self._names)
        if plan:
            self._native = NativeGrid(native, [plan])
            self._native.arrange([(self._descriptor, plan, 0)])

    def block(self, mono_ns: int) -> Block | None:
        return Block(self.table, self._entities, self._values, mono_ns)

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
            self._native = None
