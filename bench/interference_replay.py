"""
The traces of bench/interference.py, placed by five schedulers, each on a cluster of its own.

    stock      LeastAllocated and BalancedAllocation: requests alone
    tlp        Trimaran's TargetLoadPacking at its target of 40 %: CPU of the last 15 minutes, and
               1.5 times the request of pods that were just bound
    today      the extender without profiles: windows alone
    profiles   the extender with what workloads used
    oracle     knows what every pod will want at every hour and how much it suffers, and puts each
               pod where all pods together lose least, if who leaves is replaced by his like; no
               scheduler can know that

Only machines and time are simulated. What nodes measure goes through the agent's own tracker
of workloads and its annotations, written when the annotator would, and the real extender scores;
its scores are added to the stock ones as kube-scheduler adds them. `pcm` is the share of nodes
that measure memory bandwidth.
"""

import random
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.interference import (
    CORES,
    HOURS_BEFORE,
    HOURS_MEASURED,
    MEMORY_GIB,
    NODES,
    PEAK_GBPS,
    Arrival,
    Strain,
    Trace,
    describe,
    slow_down,
    strain,
)
from bench.scheduler_replay import START_NS, Clock
from nodescope.fpga.node_load import WINDOW_KEY, NodeLoad, render_load
from nodescope.fpga.node_workloads import WORKLOADS_KEY, render_workloads
from nodescope.hold.pods.workload_tracker import NodeSample, WorkloadSample, WorkloadTracker
from nodescope.publish.annotation_content import differs
from nodescope.publish.workload_content import RenewedWorkloads
from nodescope.use.scheduler.explain import Decisions
from nodescope.use.scheduler.extender import Extender
from nodescope.use.scheduler.nodes import Nodes
from nodescope.use.scheduler.placed_pods import PlacedPods
from nodescope.use.scheduler.pod_request import BALANCE, parse_pod_request
from nodescope.use.scheduler.wire import ExtenderCall

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
STOCK, TLP, TODAY, PROFILES, ORACLE = POLICIES = ("stock", "tlp", "today", "profiles", "oracle")
TICK_SECONDS = 60.0
# kube-scheduler's weight of the extender in deploy/scheduler/config.yaml, and its own factor.
EXTENDER_FACTOR = 2 * 10
TLP_TARGET, TLP_MULTIPLIER, TLP_TICKS = 40.0, 1.5, 15
ORACLE_MOMENTS = 6
HASH = "66b6c48dd5"


@dataclass(frozen=True, slots=True)
class Slowdown:
    """Over all pods that ran in the measured hours: what each took for its work, 1 being alone."""

    mean: float
    p95: float


def add_by_node(node: Integers, values: Floats) -> Floats:
    found: Floats = np.bincount(node, values, NODES).astype(np.float64)
    return found


class Cluster:
    """The nodes of one scheduler."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        count = len(trace.arrivals)
        self.node = np.full(count, -1, dtype=np.int64)
        self.numbers = np.array([one.application for one in trace.arrivals])
        self.factors = np.array([one.factor for one in trace.arrivals])
        self.ends = np.array([one.end_seconds for one in trace.arrivals])
        self.behaviour = describe(trace.applications)
        self.chance = np.random.default_rng([trace.seed, 1])
        self.noise = np.zeros(count)
        self.slow, self.ticks = np.zeros(count), np.zeros(count)
        self.requested, self.requested_gib = np.zeros(NODES), np.zeros(NODES)
        self.state = strain(np.zeros(NODES), np.zeros(NODES))
        self.running = np.zeros(0, dtype=np.int64)
        self.got = np.zeros(0)

    def put(self, number: int, node: int) -> None:
        application = self.trace.applications[self.numbers[number]]
        self.node[number] = node
        self.requested[node] += application.request
        self.requested_gib[node] += application.memory_gib

    def end(self, number: int) -> None:
        node, application = self.node[number], self.trace.applications[self.numbers[number]]
        self.requested[node] -= application.request
        self.requested_gib[node] -= application.memory_gib

    def pass_tick(self, at_seconds: float, arrived: int) -> None:
        """What everybody wants and gets from now to the next tick."""
        # The same chance for every scheduler: one draw for each pod there will ever be.
        self.noise = 0.8 * self.noise + 0.6 * self.chance.normal(size=len(self.noise))
        alive = np.flatnonzero(self.ends[:arrived] > at_seconds)
        numbers, node = self.numbers[alive], self.node[alive]
        calm = self.behaviour.want(numbers, self.factors[alive], at_seconds)
        wanted = calm * np.exp(self.behaviour.noise[numbers] * self.noise[alive])
        moved = wanted * self.behaviour.bandwidth[numbers]
        self.state = strain(add_by_node(node, wanted), add_by_node(node, moved))
        self.running, self.got = alive, wanted / self.state.stretch[node]
        if at_seconds >= HOURS_BEFORE * 3600:
            self.slow[alive] += slow_down(self.state, node, self.behaviour, numbers)
            self.ticks[alive] += 1

    def judge(self) -> Slowdown:
        ran = self.ticks > 0
        means = self.slow[ran] / self.ticks[ran]
        return Slowdown(float(means.mean()), float(np.quantile(means, 0.95)))


# -- schedulers -----------------------------------------------------------------------


class Scheduler:
    """Stock kube-scheduler: what is requested."""

    def __init__(self, cluster: Cluster, seed: int) -> None:
        self.cluster = cluster
        self.chance = random.Random(seed)

    def choose(self, number: int, at_seconds: float) -> int:
        scores = self.score(number, at_seconds)
        fits = self.fits(number)
        allowed = np.flatnonzero(fits) if fits.any() else np.arange(NODES)
        best = scores[allowed].max()
        return int(self.chance.choice([int(one) for one in allowed if scores[one] >= best - 1e-9]))

    def fits(self, number: int) -> NDArray[np.bool_]:
        application = self._application(number)
        cluster = self.cluster
        return np.asarray(
            (cluster.requested + application.request <= CORES)
            & (cluster.requested_gib + application.memory_gib <= MEMORY_GIB)
        )

    def score(self, number: int, at_seconds: float) -> Floats:
        del at_seconds
        return self.score_requests(number)

    def score_requests(self, number: int) -> Floats:
        """LeastAllocated and BalancedAllocation, whole numbers of 0 to 100 each."""
        application = self._application(number)
        cores = np.minimum((self.cluster.requested + application.request) / CORES, 1.0)
        memory = np.minimum((self.cluster.requested_gib + application.memory_gib) / MEMORY_GIB, 1.0)
        least = np.floor(((1 - cores) + (1 - memory)) * 50)
        found: Floats = least + np.floor((1 - np.abs(cores - memory) / 2) * 100)
        return found

    def look(self, at_seconds: float) -> None:
        """After every tick."""

    def bound(self, number: int, node: int) -> None: ...

    def ended(self, number: int) -> None: ...

    def _application(self, number: int) -> Any:
        return self.cluster.trace.applications[self.cluster.numbers[number]]


class TargetLoadPacking(Scheduler):
    """Trimaran's, by its documented formula, instead of the stock scores."""

    def __init__(self, cluster: Cluster, seed: int) -> None:
        super().__init__(cluster, seed)
        self.seen: list[Floats] = []
        self.fresh: list[tuple[float, int, float]] = []
        self.at_seconds = 0.0

    def look(self, at_seconds: float) -> None:
        self.at_seconds = at_seconds
        self.seen = [*self.seen, np.minimum(self.cluster.state.wanted, 1.0)][-TLP_TICKS:]
        self.fresh = [one for one in self.fresh if one[0] > at_seconds - TICK_SECONDS]

    def bound(self, number: int, node: int) -> None:
        self.fresh.append((self.at_seconds, node, TLP_MULTIPLIER * self._application(number).request))

    def score(self, number: int, at_seconds: float) -> Floats:
        del at_seconds
        used = np.mean(self.seen, axis=0) * CORES if self.seen else np.zeros(NODES)
        for _, node, cores in self.fresh:
            used[node] += cores
        share = (used + TLP_MULTIPLIER * self._application(number).request) / CORES * 100
        rising = (100 - TLP_TARGET) * share / TLP_TARGET + TLP_TARGET
        falling = TLP_TARGET * (100 - share) / (100 - TLP_TARGET)
        found: Floats = np.round(np.where(share <= TLP_TARGET, rising, np.maximum(falling, 0.0)))
        return found


class Oracle(Scheduler):
    """All pods together lose least, whatever was requested."""

    def fits(self, number: int) -> NDArray[np.bool_]:
        del number
        return np.ones(NODES, bool)

    def score(self, number: int, at_seconds: float) -> Floats:
        cluster, behaviour = self.cluster, self.cluster.behaviour
        mine = np.array([cluster.numbers[number]])
        end = min(cluster.ends[number], (HOURS_BEFORE + HOURS_MEASURED) * 3600)
        there = np.flatnonzero((cluster.node >= 0) & (cluster.ends > at_seconds))
        lost = np.zeros(NODES)
        for moment in np.linspace(at_seconds, max(end, at_seconds + 60), ORACLE_MOMENTS):
            lost += self._add(moment, there, mine, cluster.factors[number : number + 1], behaviour)
        return -lost

    def _add(self, moment: float, stays: Integers, mine: Integers, factor: Floats, behaviour: Any) -> Floats:
        """What everybody loses more at one moment, by the node that the pod is put on."""
        node, numbers = self.cluster.node[stays], self.cluster.numbers[stays]
        wanted = behaviour.want(numbers, self.cluster.factors[stays], moment)
        own = behaviour.want(mine, factor, moment)[0]
        cores = add_by_node(node, wanted)
        moved = add_by_node(node, wanted * behaviour.bandwidth[numbers])
        before = strain(cores, moved)
        after = strain(cores + own, moved + own * behaviour.bandwidth[mine[0]])
        counts = np.bincount(node, minlength=NODES)
        impatience = add_by_node(node, behaviour.impatience[numbers])
        bound = add_by_node(node, behaviour.memory_bound[numbers])

        def total(state: Strain, more: bool) -> Floats:
            pods = counts + more
            patient = impatience + (behaviour.impatience[mine[0]] if more else 0.0)
            memory = bound + (behaviour.memory_bound[mine[0]] if more else 0.0)
            found: Floats = pods * state.stretch + patient * 0.5 * state.waiting + memory * state.bus_cost
            return found

        return total(after, True) - total(before, False)


class ExtenderScheduler(Scheduler):
    """The stock scores with the extender's."""

    def __init__(self, cluster: Cluster, seed: int, pcm: float, has_profiles: bool) -> None:
        super().__init__(cluster, seed)
        self.clock = Clock()
        self.nodes, self.placed = Nodes(self.clock), PlacedPods(self.clock)
        self.extender = Extender(self.nodes, self.placed, Decisions(), self.clock)
        self.names = tuple(f"node-{number:02}" for number in range(NODES))
        self.measures_bus = [number < pcm * NODES for number in range(NODES)]
        self.trackers = [WorkloadTracker() for _ in self.names] if has_profiles else []
        self.told = [RenewedWorkloads(tracker) for tracker in self.trackers]
        self.written: list[NodeLoad | None] = [None] * NODES
        self.unread: set[int] = set()
        """Nodes whose annotations were written, and are rendered when the extender next needs them."""
        self.noise = np.random.default_rng([seed, 2])

    def score(self, number: int, at_seconds: float) -> Floats:
        self._turn(at_seconds)
        for node in self.unread:
            about = {"name": self.names[node], "annotations": self._render(node)}
            self.nodes.change({"metadata": about})
        self.unread = set()
        pod = parse_pod_request(self._render_pod(number, ""))
        self.extender.prioritize(ExtenderCall(pod, self.names))
        decision = self.extender.decisions.find(pod.key)
        assert decision is not None
        scores = {one.node: one.score for one in decision.ratings}
        own = EXTENDER_FACTOR * np.array([float(scores[name]) for name in self.names])
        return np.asarray(self.score_requests(number) + own)

    def bound(self, number: int, node: int) -> None:
        self.placed.change(self._render_pod(number, self.names[node]))

    def ended(self, number: int) -> None:
        self.placed.change(self._render_pod(number, self.names[self.cluster.node[number]], "Succeeded"))

    def look(self, at_seconds: float) -> None:
        self._turn(at_seconds)
        samples = self._sample_workloads() if self.trackers else [{} for _ in self.names]
        state = self.cluster.state
        busy = np.minimum(state.wanted, 1.0) * self.noise.normal(1, 0.02, NODES)
        waits = np.clip(state.waiting * self.noise.normal(1, 0.05, NODES), 0, 1)
        bus = np.minimum(state.bus, 1.0) * self.noise.normal(1, 0.02, NODES)
        for node in range(NODES):
            metrics = {
                "mean_cpu_util": float(busy[node]),
                "mean_cpu_contention": float(waits[node]),
                "cpus": CORES,
            }
            if self.measures_bus[node]:
                metrics["mean_mem_bw_util"] = float(bus[node])
                metrics["mean_mem_bw"] = float(bus[node]) * PEAK_GBPS
            if self.trackers:
                self._observe(node, metrics, samples[node])
            self._write(node, NodeLoad(self.clock.ns / 1e9, 20, None, metrics))

    def _observe(self, node: int, metrics: dict[str, float], samples: dict[str, WorkloadSample]) -> None:
        seen = NodeSample(
            self.clock.ns / 1e9,
            metrics["mean_cpu_util"] * CORES,
            metrics.get("mean_mem_bw"),
            metrics["mean_cpu_contention"],
        )
        self.trackers[node].observe(seen, samples)

    def _write(self, node: int, load: NodeLoad) -> None:
        """As the annotator: on a material change, and once a minute; a tick is a minute."""
        before = self.written[node]
        if before is not None and load.at_seconds - before.at_seconds < 60 and not differs(before, load):
            return
        self.written[node] = load
        self.unread.add(node)

    def _render(self, node: int) -> dict[str, str]:
        load = self.written[node]
        assert load is not None
        annotations = {WINDOW_KEY: render_load(load)}
        if self.trackers and (told := self.told[node].renew()):
            annotations[WORKLOADS_KEY] = render_workloads(told)
        return annotations

    def _sample_workloads(self) -> list[dict[str, WorkloadSample]]:
        """What cgroups of the pods would show."""
        cluster = self.cluster
        numbers, node = cluster.numbers[cluster.running], cluster.node[cluster.running]
        count = len(cluster.trace.applications)
        place = node * count + numbers
        pods = np.bincount(place, minlength=NODES * count)
        cores = np.bincount(place, cluster.got, NODES * count)
        found: list[dict[str, WorkloadSample]] = [{} for _ in self.names]
        for one in np.flatnonzero(pods):
            where, which = divmod(int(one), count)
            application = cluster.trace.applications[which]
            # Who suffers more from waiting is seen waiting more.
            waits = float(cluster.state.waiting[where]) * min(1.0, application.impatience / 2)
            found[where][f"d/{application.name}"] = WorkloadSample(int(pods[one]), float(cores[one]), waits)
        return found

    def _turn(self, at_seconds: float) -> None:
        self.clock.ns = START_NS // 86_400_000_000_000 * 86_400_000_000_000 + round(at_seconds * 1e9)

    def _render_pod(self, number: int, node: str, phase: str = "Running") -> dict[str, Any]:
        application = self._application(number)
        owner = {"kind": "ReplicaSet", "name": f"{application.name}-{HASH}", "controller": True}
        about = {
            "name": f"{application.name}-{HASH}-{number:05}",
            "namespace": "d",
            "uid": f"u{number}",
            "labels": {BALANCE: "true", "pod-template-hash": HASH},
            "ownerReferences": [owner],
        }
        requests = {"cpu": f"{application.request:.1f}"}
        spec = {"nodeName": node, "containers": [{"resources": {"requests": requests}}]}
        return {"metadata": about, "spec": spec, "status": {"phase": phase}}


def build_scheduler(policy: str, cluster: Cluster, seed: int, pcm: float) -> Scheduler:
    if policy in (TODAY, PROFILES):
        return ExtenderScheduler(cluster, seed, pcm, policy == PROFILES)
    return {STOCK: Scheduler, TLP: TargetLoadPacking, ORACLE: Oracle}[policy](cluster, seed)


def replay(policy: str, trace: Trace, pcm: float = 1.0) -> Slowdown:
    cluster = Cluster(trace)
    scheduler = build_scheduler(policy, cluster, trace.seed, pcm)
    arrivals: tuple[Arrival, ...] = trace.arrivals
    ending = sorted(range(len(arrivals)), key=lambda number: arrivals[number].end_seconds)
    arrived = ended = 0
    for tick in range(round((HOURS_BEFORE + HOURS_MEASURED) * 3600 / TICK_SECONDS)):
        at_seconds = tick * TICK_SECONDS
        while arrived < len(arrivals) and arrivals[arrived].at_seconds <= at_seconds:
            node = scheduler.choose(arrived, arrivals[arrived].at_seconds)
            cluster.put(arrived, node)
            scheduler.bound(arrived, node)
            arrived += 1
        while ended < len(ending) and arrivals[ending[ended]].end_seconds <= at_seconds:
            cluster.end(ending[ended])
            scheduler.ended(ending[ended])
            ended += 1
        cluster.pass_tick(at_seconds, arrived)
        scheduler.look(at_seconds)
    return cluster.judge()
