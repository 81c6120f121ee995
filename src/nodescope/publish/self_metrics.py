"""
What nodescope says about itself on /metrics, from the first tick on.

Few series, rendered plainly. Every source has its series whether it is ok,
absent or failed; a counter that never moved is 0, because then it is.
"""

import resource
import sys
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from nodescope import __version__
from nodescope.base.block import Block
from nodescope.base.clock import process_cpu_seconds
from nodescope.base.frame import ENDS, Event, Frame, Outcome
from nodescope.base.log import LIMIT
from nodescope.base.self_counters import Histogram, SamplerCounters
from nodescope.base.status import ArchiveStatus, MemoryStatus
from nodescope.hold.ring import Ring
from nodescope.publish.annotation import AnnotationCounters
from nodescope.publish.finding_metrics import build_finding_families
from nodescope.publish.tell.alert_sender import AlertCounters
from nodescope.publish.tell.pod_event_sender import PodEventCounters
from nodescope.serve.connections import Connections, build_families
from nodescope.serve.prometheus_text import (
    Labels,
    MetricFamily,
    Sample,
    build_histogram,
    build_labelled,
    build_single,
)
from nodescope.watch.watcher import Watcher

# From a probe (some 100 us) up to a window over thousands of containers.
LATENCY_BOUNDS_SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)
# Four scrapes at the usual 15 s: even a container that lived for a second is seen.
OBITUARY_SECONDS = 60.0
OBITUARIES = 1000


@dataclass(slots=True)
class Obituaries:
    """A sink: the events of containers that ended lately, for the next scrapes."""

    kept: deque[tuple[int, Event]] = field(default_factory=lambda: deque(maxlen=OBITUARIES))
    total: int = 0

    def accept(self, frame: Frame) -> None:
        for event in frame.events:
            if event.kind in ENDS and event.scope == "container":
                self.kept.append((frame.mono_ns, event))
                self.total += 1
        while self.kept and frame.mono_ns - self.kept[0][0] > OBITUARY_SECONDS * 1e9:
            self.kept.popleft()


@dataclass(slots=True)
class SelfMetrics:
    """Gathers what the parts of the agent count."""

    counters: SamplerCounters
    ring: Ring
    obituaries: Obituaries
    user_labels: Labels = ()
    latency: dict[str, Histogram] = field(default_factory=dict)
    annotation: AnnotationCounters = field(default_factory=AnnotationCounters)
    pod_events: PodEventCounters = field(default_factory=PodEventCounters)
    alerts: tuple[AlertCounters, ...] = ()
    """One for each Alertmanager."""
    connections: Connections = field(default_factory=Connections)
    """Those of the agent's server."""
    archive: Callable[[], ArchiveStatus] | None = None
    """Set where samples are kept on disk."""
    memory: Callable[[], MemoryStatus] | None = None
    watcher: Watcher | None = None
    """Set where something looks for what is wrong."""

    def observe_request(self, path: str, seconds: float) -> None:
        self.latency.setdefault(path, Histogram(LATENCY_BOUNDS_SECONDS)).observe(seconds)

    def families(self, outcomes: Mapping[str, Outcome], now_mono_ns: int) -> list[MetricFamily]:
        return [
            *self._sample_families(now_mono_ns),
            *self._source_families(outcomes),
            *self._tick_families(),
            *self._container_families(),
            *self._annotation_families(),
            *self._event_families(),
            *self._alert_families(),
            *self._cost_families(),
            *build_families(self.connections),
            *(archive_families(self.archive()) if self.archive else ()),
            *(build_finding_families(self.watcher) if self.watcher else ()),
            *self._info_families(),
        ]

    def _sample_families(self, now_mono_ns: int) -> Iterable[MetricFamily]:
        yield build_single("metrics_samples_available", "Frames that the ring holds.", self.ring.frame_count)
        if self.counters.newest_mono_ns is not None:
            age_seconds = (now_mono_ns - self.counters.newest_mono_ns) / 1e9
            yield build_single("metrics_newest_seconds", "Age of the newest sample.", age_seconds)
        failed = sum(count for (name, _), count in self.counters.errors.copy().items() if name == "pcm")
        yield build_single("pcm_errors_total", "Readings of hardware counters that failed.", failed)
        latency = dict(sorted(self.latency.items())) or {"/metrics": Histogram(LATENCY_BOUNDS_SECONDS)}
        by_path: dict[Labels, Histogram] = {
            (("path", path),): histogram for path, histogram in latency.items()
        }
        yield build_histogram("api_latency_seconds", "Time to answer a request.", by_path)

    def _source_families(self, outcomes: Mapping[str, Outcome]) -> Iterable[MetricFamily]:
        names = sorted(outcomes)
        sentence = "1 when the source's last reading was ok, 0 when absent or failed."
        is_up = {name: outcomes[name].state == "ok" for name in names}
        yield build_labelled("nodescope_source_up", sentence, "source", is_up)
        cost = {name: self.counters.cost_seconds[name] for name in names}
        yield build_labelled(
            "nodescope_source_seconds_total", "CPU time spent on the source.", "source", cost
        )
        errors = {**{(name, "failed"): 0 for name in names}, **self.counters.errors.copy()}
        yield build_labelled(
            "nodescope_source_errors_total",
            "Readings that failed, by reason.",
            ("source", "reason"),
            dict(sorted(errors.items())),
        )

    def _tick_families(self) -> Iterable[MetricFamily]:
        counters = self.counters
        late: dict[Labels, Histogram] = {(): counters.late_seconds}
        yield build_histogram("nodescope_tick_late_seconds", "How late ticks started.", late)
        yield build_single("nodescope_ticks_total", "Ticks taken.", counters.ticks)
        yield build_single("nodescope_ticks_missed_total", "Ticks that could not be taken.", counters.missed)
        series = dict(sorted(self._count_series().items()))
        yield build_labelled("nodescope_series", "Live series by scope.", "scope", series)
        sentence = "Entities left out because their scope is over its limit, counted again at every tick."
        dropped = {scope: counters.dropped[scope] for scope in sorted({*counters.dropped, "container"})}
        yield build_labelled("nodescope_series_dropped_total", sentence, "scope", dropped)

    def _count_series(self) -> dict[str, int]:
        counts = {"node": 0, "container": 0}
        for moment in self.ring.latest().values():
            for scope, rows in count_rows(moment.block).items():
                counts[scope] = counts.get(scope, 0) + rows * len(moment.block.table.metrics)
        return counts

    def _container_families(self) -> Iterable[MetricFamily]:
        sentence = "Containers that ended while nodescope watched."
        yield build_single("nodescope_container_exits_total", sentence, self.obituaries.total)
        yield from self._doubt_families()
        kept = [event for _, event in list(self.obituaries.kept)]
        for fact, sentence in EXIT_METRICS.items():
            samples: dict[tuple[str, ...], Sample] = {
                event.ids: ("", exit_labels(event), float(event.facts[fact]))
                for event in kept
                if fact in event.facts
            }
            if samples:
                yield MetricFamily(f"nodescope_container_exit_{fact}", sentence, tuple(samples.values()))

    def _doubt_families(self) -> Iterable[MetricFamily]:
        """What was not believed, not looked at, or not measured."""
        found = self.counters.containers
        short = {reason: found.unmeasured[key] for reason, key in UNMEASURED.items()}
        sentence = "Containers that came and went between two ticks, by what is known of them."
        yield build_labelled("nodescope_container_exits_unmeasured_total", sentence, "known", short)
        refused = {claim: found.refused[claim] for claim in ("container", "pod", "ended")}
        sentence = "Cgroups refused because they claim another's container, pod or the id of an ended one."
        yield build_labelled("nodescope_cgroups_refused_total", sentence, "claim", refused)
        sentence = "Cgroups below which not all is looked into: too many, too deep, or not permitted."
        yield build_single("nodescope_cgroups_cut", sentence, len(found.cut_now))
        sentence = "Times that the kernel's queue of news about cgroups was full."
        yield build_single("nodescope_cgroup_queue_overflows_total", sentence, found.overflows)

    def _annotation_families(self) -> Iterable[MetricFamily]:
        sentence = "Attempts to write the node's annotations, by outcome."
        outcomes = {"written": self.annotation.written, "failed": self.annotation.failed}
        yield build_labelled("nodescope_annotation_syncs_total", sentence, "outcome", outcomes)
        length = self.annotation.bytes
        yield build_single("nodescope_annotation_bytes", "Length of the annotations written last.", length)

    def _event_families(self) -> Iterable[MetricFamily]:
        events = self.pod_events
        if not events.is_on:
            return
        sentence = "Events of Kubernetes about findings, by outcome."
        outcomes = {"written": events.written, "refused": events.refused, "failed": events.failed}
        yield build_labelled("nodescope_kubernetes_events_total", sentence, "outcome", outcomes)

    def _alert_families(self) -> Iterable[MetricFamily]:
        if not self.alerts:
            return
        outcomes = {
            (one.address, word): getattr(one, word)
            for one in self.alerts
            for word in ("sent", "refused", "failed")
        }
        sentence = "Alerts that an Alertmanager took or refused, and requests that failed."
        yield build_labelled("nodescope_alerts_total", sentence, ("server", "outcome"), outcomes)
        sentence = "Findings of which an Alertmanager does not know yet what it should."
        waiting = {one.address: one.waiting for one in self.alerts}
        yield build_labelled("nodescope_alerts_waiting", sentence, "server", waiting)

    def _cost_families(self) -> Iterable[MetricFamily]:
        cpu_seconds, resident, ring = process_cpu_seconds(), read_resident_bytes(), self.ring.used_bytes
        yield build_single("nodescope_process_cpu_seconds_total", "CPU time of the agent.", cpu_seconds)
        yield build_single("nodescope_process_resident_bytes", "Resident memory of the agent.", resident)
        yield build_single("nodescope_ring_bytes", "Memory that samples take in the ring.", ring)
        sentence = "Lines of the log that were left out because they repeated or were too many."
        yield build_single("nodescope_log_lines_left_out_total", sentence, LIMIT.left_out)
        if self.memory:
            memory = self.memory()
            sentence = "The most resident memory that the agent should take."
            yield build_single("nodescope_memory_budget_bytes", sentence, memory.budget_bytes)
            given = {"ring": memory.is_ring_shortened, "containers": memory.containers_most is not None}
            sentence = "1 while something is given up to stay within the memory budget."
            yield build_labelled("nodescope_memory_given_up", sentence, "what", given)

    def _info_families(self) -> Iterable[MetricFamily]:
        build = (("version", __version__), ("python", sys.version.split()[0]))
        yield MetricFamily("nodescope_build_info", "The build; always 1.", (("", build, 1.0),))
        if self.user_labels:
            tags = (("", self.user_labels, 1.0),)
            yield MetricFamily("nodescope_labels_info", "Tags given with --label; always 1.", tags)


def count_rows(block: Block) -> Counter[str]:
    """Rows by scope; only a table of several scopes is looked at row by row."""
    scopes = block.table.scopes
    if len(scopes) == 1:
        return Counter({scopes[0]: len(block.entities)})
    return Counter(entity.scope for entity in block.entities)


# Value of `known` -> how the container source counts it.
UNMEASURED = {"last_look": "looked", "end": "unseen", "pod": "pod", "number": "not noted"}
# Fact of a container's end -> sentence of its metric, nodescope_container_exit_<fact>.
EXIT_METRICS = {
    "cpu_seconds": "CPU time a container had used when it ended; shown for a minute.",
    "memory_peak_bytes": "The most memory a container had used when it ended; shown for a minute.",
    "oom_kills": "Processes killed for memory in a container that ended; shown for a minute.",
    "lifetime_seconds": "How long nodescope saw a container that ended; shown for a minute.",
}
# Field of the archive's status -> metric, sentence.
ARCHIVE_METRICS = {
    "archive_bytes": ("nodescope_archive_bytes", "Size of the archive on disk."),
    "rows": ("nodescope_archive_rows_total", "Samples turned into Parquet."),
    "parquet_bytes": ("nodescope_archive_written_bytes_total", "Bytes of Parquet written."),
    "removed_bytes": ("nodescope_archive_removed_bytes_total", "Bytes that retention removed."),
    "failures": ("nodescope_archive_failures_total", "Conversions of the log that failed."),
    "frames": ("nodescope_archive_frames_total", "Ticks that were written to the log."),
    "frames_lost": ("nodescope_archive_frames_lost_total", "Ticks that could not be kept."),
    "frames_waiting": (
        "nodescope_archive_frames_waiting",
        "Ticks of a pause that are written when it ends.",
    ),
    "damaged_files": (
        "nodescope_archive_damaged_files_total",
        "Files that were set aside because they could not be read.",
    ),
    "repaired_files": (
        "nodescope_archive_repaired_files_total",
        "Files of which a flipped bit was turned back.",
    ),
    "clock_step_seconds": (
        "nodescope_archive_clock_step_seconds",
        "How far the wall clock is ahead of the time that passed; retention does not count it yet.",
    ),
    "log_bytes": ("nodescope_wal_bytes_total", "Bytes appended to the log."),
    "log_seconds": ("nodescope_wal_age_seconds", "Age of the oldest sample that is in the log only."),
    "segments_waiting": ("nodescope_wal_segments", "Closed segments that are not Parquet yet."),
}
# The same for the copy to an object store, where one is configured.
COPY_METRICS = {
    "lag_seconds": ("nodescope_copy_lag_seconds", "Age of the oldest sample only this node has."),
    "waiting_files": ("nodescope_copy_waiting_files", "Finished files that are not copied yet."),
    "waiting_bytes": ("nodescope_copy_waiting_bytes", "Their size."),
    "copied_bytes": ("nodescope_copy_bytes_total", "Bytes copied to the object store."),
    "failures": ("nodescope_copy_failures_total", "Copies that failed and are tried again."),
    "lost_bytes": (
        "nodescope_copy_lost_bytes_total",
        "Bytes removed for want of free space before they were copied.",
    ),
    "vanished_files": (
        "nodescope_copy_vanished_files_total",
        "Copied files that were no longer found in the object store.",
    ),
}


def archive_families(status: ArchiveStatus) -> Iterable[MetricFamily]:
    for attribute, described in ARCHIVE_METRICS.items():
        yield build_single(*described, getattr(status, attribute))
    paused = status.state == "paused"
    yield build_single("nodescope_archive_paused", "1 while the archive cannot be written.", paused)
    if status.copy:
        for attribute, described in COPY_METRICS.items():
            yield build_single(*described, getattr(status.copy, attribute))


def exit_labels(event: Event) -> Labels:
    wanted = ("namespace", "pod", "container", "id", "container_id")
    have = dict(event.labels)
    return tuple((name, have.get(name, "")) for name in wanted)


def read_resident_bytes() -> float:
    """Resident now on Linux; the most so far where the kernel does not tell."""
    try:
        with open("/proc/self/statm", "rb") as file:
            return float(int(file.read().split()[1]) * resource.getpagesize())
    except OSError:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return float(peak if sys.platform == "darwin" else peak * 1024)
