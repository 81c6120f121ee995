"""
A seeded trace of FPGA work, replayed over simulated devices and the real policies.

Functions come as they do on a serverless platform: popularity falls off as
1/rank, each has bursts and pauses, its own session length and its own time to
load. A device has regions that keep their bitstream until it is replaced. Only
devices and time are simulated: events go through the real tracker into the
real annotation, at the annotator's own pace, and the real extender scores.

Three policies: `cost` and `rank` as the extender has them, and `greedy`, which
sees the devices themselves: it sends every pod where it will in fact lose the
least. No extender can know that; it shows how much there was to gain.
"""

import heapq
import math
import random
import statistics
from dataclasses import dataclass, field
from threading import Event
from typing import Any

from bench.result import quantile
from nodescope.fpga.state import KEY, is_material, render_state
from nodescope.fpga.tracker import FpgaEvent, FpgaReading, FpgaTracker
from nodescope.use.scheduler.explain import Decisions
from nodescope.use.scheduler.extender import Extender
from nodescope.use.scheduler.nodes import Nodes
from nodescope.use.scheduler.placed_pods import PlacedPods
from nodescope.use.scheduler.pod_request import PodRequest
from nodescope.use.scheduler.wire import ExtenderCall

GREEDY = "greedy"
NODES = 10
REGIONS = 2
FUNCTIONS = 40
SECONDS = 600.0
# Sessions a second over all nodes. Heavy keeps a third of all regions busy
# with sessions alone, in bursts all of them.
LOADS = {"light": 2.0, "medium": 5.0, "heavy": 12.0}
START_NS = 1_690_000_000_000_000_000
LOOK_SECONDS, LEAST_SECONDS, HEARTBEAT_SECONDS = 1.0, 10.0, 60.0


@dataclass(slots=True)
class Clock:
    """The trace's own time."""

    ns: int = START_NS

    def wall_ns(self) -> int:
        return self.ns

    def mono_ns(self) -> int:
        return self.ns

    def wait_until(self, deadline_mono_ns: int, stop: Event) -> bool:
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Arrival:
    at_seconds: float
    bitstream: str
    session_ms: float
    load_ms: float


@dataclass(slots=True)
class Region:
    bitstream: str = ""
    free_at: float = 0.0
    used_at: float = 0.0


@dataclass(slots=True)
class Device:
    tracker: FpgaTracker
    regions: list[Region] = field(default_factory=lambda: [Region() for _ in range(REGIONS)])
    busy_ms: float = 0.0
    load_ms: float = 0.0
    written: FpgaReading | None = None
    written_at: float = -math.inf

    def pick(self, arrival: Arrival) -> tuple[Region, float]:
        """The region that has the bitstream, else the one that is free first; ms to load it there."""
        for region in self.regions:
            if region.bitstream == arrival.bitstream:
                return region, 0.0
        now = arrival.at_seconds
        return min(self.regions, key=lambda one: (max(one.free_at, now), one.used_at)), arrival.load_ms


@dataclass(frozen=True, slots=True)
class Outcome:
    cold_share: float
    lost_ms: float
    """Mean of waiting and loading: from being placed to the session's begin."""
    lost_p95_ms: float
    usage_spread: float
    """Standard deviation over mean of what the nodes' devices did."""
    load_spread: float


def make_trace(seed: int, load: str, seconds: float = SECONDS) -> list[Arrival]:
    chance = random.Random(seed)
    shares = [1 / (rank + 1) for rank in range(FUNCTIONS)]
    trace = []
    for rank, share in enumerate(shares):
        rate = LOADS[load] * share / sum(shares)
        session_ms = math.exp(chance.gauss(math.log(400), 0.6))
        load_ms = math.exp(chance.gauss(math.log(300), 0.8))
        at_seconds, burst_until = 0.0, 0.0
        while at_seconds < seconds:
            # Half of the work comes in bursts at four times the pace.
            if at_seconds >= burst_until and chance.random() < 0.05:
                burst_until = at_seconds + chance.expovariate(1 / 20)
            pace = rate * (4 if at_seconds < burst_until else 0.6)
            at_seconds += chance.expovariate(pace)
            length_ms = session_ms * math.exp(chance.gauss(0, 0.4))
            trace.append(Arrival(at_seconds, f"bitstream-{rank:02}", length_ms, load_ms))
    return sorted((one for one in trace if one.at_seconds < seconds), key=lambda one: one.at_seconds)


class Replay:
    """One policy over one trace."""

    def __init__(self, policy: str, seed: int) -> None:
        self.clock = Clock()
        self.nodes = Nodes(self.clock)
        self.placed = PlacedPods(self.clock)
        self.policy = policy
        scored_by = "cost" if policy == GREEDY else policy
        self.extender = Extender(self.nodes, self.placed, Decisions(), self.clock, scored_by)
        self.devices = {f"node-{number}": Device(FpgaTracker(self.clock)) for number in range(NODES)}
        self.names = tuple(self.devices)
        for device in self.devices.values():
            # The original's collector writes from its start on; a node it says nothing of gets no pod.
            device.tracker.accept(FpgaEvent(START_NS // 10**6, usage_ms=0.0))
        self.chance = random.Random(seed)
        self.later: list[tuple[float, int, Any]] = []
        self.count = 0

    def run(self, trace: list[Arrival]) -> Outcome:
        cold, lost = 0, []
        for name in self.names:
            self._write(name, self.devices[name].tracker.read(), 0.0)
        for number in range(NODES):
            self._at(number * LOOK_SECONDS / NODES, self._look, self.names[number])
        for number, arrival in enumerate(trace):
            self._pass_until(arrival.at_seconds)
            pod = PodRequest("d", f"p{number}", f"p{number}", "fpga", arrival.bitstream)
            node = self._choose(pod) if self.policy != GREEDY else self._choose_greedily(arrival)
            self.placed.change(self._pod(pod, node, "Running"))
            was_cold, lost_ms, end = self._execute(self.devices[node], arrival)
            self._at(end, self._end, (pod, node))
            cold += was_cold
            lost.append(lost_ms)
        return Outcome(
            cold / len(trace),
            statistics.fmean(lost),
            quantile(lost, 0.95),
            spread([device.busy_ms for device in self.devices.values()]),
            spread([device.load_ms for device in self.devices.values()]),
        )

    def _choose(self, pod: PodRequest) -> str:
        """The best score; among equals kube-scheduler takes one by chance."""
        self.extender.prioritize(ExtenderCall(pod, self.names))
        decision = self.extender.decisions.find(pod.key)
        assert decision is not None
        best = max(one.score for one in decision.ratings)
        return self.chance.choice([one.node for one in decision.ratings if one.score == best])

    def _choose_greedily(self, arrival: Arrival) -> str:
        """The least loss; among equals the device that has worked least."""

        def judge(name: str) -> tuple[float, float]:
            device = self.devices[name]
            region, load_ms = device.pick(arrival)
            waits_ms = max(0.0, region.free_at - arrival.at_seconds) * 1000
            return waits_ms + load_ms, device.busy_ms

        return min(self.names, key=judge)

    def _execute(self, device: Device, arrival: Arrival) -> tuple[bool, float, float]:
        now = arrival.at_seconds
        region, load_ms = device.pick(arrival)
        begin = max(now, region.free_at)
        end = begin + (load_ms + arrival.session_ms) / 1000
        region.bitstream, region.free_at, region.used_at = arrival.bitstream, end, end
        device.busy_ms += load_ms + arrival.session_ms
        device.load_ms += load_ms
        if load_ms:
            self._at(begin + load_ms / 1000, self._report, (device, arrival, True))
        self._at(end, self._report, (device, arrival, False))
        return load_ms > 0, (begin - now) * 1000 + load_ms, end

    def _report(self, told: tuple[Device, Arrival, bool]) -> None:
        device, arrival, is_load = told
        at_ms = self.clock.ns // 10**6
        if is_load:
            event = FpgaEvent(at_ms, reconfiguration_ms=arrival.load_ms, bitstream=arrival.bitstream)
        else:
            event = FpgaEvent(at_ms, usage_ms=arrival.session_ms, bitstream=arrival.bitstream)
        device.tracker.accept(event)

    def _end(self, told: tuple[PodRequest, str]) -> None:
        self.placed.change(self._pod(*told, "Succeeded"))

    def _look(self, name: str) -> None:
        """The annotator's rule, without its chance."""
        device = self.devices[name]
        now = (self.clock.ns - START_NS) / 1e9
        reading = device.tracker.read()
        age = now - device.written_at
        if reading.heard and (
            age >= HEARTBEAT_SECONDS or (age >= LEAST_SECONDS and is_material(device.written, reading))
        ):
            self._write(name, reading, now)
        self._at(now + LOOK_SECONDS, self._look, name)

    def _write(self, name: str, reading: FpgaReading, now: float) -> None:
        device = self.devices[name]
        self.nodes.change({"metadata": {"name": name, "annotations": {KEY: render_state(reading)}}})
        device.written, device.written_at = reading, now

    def _pod(self, pod: PodRequest, node: str, phase: str) -> dict[str, Any]:
        labels = {
            "fpga-scheduling.io/enabled": "true",
            "fpga-scheduling.io/bitstream-identifier": pod.bitstream,
        }
        about = {"name": pod.name, "namespace": pod.namespace, "uid": pod.uid, "labels": labels}
        return {"metadata": about, "spec": {"nodeName": node}, "status": {"phase": phase}}

    def _at(self, seconds: float, action: Any, told: Any) -> None:
        self.count += 1
        heapq.heappush(self.later, (seconds, self.count, (action, told)))

    def _pass_until(self, seconds: float) -> None:
        while self.later and self.later[0][0] <= seconds:
            at_seconds, _, (action, told) = heapq.heappop(self.later)
            self.clock.ns = START_NS + round(at_seconds * 1e9)
            action(told)
        self.clock.ns = START_NS + round(seconds * 1e9)


def spread(values: list[float]) -> float:
    mean = statistics.fmean(values)
    return statistics.pstdev(values) / mean if mean else 0.0


def replay(policy: str, seed: int, load: str = "medium", seconds: float = SECONDS) -> Outcome:
    return Replay(policy, seed).run(make_trace(seed, load, seconds))
