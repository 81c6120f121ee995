"""
Nodes from data folders on this machine: files, and the log of an agent that still writes.

A folder may hold one node, a folder for each of several (as the demo writes
them), or several under one partition; they are told apart by what their files
say.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from threading import Lock

import numpy as np

from nodescope import __version__
from nodescope.base.clock import Clock
from nodescope.base.errors import RequestRejected
from nodescope.base.metric import Metric
from nodescope.base.plain import PLAIN
from nodescope.base.text import clean_text
from nodescope.read.bucket import Points
from nodescope.read.catalog import Catalog, Entry, read_catalog
from nodescope.read.query import Answer, Engine
from nodescope.read.resolve import resolve_metric
from nodescope.read.tail import Tail, read_log_tail
from nodescope.use.mcp.backend import About, Event, Level, Levels, Life, MetricRow, Span, StudyAnswer
from nodescope.use.studies import STUDIES, correlation
from nodescope.use.studies.archive_series import LIMITS, POINTS, make_series
from nodescope.use.studies.series import Series

# A catalog is looked at again after this; a question is a few calls.
FRESH_NS = 2_000_000_000


class Store:
    """The files of all folders, read again when they may have changed."""

    def __init__(self, paths: Sequence[Path], clock: Clock) -> None:
        self._paths = tuple(paths)
        self._clock = clock
        self._lock = Lock()
        self._read_mono_ns: int | None = None
        self._catalogs: dict[str, tuple[Catalog, Tail | None]] = {}
        self.engine = Engine()

    def nodes(self) -> list[str]:
        return sorted(self._fresh())

    def of(self, node: str) -> tuple[Catalog, Tail | None]:
        found = self._fresh().get(node)
        if found is None:
            raise RequestRejected(f'there is no data of node "{node}" any more')
        return found

    def _fresh(self) -> dict[str, tuple[Catalog, Tail | None]]:
        with self._lock:
            mono_ns = self._clock.mono_ns()
            if self._read_mono_ns is None or mono_ns - self._read_mono_ns > FRESH_NS:
                self._catalogs = read_nodes(self._paths)
                self._read_mono_ns = mono_ns
            return self._catalogs


def read_nodes(paths: Sequence[Path]) -> dict[str, tuple[Catalog, Tail | None]]:
    """Catalog and live tail by node."""
    found: dict[str, tuple[Catalog, Tail | None]] = {}
    for folder in (one for path in paths for one in find_folders(path)):
        catalog = read_catalog([folder])
        by_node: dict[str, list[Entry]] = {}
        for entry in catalog.entries:
            by_node.setdefault(name_node(entry, folder), []).append(entry)
        for node, entries in by_node.items():
            # Rollups lie beside all nodes of a folder: used where there is one.
            roots = catalog.paths if len(by_node) == 1 else ()
            mine = Catalog(tuple(entries), catalog.refusals, roots)
            if node in found:
                earlier = found[node][0]
                mine = Catalog(
                    tuple(sorted([*earlier.entries, *entries], key=lambda entry: entry.from_ms)),
                    (*earlier.refusals, *catalog.refusals),
                    (*earlier.paths, *roots),
                )
            tail = read_log_tail(folder, mine) if (folder / "wal").is_dir() else None
            mine_is_live = tail is not None and bool(tail.days) and tail.node in ("", node)
            found[node] = (mine, tail if mine_is_live else None)
        if not by_node and (folder / "wal").is_dir():
            tail = read_log_tail(folder, catalog)
            if tail.days:
                found[clean_text(tail.node) or folder.name] = (catalog, tail)
    return found


def find_folders(path: Path) -> list[Path]:
    """A folder of folders with archives is several; anything else is one."""
    if not path.exists():
        raise RequestRejected(f"no such file or folder: {path}")
    if path.is_file() or any(path.glob("dt=*")) or (path / "wal").is_dir():
        return [path]
    inner = sorted(one.parent for one in path.glob("*/session.json"))
    return inner or [path]


def name_node(entry: Entry, folder: Path) -> str:
    if entry.sidecar is not None and entry.sidecar.head.node:
        return clean_text(entry.sidecar.head.node)
    partition = next((part for part in entry.path.parts if part.startswith("identifier=")), "")
    return clean_text(partition.removeprefix("identifier=") or folder.name)


class LocalNode:
    """One node of a store."""

    def __init__(self, store: Store, node: str) -> None:
        self._store = store
        self._node = node

    def read_about(self) -> About:
        catalog, tail = self._store.of(self._node)
        ends = [end for end in (catalog.to_ms, tail.to_ms if tail else None) if end is not None]
        problems = tuple(clean_text(one.reason) for one in catalog.refusals)
        return About(
            self._node,
            __version__,
            catalog.from_ms if catalog.from_ms is not None else first_of(tail),
            max(ends, default=None),
            len(self.read_lives(None)),
            problems,
        )

    def read_metrics(self) -> list[MetricRow]:
        catalog, tail = self._store.of(self._node)
        known = {**catalog.metrics, **(tail.metrics if tail else {})}
        scopes: dict[str, str] = {}
        for entry in catalog.entries[-3:]:
            for name, words in (entry.sidecar.scopes() if entry.sidecar else {}).items():
                scopes[name] = "container" if "container" in words else next(iter(words), "")
        rows = [
            MetricRow(
                plain.name,
                plain.unit,
                "gauge",
                plain.help,
                True,
                "gpu" if plain.name.startswith("gpu") else "container",
            )
            for plain in PLAIN.values()
            if is_collected(plain.name, known)
        ]
        rows += [
            MetricRow(
                clean_text(metric.name),
                clean_text(metric.unit),
                metric.kind,
                clean_text(metric.help),
                False,
                scopes.get(metric.name, ""),
            )
            for metric in known.values()
        ]
        return rows

    def read_lives(self, span: Span | None) -> list[Life]:
        catalog, tail = self._store.of(self._node)
        subjects = {
            subject.label("l_container_id") or "": subject
            for subject in (*(tail.subjects.values() if tail else ()), *catalog.containers())
            if subject.label("l_scope") == "container"
        }
        alive_ms = tail.to_ms if tail else None
        lives = []
        for container_id, subject in subjects.items():
            in_tail = tail is not None and subject.identity in tail.subjects
            last_ms = max(subject.last_ms, alive_ms or 0) if in_tail else subject.last_ms
            if span and (subject.first_ms > span.to_ms or last_ms < span.from_ms):
                continue
            restarts = subject.details.get("restarts", "")
            lives.append(
                Life(
                    container_id,
                    self._node,
                    clean_text(subject.label("l_namespace") or ""),
                    clean_text(subject.label("l_pod_name") or ""),
                    clean_text(subject.label("l_container_name") or ""),
                    clean_text(subject.label("l_qos_class") or ""),
                    subject.first_ms,
                    last_ms,
                    clean_text(subject.details.get("image", "")),
                    int(restarts) if restarts.isdigit() else 0,
                )
            )
        return sorted(lives, key=lambda life: (life.namespace, life.name, life.first_ms))

    def read_levels(self, metric: str, span: Span, containers: Sequence[str] | None) -> Levels:
        answer = self._query(metric, span, containers, 1)
        rows = [
            reduce_points(line.subject.label("l_container_id") or "", line.points)
            for line in answer.lines
            if line.subject.label("l_scope") == "container"
        ]
        there = tuple(row for row in rows if row is not None)
        return Levels(answer.asked.unit, there, tuple(map(clean_text, answer.refused)))

    def study(self, name: str, metric: str, containers: Sequence[str], span: Span) -> list[StudyAnswer]:
        if name == correlation.NAME:
            return self._correlate(metric, containers[0], span)
        return [
            {**STUDIES[name].run(series).to_json(), "id": container_id}
            for container_id, series in self._series(metric, containers, span)
        ]

    def _correlate(self, metric: str, container: str, span: Span) -> list[StudyAnswer]:
        """The container's series against everybody's on the node."""
        everybody = self._series(metric, None, span)
        mine = [series for container_id, series in everybody if container_id == container]
        others = [series for container_id, series in everybody if container_id != container]
        return [{**correlation.study(series, others).to_json(), "id": container} for series in mine]

    def _series(self, metric: str, containers: Sequence[str] | None, span: Span) -> list[tuple[str, Series]]:
        answer = self._query(metric, span, containers, POINTS)
        limits: dict[str, float] = {}
        if metric in LIMITS:
            try:
                limited = self._query(LIMITS[metric], span, containers, POINTS)
            except RequestRejected:
                limited = None
            for line in limited.lines if limited else ():
                known = line.points.maximum[np.isfinite(line.points.maximum)]
                if len(known):
                    limits[line.subject.label("l_container_id") or ""] = float(known[-1])
        found = []
        for line in answer.lines:
            container_id = line.subject.label("l_container_id") or ""
            series = make_series(line, metric, answer.asked.unit, limits.get(container_id))
            found.append((container_id, series))
        return found

    def _query(self, metric: str, span: Span, containers: Sequence[str] | None, points: int) -> Answer:
        catalog, tail = self._store.of(self._node)
        return self._store.engine.query(
            catalog, metric, containers, span.from_ms, span.to_ms, points, tail=tail
        )

    def read_events(self, span: Span) -> list[Event]:
        catalog, _ = self._store.of(self._node)
        found = []
        for entry in catalog.select(span.from_ms, span.to_ms):
            story = entry.story()
            for event in story.events if story else ():
                if event.get("scope") == "container" and span.from_ms <= event["at_ms"] <= span.to_ms:
                    kind = "oom" if event["kind"] == "oom_exit" else str(event["kind"])
                    found.append(Event(event["at_ms"], kind, str(event["ids"][0]), event.get("facts") or {}))
        return sorted(found, key=lambda event: event.at_ms)


def reduce_points(container_id: str, points: Points) -> Level | None:
    """One row from the buckets of a line; what is not measured, or unlimited, adds nothing."""
    there = (points.count > 0) & np.isfinite(points.mean)
    weight = points.count[there]
    if not len(weight):
        return None
    mean = float(np.sum(points.mean[there] * weight) / weight.sum())
    least, most = float(np.min(points.minimum[there])), float(np.max(points.maximum[there]))
    return Level(container_id, mean, least, most, int(weight.sum()))


def first_of(tail: Tail | None) -> int | None:
    return min((min(day.clocks) for day in tail.days if day.clocks), default=None) if tail else None


def is_collected(name: str, known: Mapping[str, Metric]) -> bool:
    try:
        resolve_metric(name, known, "auto")
    except RequestRejected:
        return False
    return True
