"""
What there is to ask: archives of one or many nodes, each with its live tail.

A snapshot does not change; asking for the next one looks at the folders and
the agent again, at most once a second. Every node has a catalog of its own:
two nodes' clocks and counters have nothing to do with each other.
"""

import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from nodescope.base.clock import Clock
from nodescope.base.findings.annotation import Annotation
from nodescope.base.metric import Metric
from nodescope.base.time_range import TimeRange
from nodescope.read.files.annotations import AnnotationFiles
from nodescope.read.files.catalog import Catalog
from nodescope.read.files.given_paths import check_given, find_folders
from nodescope.read.files.listing import FileEntry, FileListing, Refusal, list_files
from nodescope.read.live.follow import AgentFeed, FrameStream, LogFeed, join_streams, last_sights, make_tail
from nodescope.read.live.tail import LiveTail
from nodescope.read.query.engine import Engine, QueryResult
from nodescope.read.query.resolve import Rate
from nodescope.read.series_name import Identity, Subject
from nodescope.use.answers.containers import Life, make_life
from nodescope.use.answers.ranked.recorded import Recorded, find_stretches, make_recorded

if TYPE_CHECKING:
    # Arrow's file systems are loaded where a store was named.
    from nodescope.read.files.store_listing import StoreListing

LOOK_NS = 1_000_000_000
# Sooner where a log has grown: a sample is written at any part of a second.
NEWS_NS = 250_000_000
# New files come every 90 s; the folder of a busy archive takes some milliseconds to list.
LIST_NS = 3_000_000_000
# Live means that a sample came within this: three ticks, and a busy machine's breath.
LIVE_MS = 5_000
RECENT_SECONDS = 60
NO_FILES = Catalog((), ())


@dataclass
class ServedNode:
    """One node as it is now."""

    name: str
    catalog: Catalog
    tail: LiveTail
    gone: str = ""
    """Why its live tail is not there; empty where it is, or where none was wanted."""
    streams: Mapping[str, FrameStream] = field(default_factory=dict)
    notes: tuple[Annotation, ...] = ()
    """What people and programs noted about its data, in order of time."""

    @cached_property
    def recent(self) -> LiveTail:
        """The last minute of the feeds alone, whether or not the archive has it by now."""
        return make_tail(
            {run: stream.newest(RECENT_SECONDS) for run, stream in self.streams.items()}, NO_FILES
        )

    @property
    def from_ms(self) -> int | None:
        firsts = [self.catalog.from_ms, *(min(day.clocks) for day in self.tail.days if day.clocks)]
        return min((first for first in firsts if first is not None), default=None)

    @property
    def to_ms(self) -> int | None:
        return max((end for end in (self.catalog.to_ms, self.tail.to_ms) if end is not None), default=None)

    def stretches(self, span: TimeRange) -> list[TimeRange]:
        """Of the span, when it was recorded."""
        return find_stretches(self.catalog, self.tail, span)

    def recorded(self, span: TimeRange) -> Recorded:
        return make_recorded(span, self.stretches(span))

    @cached_property
    def metrics(self) -> dict[str, Metric]:
        return {**self.catalog.metrics, **self.tail.metrics}

    @cached_property
    def scopes(self) -> dict[str, set[str]]:
        """By raw metric: what it is measured of."""
        found: dict[str, set[str]] = {}
        seen: set[int] = set()
        for entry in self.catalog.entries:
            scopes = entry.sidecar.scopes() if entry.sidecar else {}
            if id(scopes) not in seen:
                seen.add(id(scopes))
                for name, words in scopes.items():
                    found.setdefault(name, set()).update(words)
            if entry.sidecar is None:
                for name in self.catalog.metrics:
                    found.setdefault(name, set()).add("container")
        for day in self.tail.days:
            for track in day.tracks.values():
                there = {entity.scope for entity in track.blocks[-1].entities}
                for metric in track.blocks[0].table.metrics:
                    found.setdefault(metric.name, set()).update(there)
        return found

    @cached_property
    def subjects(self) -> dict[Identity, Subject]:
        """Everything with rows, first and last sight over archive and tail."""
        found = dict(self.catalog.subjects)
        seen = last_sights(self.tail)
        for identity, subject in self.tail.subjects.items():
            # The tail's and the catalog's own are shared with later snapshots.
            sight = replace(subject, last_ms=max(seen.get(identity, 0), subject.last_ms))
            if identity in found:
                whole = replace(found[identity])
                whole.learn(sight)
                sight = whole
            found[identity] = sight
        return found

    @cached_property
    def listed(self) -> list[Subject]:
        """Containers; where there are none, services."""
        containers = [one for one in self.subjects.values() if one.label("l_scope") == "container"]
        return containers or [one for one in self.subjects.values() if one.label("l_scope") == "service"]


@dataclass(frozen=True)
class Snapshot:
    """All nodes at one moment."""

    nodes: tuple[ServedNode, ...]
    refusals: tuple[Refusal, ...]
    now_ms: int

    @property
    def from_ms(self) -> int | None:
        return min((node.from_ms for node in self.nodes if node.from_ms is not None), default=None)

    @property
    def to_ms(self) -> int | None:
        return max((node.to_ms for node in self.nodes if node.to_ms is not None), default=None)

    @property
    def lag_ms(self) -> int | None:
        return None if self.to_ms is None else max(0, self.now_ms - self.to_ms)


@dataclass(frozen=True, slots=True)
class View:
    """The nodes of a snapshot that a question is about, and the engine that reads them."""

    engine: Engine
    snapshot: Snapshot
    nodes: tuple[ServedNode, ...]

    def suffix_of(self, node: ServedNode) -> str:
        """What tells a node's own devices from another's, where several nodes are served."""
        return node.name if len(self.snapshot.nodes) > 1 else ""

    def query(
        self,
        node: ServedNode,
        metric: str,
        ids: Sequence[str] | None,
        span: TimeRange,
        points: int,
        rate: Rate = "auto",
        scope: str = "",
    ) -> QueryResult:
        """A metric of a node, over its files and its live tail."""
        ends = span.from_ms, span.to_ms
        return self.engine.query(node.catalog, metric, ids, *ends, points, rate, node.tail, scope or None)

    def lives(self, span: TimeRange | None = None) -> list[Life]:
        """Containers (or services) of these nodes that were there in the span, or ever."""
        found = (
            make_life(subject, node.name, self.suffix_of(node))
            for node in self.nodes
            for subject in node.listed
        )
        return [life for life in found if span is None or life.is_within(span)]


@dataclass(slots=True)
class Folder:
    """One path as given, or one of the data folders in it."""

    path: Path
    log: LogFeed | None
    files: FileListing = field(default_factory=FileListing)


class NodeFolders:
    """Data folders, files, object stores and an agent; looked at again when a snapshot is wanted."""

    def __init__(
        self,
        paths: Sequence[Path],
        clock: Clock,
        agent: AgentFeed | None = None,
        stores: "Sequence[StoreListing]" = (),
    ) -> None:
        check_given(paths)
        self._paths = tuple(paths)
        self.stores = tuple(stores)
        self._clock = clock
        self.agent = agent
        self._folders: dict[Path, Folder] = {}
        self._catalogs: dict[str, Catalog] = {}
        self._notes = AnnotationFiles()
        self._snapshot: Snapshot | None = None
        self._looked_ns = self._listed_ns = -(2**62)
        self._lock = threading.Lock()
        self.engine = Engine()
        self.memory_totals: dict[str, tuple[str, float]] = {}
        """By node: its newest file, and its memory when that was new."""

    def view(self) -> View:
        """All nodes of the newest snapshot."""
        snapshot = self.snapshot()
        return View(self.engine, snapshot, snapshot.nodes)

    def snapshot(self) -> Snapshot:
        """The newest; while another thread is looking, the one before."""
        known = self._snapshot
        if known is not None and not self._is_due():
            return known
        if not self._lock.acquire(blocking=known is None):
            assert known is not None  # noqa: S101 - only then we do not wait
            return known
        try:
            if self._snapshot is None or self._is_due():
                self._snapshot = self._look()
                self._looked_ns = self._clock.mono_ns()
            return self._snapshot
        finally:
            self._lock.release()

    def _is_due(self) -> bool:
        age_ns = self._clock.mono_ns() - self._looked_ns
        return age_ns >= LOOK_NS or (age_ns >= NEWS_NS and self.has_news())

    @property
    def follows_logs(self) -> bool:
        return any(log.is_followed for log in self._logs())

    def has_news(self) -> bool:
        """Whether a log has grown since the last look; an agent would have to be asked."""
        return any(log.has_grown() for log in self._logs())

    def _logs(self) -> list[LogFeed]:
        return [folder.log for folder in self._folders.values() if folder.log]

    def _look(self) -> Snapshot:
        # Logs before files: what becomes Parquet meanwhile is in both, and taken once.
        for log in self._logs():
            log.poll()
        if self.agent and self.agent.is_due(self._logs(), self._clock.mono_ns()):
            self.agent.poll()
        if self._clock.mono_ns() - self._listed_ns >= LIST_NS:
            self._list()
            self._listed_ns = self._clock.mono_ns()
        refused: list[Sequence[Refusal]] = [folder.files.refusals for folder in self._folders.values()]
        refused += [store.refusals for store in self.stores]
        refusals = tuple(refusal for some in refused for refusal in some)
        return Snapshot(tuple(self._nodes()), refusals, self._clock.wall_ns() // 1_000_000)

    def _list(self) -> None:
        found: dict[Path, Folder] = {}
        for path in (inner for given in self._paths for inner in find_folders(given)):
            log = LogFeed(path) if path.is_dir() else None
            folder = self._folders.get(path) or Folder(path, log)
            if path not in self._folders and folder.log:
                folder.log.poll()
            # A file never changes once it has its name.
            folder.files = list_files([path], folder.files.opened)
            found[path] = folder
        self._folders = found

    def _nodes(self) -> Iterator[ServedNode]:
        streams = join_streams(folder.log.streams() for folder in self._folders.values() if folder.log)
        if self.agent:
            streams = join_streams([streams, self.agent.streams()])
        by_node: dict[str, list[FileEntry]] = {}
        paths: dict[str, set[Path]] = {}
        homes: dict[str, set[Path]] = {}
        for folder in self._folders.values():
            for entry in folder.files.served():
                by_node.setdefault(entry.node, []).append(entry)
                paths.setdefault(entry.node, set()).add(folder.path)
            for stream in (folder.log.streams() if folder.log else {}).values():
                homes.setdefault(stream.node, set()).add(folder.path)
        names = {*by_node, *(stream.node for stream in streams.values())}
        for entry in (entry for store in self.stores for entry in store.entries):
            # A node whose folder is here is read here: the store has the same rows.
            if entry.node not in names:
                by_node.setdefault(entry.node, []).append(entry)
        gone = self.agent.reason if self.agent else ""
        for name in sorted({*names, *by_node}):
            catalog = self._catalog(name, by_node.get(name, []), paths.get(name, set()))
            mine = {run: stream for run, stream in streams.items() if stream.node == name}
            places = sorted(paths.get(name, set()) | homes.get(name, set()))
            notes = {one.id: one for place in places for one in self._notes.read(place)}
            ordered = tuple(sorted(notes.values(), key=lambda one: one.at))
            yield ServedNode(name, catalog, make_tail(mine, catalog), gone, mine, ordered)

    def folder_of(self, node: str) -> Path | None:
        """The data folder of a node, where it has one alone; of the only node unless one is named."""
        self.snapshot()
        found = {
            folder.path
            for folder in self._folders.values()
            if folder.path.is_dir()
            and (
                not node
                or any(entry.node == node for entry in folder.files.served())
                or any(
                    stream.node == node for stream in (folder.log.streams() if folder.log else {}).values()
                )
            )
        }
        return found.pop() if len(found) == 1 else None

    def _catalog(self, name: str, entries: list[FileEntry], paths: set[Path]) -> Catalog:
        """The one before, while its files are the same: it knows its metrics and subjects."""
        ordered = tuple(sorted(entries, key=lambda entry: (entry.from_ms, entry.path.name)))
        known = self._catalogs.get(name)
        if known is None or known.entries != ordered:
            known = self._catalogs[name] = Catalog(ordered, (), tuple(sorted(paths)))
        return known
