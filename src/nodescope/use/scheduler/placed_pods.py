"""
Pods that were placed and that no window shows yet.

A node's annotation describes the past: ten pods within ten seconds would all
find the same node idle. So pods that were just placed are counted here:

    expected   by our own answer: on the node that we scored best, until the
               watch of pods shows where it really went, or half a minute passed;
               only pods that the watch has shown waiting, for anybody who reaches
               the port can ask about pods that do not exist
    bound      by the watch, with weight 1 at first and less as the node's own
               window fills with what the pod does: 1 - age / horizon

It also keeps which bitstreams were sent to each node last, even after their
pods ended: a device keeps a bitstream until another replaces it, and the
annotation shows it only seconds later.

A replica that restarts, or a second one, learns all but the last milliseconds
from the watch: there is no leader.
"""

import threading
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import chain, takewhile
from typing import Any, TypeVar

from nodescope.base.clock import Clock
from nodescope.base.errors import RequestRejected
from nodescope.use.scheduler.devices.device_request import Devices
from nodescope.use.scheduler.node import parse_moment_ms
from nodescope.use.scheduler.pod_request import KINDS, PodRequest, parse_pod_request, read_mapping, read_text

# kube-scheduler binds within seconds, or asks again.
EXPECTED_SECONDS = 30.0
# The windows that will show the pod: five minutes of FPGA usage; 20 s of load,
# written at least once a minute.
HORIZON_SECONDS = {"fpga": 300.0, "gpu": 80.0, "claim": 80.0, "balance": 80.0}
# A device has a few regions: a bitstream older than this many others is gone.
BITSTREAMS_KEPT = 8
# More than a cluster places within a horizon; beyond it the oldest are dropped.
ENTRIES = 20_000
# Answers about pods that the watch has not shown yet; it is milliseconds behind at most.
UNSEEN = 1000
ENDED = ("Succeeded", "Failed")
# Looking through all pods on their way for those that are there takes longer than most answers.
PRUNE_NS = 1_000_000_000
# Of a device, for a pod of which nothing is known; a guess.
SHARE = 0.25

Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class PlacedPod:
    """One pod on its way."""

    pod: PodRequest
    node: str
    since_mono_ns: int
    is_bound: bool

    def weight(self, now_mono_ns: int) -> float:
        age_seconds = (now_mono_ns - self.since_mono_ns) / 1e9
        if not self.is_bound:
            return 1.0 if age_seconds < EXPECTED_SECONDS else 0.0
        return max(0.0, 1.0 - max(0.0, age_seconds) / HORIZON_SECONDS[self.pod.kind])


@dataclass(slots=True)
class SeenPods:
    """What the watch of pods has shown; readers hold the owner's lock."""

    bound: dict[str, PlacedPod] = field(default_factory=dict)
    waiting: dict[str, None] = field(default_factory=dict)
    """Pods of our kinds that have no node, the oldest first."""
    settled: dict[str, str] = field(default_factory=dict)
    """FPGA pods whose work the windows already show: uid -> node."""
    settled_count: Counter[str] = field(default_factory=Counter)
    lately: deque[tuple[int, str]] = field(default_factory=deque)
    """When FPGA pods were bound (monotonic ns) and where, within the window that shows their sessions."""
    lately_count: Counter[str] = field(default_factory=Counter)
    devices: dict[str, tuple[str, Devices]] = field(default_factory=dict)
    """Pods that have whole devices, for as long as they live: uid -> node and devices."""
    has_asked: bool = False
    """Whether any pod asked for devices."""

    def drop_oldest(self) -> None:
        _, node = self.lately.popleft()
        self.lately_count[node] -= 1
        if not self.lately_count[node]:
            del self.lately_count[node]


@dataclass(frozen=True, slots=True)
class PodSize:
    """What one pod takes of its node."""

    cores: float = 0.0
    """0 where it is not known."""
    bandwidth: float = 0.0
    gpu: float = SHARE


def size_by_request(pod: PodRequest) -> PodSize:
    """As far as the pod itself says."""
    return PodSize(pod.cores)


@dataclass(slots=True)
class Arriving:
    """What is on its way to one node."""

    pods: float = 0.0
    """Each by its weight."""
    cores: float = 0.0
    """That those of them ask for who say so, by weight."""
    unsized: float = 0.0
    """The others, by weight."""
    bandwidth: float = 0.0
    """GB/s, as far as it is known of their workloads, by weight."""
    gpus: float = 0.0
    """Of a GPU, by weight."""
    bitstreams: set[str] = field(default_factory=set)

    def add(self, pod: PodRequest, size: PodSize, weight: float) -> None:
        self.pods += weight
        self.cores += weight * size.cores
        self.unsized += 0.0 if size.cores else weight
        self.bandwidth += weight * size.bandwidth
        self.gpus += weight * size.gpu
        if pod.bitstream:
            self.bitstreams.add(pod.bitstream)

    def share(self, cpus: float, usual: float) -> float:
        """Of a node with so many CPUs; a pod that asks for nothing, or a node of unknown size: the usual share."""
        if cpus < 1:
            return self.pods * usual
        return self.cores / cpus + self.unsized * usual


class PlacedPods:
    """Fed by our answers and by the watch of pods; any thread."""

    def __init__(self, clock: Clock, *, is_watched: bool = True) -> None:
        self._clock = clock
        self._is_watched = is_watched
        """Whether a watch shows pods; without one every answer counts."""
        self._lock = threading.Lock()
        self._seen = SeenPods()
        self._expected: dict[str, PlacedPod] = {}
        """By our answers, of pods that the watch shows waiting."""
        self._unseen: OrderedDict[str, PlacedPod] = OrderedDict()
        """By our answers, of pods that the watch has not shown: not counted until it does."""
        self.bound_total: Counter[bool] = Counter()
        """Pods of ours that were bound since the start, by whether a scheduler had asked us."""
        self._sent: dict[str, dict[str, int]] = {}
        """Node -> bitstream -> wall ms when a pod with it was last bound there, oldest first."""
        self._touched: dict[str, int] = {}
        """Node -> the number of the last change of its FPGA pods on their way, in this order."""
        self.touches = 0
        """Such changes so far."""
        self._pruned_mono_ns = -PRUNE_NS

    def __len__(self) -> int:
        return len(self._seen.bound) + len(self._expected)

    def note(self, pod: PodRequest, node: str) -> None:
        """Our answer favours this node for this pod."""
        with self._lock:
            if pod.uid in self._seen.bound or pod.uid in self._seen.settled:
                return
            entry = PlacedPod(pod, node, self._clock.mono_ns(), is_bound=False)
            self._unexpect(pod.uid)
            if not self._is_watched or pod.uid in self._seen.waiting:
                self._expect(pod.uid, entry)
            else:
                put_bounded(self._unseen, pod.uid, entry, UNSEEN)

    def arriving(
        self,
        kind: str,
        size: Callable[[PodRequest], PodSize] = size_by_request,
        nodes: Container[str] | None = None,
    ) -> dict[str, Arriving]:
        """By node, of all nodes or of these: the pods of a kind that no window shows yet, each by its size."""
        now_mono_ns = self._clock.mono_ns()
        found: dict[str, Arriving] = {}
        with self._lock:
            self._prune(now_mono_ns)
            for entry in chain(self._seen.bound.values(), self._expected.values()):
                if entry.pod.kind == kind and (nodes is None or entry.node in nodes):
                    one = found.get(entry.node)
                    if one is None:
                        one = found[entry.node] = Arriving()
                    one.add(entry.pod, size(entry.pod), entry.weight(now_mono_ns))
        return found

    def expected(self) -> list[tuple[PodRequest, str]]:
        """Pods that our answers favour a node for, and that the watch has not shown there."""
        now_mono_ns = self._clock.mono_ns()
        with self._lock:
            return [(one.pod, one.node) for one in self._expected.values() if one.weight(now_mono_ns)]

    def held_devices(self) -> Counter[tuple[str, str]]:
        """(node, resource) -> how many the living pods have there."""
        with self._lock:
            kept = list(self._seen.devices.values())
        return sum_devices(kept)

    def asks_devices(self) -> bool:
        return self._seen.has_asked

    def forget(self, uid: str) -> None:
        """Removes what our earlier answer about this pod expected."""
        with self._lock:
            self._unexpect(uid)
            self._unseen.pop(uid, None)

    def count_settled(self) -> int:
        return len(self._seen.settled)

    def sent(self, node: str) -> Mapping[str, int]:
        """The bitstreams of the pods bound to a node last -> when (wall ms)."""
        return self._sent.get(node, {})

    def sent_to(self, bitstream: str) -> list[str]:
        """The nodes that a pod with this bitstream was bound to lately; none for an empty name."""
        return [node for node, sent in list(self._sent.items()) if bitstream in sent] if bitstream else []

    def touched_since(self, touches: int) -> list[str]:
        """The nodes whose FPGA pods on their way, or what was sent to them, changed after so many changes."""
        with self._lock:
            newest_first = takewhile(lambda item: item[1] > touches, reversed(self._touched.items()))
            return [node for node, _ in newest_first]

    def settled(self, node: str) -> int:
        """FPGA pods of a node that its window shows."""
        return self._seen.settled_count[node]

    def bound_lately(self) -> Mapping[str, int]:
        """By node: FPGA pods bound within the window, those that have ended among them."""
        oldest = self._clock.mono_ns() - round(HORIZON_SECONDS["fpga"] * 1e9)
        with self._lock:
            while self._seen.lately and self._seen.lately[0][0] < oldest:
                self._seen.drop_oldest()
            return self._seen.lately_count

    # -- the watch of pods --------------------------------------------------

    def replace(self, items: Iterable[Mapping[str, Any]]) -> None:
        """All pods there are, one by one: what is kept of each is small. Expected ones stay."""
        seen = SeenPods()
        for item in items:
            self._take(seen, item)
        with self._lock:
            before, self._seen = self._seen, seen
            for entry in (*before.bound.values(), *seen.bound.values()):
                self._touch(entry)
            for uid in (*seen.waiting, *seen.bound):
                self._see(uid)

    def change(self, item: Mapping[str, Any]) -> None:
        with self._lock:
            uid = self._take(self._seen, item)
            if uid:
                self._see(uid)

    def remove(self, item: Mapping[str, Any]) -> None:
        try:
            pod = parse_pod_request(item)
        except RequestRejected:
            return
        with self._lock:
            self._drop(self._seen, pod.uid)
            self._unexpect(pod.uid)

    def _take(self, seen: SeenPods, item: Mapping[str, Any]) -> str:
        """Adds one pod to what was seen; its uid, where it is one of ours."""
        try:
            pod = parse_pod_request(item)
        except RequestRejected:
            return ""
        if pod.kind not in KINDS:
            return ""
        seen.has_asked = seen.has_asked or bool(pod.devices)
        node, status = read_text(read_mapping(item, "spec"), "nodeName"), read_mapping(item, "status")
        if read_text(status, "phase") in ENDED:
            self._drop(seen, pod.uid)
        elif node:
            if pod.devices:
                put_bounded(seen.devices, pod.uid, (node, pod.devices), ENTRIES)
            self._bind(seen, pod, node, status)
        else:
            put_bounded(seen.waiting, pod.uid, None, ENTRIES)
        return pod.uid

    def _see(self, uid: str) -> None:
        """The watch shows this pod now: our answer about it counts, or is no longer needed."""
        told = self._unseen.pop(uid, None) or self._expected.get(uid)
        if told is not None and uid in self._seen.waiting:
            self._expect(uid, told)
        else:
            self._unexpect(uid)

    def _expect(self, uid: str, entry: PlacedPod) -> None:
        put_bounded(self._expected, uid, entry, ENTRIES)
        self._touch(entry)

    def _unexpect(self, uid: str) -> None:
        self._touch(self._expected.pop(uid, None))

    def _touch(self, entry: PlacedPod | None) -> None:
        """Something about the FPGA pods of a node is another now."""
        if entry is None or entry.pod.kind != "fpga":
            return
        # Counted last: who has seen this number finds what changed, too.
        self._touched.pop(entry.node, None)
        self._touched[entry.node] = self.touches + 1
        self.touches += 1
        if len(self._touched) > ENTRIES:
            # Nodes come and go: of the one that had no pod for longest, what was sent is forgotten.
            oldest = next(iter(self._touched))
            del self._touched[oldest]
            self._sent.pop(oldest, None)

    def _bind(self, seen: SeenPods, pod: PodRequest, node: str, status: Mapping[str, Any]) -> None:
        seen.waiting.pop(pod.uid, None)
        if pod.uid in seen.bound or pod.uid in seen.settled:
            return
        age_ns = self._age_ns(status)
        self._send(pod, node, (self._clock.wall_ns() - age_ns) // 1_000_000)
        entry = PlacedPod(pod, node, self._clock.mono_ns() - age_ns, is_bound=True)
        if seen is self._seen:
            self._touch(entry)
        if entry.weight(self._clock.mono_ns()) > 0:
            if seen is self._seen:
                # Not counted again when an older pod changes.
                self.bound_total[pod.uid in self._expected or pod.uid in self._unseen] += 1
            put_bounded(seen.bound, pod.uid, entry, ENTRIES)
            if pod.kind == "fpga":
                seen.lately.append((entry.since_mono_ns, node))
                seen.lately_count[node] += 1
                if len(seen.lately) > ENTRIES:
                    seen.drop_oldest()
        else:
            self._settle(seen, entry)

    def _send(self, pod: PodRequest, node: str, at_ms: int) -> None:
        """Replaced as a whole, because readers hold no lock."""
        if pod.bitstream:
            sent = dict(self._sent.get(node, {}))
            sent[pod.bitstream] = max(at_ms, sent.pop(pod.bitstream, 0))
            newest = sorted(sent.items(), key=lambda item: item[1])[-BITSTREAMS_KEPT:]
            self._sent[node] = dict(newest)

    def _age_ns(self, status: Mapping[str, Any]) -> int:
        """How long ago the pod was bound, by the API server's clock; 0 when it does not say."""
        conditions = status.get("conditions")
        for condition in conditions if isinstance(conditions, list) else ():
            if isinstance(condition, Mapping) and condition.get("type") == "PodScheduled":
                at_ms = parse_moment_ms(read_text(condition, "lastTransitionTime"))
                if at_ms is not None:
                    return max(0, self._clock.wall_ns() - at_ms * 1_000_000)
        return 0

    def _drop(self, seen: SeenPods, uid: str) -> None:
        entry = seen.bound.pop(uid, None)
        if seen is self._seen:
            self._touch(entry)
        seen.waiting.pop(uid, None)
        seen.devices.pop(uid, None)
        node = seen.settled.pop(uid, None)
        if node is not None:
            seen.settled_count[node] -= 1

    def _settle(self, seen: SeenPods, entry: PlacedPod) -> None:
        if entry.pod.kind == "fpga" and entry.pod.uid not in seen.settled:
            seen.settled[entry.pod.uid] = entry.node
            seen.settled_count[entry.node] += 1

    def _prune(self, now_mono_ns: int) -> None:
        """Now and then: what has no weight any more counts for nothing meanwhile."""
        if 0 <= now_mono_ns - self._pruned_mono_ns < PRUNE_NS:
            return
        self._pruned_mono_ns = now_mono_ns
        for kept in (self._expected, self._unseen):
            for uid in [uid for uid, entry in kept.items() if not entry.weight(now_mono_ns)]:
                self._touch(kept.pop(uid))
        for uid in [uid for uid, entry in self._seen.bound.items() if not entry.weight(now_mono_ns)]:
            entry = self._seen.bound.pop(uid)
            self._touch(entry)
            self._settle(self._seen, entry)


def sum_devices(kept: Iterable[tuple[str, Devices]]) -> Counter[tuple[str, str]]:
    total: Counter[tuple[str, str]] = Counter()
    for node, devices in kept:
        for name, count in devices:
            total[node, name] += count
    return total


def put_bounded(kept: dict[str, Value], key: str, value: Value, most: int) -> None:
    """Beyond the bound the oldest is dropped."""
    kept[key] = value
    if len(kept) > most:
        del kept[next(iter(kept))]
