"""
A span of an archive as tracks: a node, its containers and processes, their counters, and what happened.

    node n1               counters: cpu, memory, pressure, disk, network, GPUs
      shop/web            counters, and slices: running, throttled, not measured
      python 4242         a process: its counters

A rate stands at the begin of the second that it is of, because a counter of
Perfetto holds until its next value. A counter cannot say that there is no value:
a slice `not measured` lies over every gap.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from nodescope.base.block import Floats, Integers
from nodescope.base.errors import RequestRejected
from nodescope.base.text import clean_text
from nodescope.base.time_range import TimeRange
from nodescope.read.query.bucket import Points
from nodescope.read.query.events import Happening
from nodescope.read.query.resolve import ResolvedMetric
from nodescope.read.series_name import id_of, labels_of, name_of
from nodescope.use.answers.containers import Life
from nodescope.use.answers.events import read_happenings, render_sentence
from nodescope.use.answers.metrics import resolve
from nodescope.use.answers.refusal import Refused
from nodescope.use.answers.snapshots import ServedNode, View
from nodescope.use.answers.timeseries import (
    MeasuredNode,
    MeasuredSeries,
    TimeseriesRequest,
    read_measured,
    split_request,
)
from nodescope.use.trace.trace_file import TraceFile

# (metric, scope) of a trace unless metrics are named; a node has what it has.
CONTAINER_METRICS = (
    *(
        "cpu",
        "cpu_throttled",
        "memory",
        "memory_working_set",
        "pressure_cpu",
        "pressure_memory",
        "pressure_io",
    ),
    *("disk_read", "disk_write", "network_receive", "network_transmit"),
)
NODE_METRICS = (*CONTAINER_METRICS[:1], "memory", *CONTAINER_METRICS[4:])
GPU_METRICS = ("gpu_utilization", "gpu_memory", "gpu_power")
PROCESS_METRICS = ("cpu", "memory")
DEFAULTS = (
    *((name, "node") for name in NODE_METRICS),
    *((name, "gpu") for name in GPU_METRICS),
    *((name, "") for name in CONTAINER_METRICS),
    *((name, "process") for name in PROCESS_METRICS),
)
ALL_POINTS = 2**40
# Samples further apart than so many usual distances have a gap between them.
GAP_DISTANCES = 3.0
THROTTLED = "cpu_throttled"
MS = 1_000_000
WORDS = {"start": "started", "restart": "started again", "exit": "ended", "oom": "killed for memory"}


@dataclass(frozen=True, slots=True)
class TraceRequest:
    span: TimeRange
    metrics: Sequence[str] = ()
    """Those of containers; empty for the usual ones of everything."""
    lives: tuple[Life, ...] | None = None


@dataclass(slots=True)
class TraceCounts:
    """What a trace holds."""

    tracks: int = 0
    samples: int = 0
    events: int = 0


@dataclass(slots=True)
class SpanTrace:
    """Writes one."""

    view: View
    request: TraceRequest
    file: TraceFile
    counts: TraceCounts = field(default_factory=TraceCounts)
    _nodes: dict[str, int] = field(default_factory=dict)
    _entities: dict[tuple[str, str], int] = field(default_factory=dict)

    def write(self) -> TraceCounts:
        self.file.begin(self._clocks())
        for metric, scope in self._asked():
            for node in self._read(metric, scope):
                for series in node.series:
                    self._add_series(metric, node, series)
        self._add_lives()
        self._add_happenings()
        return self.counts

    def _asked(self) -> Sequence[tuple[str, str]]:
        if self.request.metrics:
            return [(metric, "") for metric in self.request.metrics]
        if self.request.lives is not None:
            return [(metric, scope) for metric, scope in DEFAULTS if scope in ("", "node", "gpu")]
        return DEFAULTS

    def _clocks(self) -> Iterator[tuple[int, int]]:
        """Of one node: the clocks of another are others."""
        if self.file.zero_ns or len(self.view.nodes) != 1:
            return
        last = (-1, -1)
        for pair in list_clocks(self.view.nodes[0], self.request.span):
            if pair[0] > last[0] and pair[1] > last[1]:
                yield pair
                last = pair

    def _read(self, metric: str, scope: str) -> Iterator[MeasuredNode]:
        """Nothing where no node measures it, unless it was asked for by name."""
        lives = self.request.lives if not scope else None
        asked = TimeseriesRequest(
            metric, self.request.span, ALL_POINTS, lives=lives, scope=scope, limits=False, is_bounded=False
        )
        try:
            resolved = resolve(self.view.nodes, metric, "auto", scope)
        except (Refused, RequestRejected):
            if self.request.metrics:
                raise
            return
        for part in split_request(self.view, asked, resolved):
            for node in read_measured(self.view, part, resolved):
                yield shift_rates(node, resolved[node.node])

    def _add_series(self, metric: str, node: MeasuredNode, series: MeasuredSeries) -> None:
        there = np.isfinite(series.points.mean)
        times, values = series.points.time_ms[there], series.points.mean[there]
        if not len(times):
            return
        parent = self._entity(series)
        track = self._track(metric, parent, unit=node.unit)
        for time_ms, value in zip(times.tolist(), values.tolist()):
            self.file.count(track, time_ms * MS, value)
        self.counts.samples += len(times)
        self._add_gaps(parent, metric, times)
        if metric == THROTTLED:
            self._add_throttling(parent, times, values)

    def _entity(self, series: MeasuredSeries) -> int:
        node = self._node(series.node)
        if series.scope == "node":
            return node
        key = (series.node, series.id)
        if key not in self._entities:
            pid = series.subject.label("l_pid") if series.scope == "process" else None
            pid_number = int(pid) if pid and pid.isdigit() else 0
            self._entities[key] = self._track(series.name, node, pid=pid_number)
        return self._entities[key]

    def _node(self, name: str) -> int:
        if name not in self._nodes:
            self._nodes[name] = self._track(f"node {name}", 0)
        return self._nodes[name]

    def _track(self, name: str, parent: int, pid: int = 0, unit: str | None = None) -> int:
        self.counts.tracks += 1
        return self.file.add_track(clean_text(name), parent, pid, unit)

    def _add_gaps(self, parent: int, metric: str, times_ms: Integers) -> None:
        gaps = list(find_gaps(times_ms))
        if gaps:
            track = self._track(f"{metric}: not measured", parent)
            for from_ms, to_ms in gaps:
                self.file.span(track, from_ms * MS, to_ms * MS, "not measured")
            self.counts.events += len(gaps)

    def _add_throttling(self, parent: int, times_ms: Integers, shares: Floats) -> None:
        found = list(find_stretches(times_ms, shares))
        if found:
            track = self._track("throttled", parent)
            for from_ms, to_ms, share in found:
                facts = {"share_of_periods": share}
                self.file.span(track, from_ms * MS, to_ms * MS, "throttled", facts)
            self.counts.events += len(found)

    def _add_lives(self) -> None:
        """When each container ran, as far as it was measured."""
        lives = self.request.lives or tuple(self.view.lives(self.request.span))
        for life in lives:
            key = (life.node, life.id)
            from_ms = max(life.first_ms, self.request.span.from_ms)
            to_ms = min(life.last_ms, self.request.span.to_ms)
            if key in self._entities and from_ms < to_ms:
                facts = {
                    word: clean_text(text, 200) for word, text in labels_of(life.subject).items() if text
                }
                self.file.span(self._entities[key], from_ms * MS, to_ms * MS, "running", facts)
                self.counts.events += 1

    def _add_happenings(self) -> None:
        ids = None if self.request.lives is None else [life.id for life in self.request.lives]
        found = read_happenings(self.view, self.request.span, ids)
        for node, one in sorted(found, key=lambda pair: pair[1].at_ms):
            key = (node.name, id_of(one.subject, self.view.suffix_of(node)))
            if key not in self._entities:
                # It came and went between two samples.
                self._entities[key] = self._track(name_of(one.subject), self._node(node.name))
            self.file.mark(self._entities[key], one.at_ms * MS, WORDS[one.kind], list_facts(one))
            self.counts.events += 1


def list_facts(happening: Happening) -> dict[str, float | str]:
    facts: dict[str, float | str] = {"sentence": clean_text(render_sentence(happening), 500)}
    for word, fact in happening.facts.items():
        facts[word] = clean_text(fact, 200) if isinstance(fact, str) else float(fact)
    return facts


def list_clocks(node: ServedNode, span: TimeRange) -> Iterator[tuple[int, int]]:
    """Wall and monotonic ns of the first tick of every file in the span."""
    for entry in node.catalog.select(span.from_ms, span.to_ms):
        ticks = entry.ticks()
        if ticks is not None and len(ticks.time_ms):
            yield int(ticks.time_ms[0]) * MS, int(ticks.mono_ns[0])


def shift_rates(node: MeasuredNode, resolved: ResolvedMetric) -> MeasuredNode:
    """A rate is measured at the end of its interval; here it stands at the begin."""
    if resolved.form == "value" or resolved.metrics[0].kind != "counter":
        return node
    return replace(node, series=tuple(replace(one, points=shift(one.points)) for one in node.series))


def shift(points: Points) -> Points:
    """After a gap the interval is not known: as long as the usual one, it ends with the sample."""
    times = points.time_ms
    if len(times) < 2:
        return points
    usual = find_usual_ms(times)
    steps = np.diff(times, prepend=times[0] - usual)
    return replace(
        points, time_ms=times - np.where(steps > GAP_DISTANCES * usual, usual, steps).astype(times.dtype)
    )


def find_usual_ms(times_ms: Integers) -> int:
    return int(np.median(np.diff(times_ms)))


def find_gaps(times_ms: Integers) -> Iterator[tuple[int, int]]:
    """Where samples are missing: from a usual distance behind the last one to the next."""
    if len(times_ms) < 3:
        return
    usual = find_usual_ms(times_ms)
    for place in np.flatnonzero(np.diff(times_ms) > GAP_DISTANCES * usual).tolist():
        yield int(times_ms[place]) + usual, int(times_ms[place + 1])


def find_stretches(times_ms: Integers, shares: Floats) -> Iterator[tuple[int, int, float]]:
    """Runs of samples in which the quota ran out: from, to, mean share of periods."""
    if len(times_ms) < 2:
        return
    usual = find_usual_ms(times_ms)
    # A gap ends a stretch, too.
    breaks = np.diff(times_ms) > GAP_DISTANCES * usual
    group = np.cumsum(np.r_[False, (shares[1:] > 0) != (shares[:-1] > 0)] | np.r_[False, breaks])
    for number in np.unique(group[shares > 0]).tolist():
        inside = group == number
        yield int(times_ms[inside][0]), int(times_ms[inside][-1]) + usual, float(shares[inside].mean())
