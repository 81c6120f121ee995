"""
Pods that were placed and that no window shows yet.

A node's annotation describes the past: ten pods within ten seconds would all
find the same node idle. So pods that were just placed are counted here:

    expected   by our own answer: on the node that we scored best, until the
               watch of pods shows where it really went, or half a minute passed
    bound      by the watch, with weight 1 at first and less as the node's own
               window fills with what the pod does: 1 - age / horizon

It also keeps which bitstreams were sent to each node last, even after their
pods ended: a device keeps a bitstream until another replaces it, and the
annotation shows it only seconds later.

A replica that restarts, or a second one, learns all but the last milliseconds
from the watch: there is no leader.
"""

import threading
from collections import Counter, deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from nodescope.base.clock import Clock
from nodescope.base.errors import RequestRejected
from nodescope.use.scheduler.node import parse_moment_ms
from nodescope.use.scheduler.pod_request import KINDS, PodRequest, parse_pod_request, read_mapping, read_text

# kube-scheduler binds within seconds, or asks again.
EXPECTED_SECONDS = 30.0
# The windows that will show the pod: five minutes of FPGA usage; 20 s of load,
# written at least once a minute.
HORIZON_SECONDS = {"fpga": 300.0, "gpu": 80.0, "balance": 80.0}
# A device has a few regions: a bitstream older than this many others is gone.
BITSTREAMS_KEPT = 8
# More than a cluster places within a horizon; beyond it the oldest are dropped.
ENTRIES = 20_000
ENDED = ("Succeeded", "Failed")


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
class Arriving:
    """What is on its way to one node."""

    pods: float = 0.0
    """Each by its weight."""
    bitstreams: set[str] = field(default_factory=set)


class PlacedPods:
    """Fed by our answers and by the watch of pods; any thread."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._entries: dict[str, PlacedPod] = {}
        self._settled: dict[str, str] = {}
        """FPGA pods whose work the windows already show: uid -> node."""
        self._settled_count: Counter[str] = Counter()
        self._sent: dict[str, dict[str, int]] = {}
        """Node -> bitstream -> wall ms when a pod with it was last bound there, oldest first."""
        self._bound: deque[int] = deque(maxlen=ENTRIES)
        """When FPGA pods were bound (monotonic ns), within the window that shows their sessions."""

    def __len__(self) -> int:
        return len(self._entries)

    def note(self, pod: PodRequest, node: str) -> None:
        """Our answer favours this node for this pod."""
        with self._lock:
            known = self._entries.get(pod.uid)
            if known is None or not known.is_bound:
                self._put(PlacedPod(pod, node, self._clock.mono_ns(), is_bound=False))

    def arriving(self, kind: str) -> dict[str, Arriving]:
        """By node: the pods of a kind that no window shows yet."""
        now_mono_ns = self._clock.mono_ns()
        found: dict[str, Arriving] = {}
        with self._lock:
            self._prune(now_mono_ns)
            for entry in self._entries.values():
                if entry.pod.kind == kind:
                    one = found.setdefault(entry.node, Arriving())
                    one.pods += entry.weight(now_mono_ns)
                    if entry.pod.bitstream:
                        one.bitstreams.add(entry.pod.bitstream)
        return found

    def forget(self, uid: str) -> None:
        """Removes what our earlier answer about this pod expected."""
        with self._lock:
            known = self._entries.get(uid)
            if known is not None and not known.is_bound:
                del self._entries[uid]

    def sent(self, node: str) -> Mapping[str, int]:
        """The bitstreams of the pods bound to a node last -> when (wall ms)."""
        return self._sent.get(node, {})

    def settled(self, node: str) -> int:
        """FPGA pods of a node that its window shows."""
        return self._settled_count[node]

    def bound_lately(self) -> int:
        """FPGA pods bound within the window, those that have ended among them."""
        oldest = self._clock.mono_ns() - round(HORIZON_SECONDS["fpga"] * 1e9)
        with self._lock:
            while self._bound and self._bound[0] < oldest:
                self._bound.popleft()
            return len(self._bound)

    def replace(self, items: Iterable[Mapping[str, Any]]) -> None:
        """All pods there are; expected ones stay."""
        with self._lock:
            self._entries = {uid: entry for uid, entry in self._entries.items() if not entry.is_bound}
            self._bound.clear()
            self._settled.clear()
            self._settled_count.clear()
        for item in items:
            self.change(item)

    def change(self, item: Mapping[str, Any]) -> None:
        try:
            pod = parse_pod_request(item)
        except RequestRejected:
            return
        if pod.kind not in KINDS:
            return
        node = read_text(read_mapping(item, "spec"), "nodeName")
        status = read_mapping(item, "status")
        with self._lock:
            if read_text(status, "phase") in ENDED:
                self._drop(pod.uid)
            elif node:
                self._bind(pod, node, status)

    def remove(self, item: Mapping[str, Any]) -> None:
        try:
            pod = parse_pod_request(item)
        except RequestRejected:
            return
        with self._lock:
            self._drop(pod.uid)

    def _bind(self, pod: PodRequest, node: str, status: Mapping[str, Any]) -> None:
        known = self._entries.get(pod.uid)
        if (known is not None and known.is_bound) or pod.uid in self._settled:
            return
        age_ns = self._age_ns(status)
        self._send(pod, node, (self._clock.wall_ns() - age_ns) // 1_000_000)
        entry = PlacedPod(pod, node, self._clock.mono_ns() - age_ns, is_bound=True)
        if entry.weight(self._clock.mono_ns()) > 0:
            self._put(entry)
            if pod.kind == "fpga":
                self._bound.append(entry.since_mono_ns)
        else:
            self._entries.pop(pod.uid, None)
            self._settle(entry)

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

    def _put(self, entry: PlacedPod) -> None:
        self._entries[entry.pod.uid] = entry
        if len(self._entries) > ENTRIES:
            del self._entries[next(iter(self._entries))]

    def _drop(self, uid: str) -> None:
        self._entries.pop(uid, None)
        node = self._settled.pop(uid, None)
        if node is not None:
            self._settled_count[node] -= 1

    def _settle(self, entry: PlacedPod) -> None:
        if entry.pod.kind == "fpga" and entry.pod.uid not in self._settled:
            self._settled[entry.pod.uid] = entry.node
            self._settled_count[entry.node] += 1

    def _prune(self, now_mono_ns: int) -> None:
        for uid in [uid for uid, entry in self._entries.items() if not entry.weight(now_mono_ns)]:
            entry = self._entries.pop(uid)
            if entry.is_bound:
                self._settle(entry)
