"""
What the workloads of this node use, learned from the last 20 seconds again and again.

Kept for each: cores now and by the hour of the day (of some three days), memory bandwidth
where the node's is measured, how much it waits when somebody has to wait, and its GPUs.
A workload that has gone is remembered until others need its place: it may come back.
"""

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from nodescope.base.workload.pod_use import (
    HOURS,
    NodeWorkloads,
    PodUse,
    decode_hours,
    encode_hours,
)
from nodescope.hold.pods.bandwidth_split import BandwidthSplit

WORKLOADS = 64
SAMPLE_SECONDS = 20.0
# Samples that the means are over, the newest counting most: ten minutes, and three days of one hour.
NOW_SAMPLES = 30
HOUR_SAMPLES = 3 * 180
# Of the node's waiting, squared and added up, from which on a workload's part in it is told.
LEAST_WAITED = 0.5
WAITED_KEPT_RATIO = 0.5 ** (1 / 1080)
# CPU of the node that is of no pod counts in the bandwidth, too.
REST = ""


@dataclass(frozen=True, slots=True)
class WorkloadSample:
    """All pods of one workload on this node, over 20 s; None is what was not measured."""

    pods: int
    cores: float
    """Of all of them together."""
    waits: float | None = None
    """The mean over its pods."""
    gpu: float | None = None


@dataclass(frozen=True, slots=True)
class NodeSample:
    """The node at the same time."""

    at_seconds: float
    """Wall clock."""
    cores: float | None = None
    """In use, by all that runs there."""
    bandwidth: float | None = None
    """GB/s."""
    waits: float | None = None


@dataclass(slots=True)
class RunningMean:
    """The first samples alike, then each new one with the same weight."""

    value: float = 0.0
    count: int = 0

    def add(self, value: float, most: int) -> None:
        self.count = min(self.count + 1, most)
        self.value += (value - self.value) / self.count


@dataclass(slots=True)
class LearnedWorkload:
    """Of one workload, for one pod of it."""

    pods: int = 0
    cores: RunningMean = field(default_factory=RunningMean)
    hours: list[RunningMean] = field(default_factory=lambda: [RunningMean() for _ in range(HOURS)])
    waits_by_node: float = 0.0
    """The node's waiting, times its own, added up; and the square of the node's."""
    node_squared: float = 0.0
    gpu: RunningMean = field(default_factory=RunningMean)

    def learn(self, sample: WorkloadSample, hour: int, node_waits: float | None) -> None:
        each = sample.cores / sample.pods
        self.pods = sample.pods
        self.cores.add(each, NOW_SAMPLES)
        self.hours[hour].add(each, HOUR_SAMPLES)
        if sample.gpu is not None:
            self.gpu.add(sample.gpu, NOW_SAMPLES)
        if sample.waits is not None and node_waits is not None:
            self.waits_by_node = self.waits_by_node * WAITED_KEPT_RATIO + sample.waits * node_waits
            self.node_squared = self.node_squared * WAITED_KEPT_RATIO + node_waits**2

    def describe(self, bandwidth: float | None) -> PodUse:
        is_told = self.node_squared >= LEAST_WAITED
        return PodUse(
            self.pods,
            self.cores.value,
            encode_hours(one.value if one.count else None for one in self.hours),
            bandwidth,
            min(1.0, self.waits_by_node / self.node_squared) if is_told else None,
            self.gpu.value if self.gpu.count else None,
        )


class WorkloadTracker:
    """All workloads of the node; one thread."""

    def __init__(self, most: int = WORKLOADS) -> None:
        self._most = most
        self._learned: OrderedDict[str, LearnedWorkload] = OrderedDict()
        self._split = BandwidthSplit()
        self.at_seconds = 0.0
        """Of the newest sample."""

    def observe(self, node: NodeSample, samples: Mapping[str, WorkloadSample]) -> None:
        self.at_seconds = node.at_seconds
        hour = int(node.at_seconds // 3600) % HOURS
        for learned in self._learned.values():
            learned.pods = 0
        for name, sample in samples.items():
            if sample.pods > 0:
                if name not in self._learned:
                    self._learned[name] = LearnedWorkload()
                self._learned[name].learn(sample, hour, node.waits)
                self._learned.move_to_end(name)
        self._drop()
        if node.bandwidth is not None:
            self._split.observe(self._divide(node, samples), node.bandwidth)

    def _divide(self, node: NodeSample, samples: Mapping[str, WorkloadSample]) -> dict[str, float]:
        cores = {name: sample.cores for name, sample in samples.items() if name in self._learned}
        rest = max(0.0, node.cores - sum(cores.values())) if node.cores is not None else 0.0
        return {**cores, REST: rest}

    def _drop(self) -> None:
        """Beyond the bound, who was seen longest ago."""
        while len(self._learned) > self._most:
            self._split.forget(self._learned.popitem(last=False)[0])

    def running(self) -> frozenset[str]:
        """Workloads that have a pod here now."""
        return frozenset(name for name, learned in self._learned.items() if learned.pods)

    def read(self) -> NodeWorkloads | None:
        """None before anything was seen."""
        if not self._learned:
            return None
        factors = self._split.solve()
        uses = {name: learned.describe(factors.get(name)) for name, learned in self._learned.items()}
        return NodeWorkloads(self.at_seconds, uses)

    def restore(self, found: NodeWorkloads) -> None:
        """What an earlier run wrote: the hours of each count as one day's."""
        for name, use in list(found.uses.items())[: self._most]:
            self._learned[name] = LearnedWorkload(0, RunningMean(use.cores, 1), restore_hours(use.hours))


def restore_hours(text: str) -> list[RunningMean]:
    known: Sequence[float | None] = decode_hours(text)
    return [RunningMean() if one is None else RunningMean(one, HOUR_SAMPLES // 3) for one in known]
