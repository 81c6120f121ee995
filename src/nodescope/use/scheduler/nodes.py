"""
The extender's own view of all nodes, kept up to date by watches of their metadata and of their Leases.

Written by the watching threads, one at a time, and read by every request: a node
is replaced as a whole, never changed, so readers need no lock.

Agents write their window to a Lease, older ones to the Node, and one that
was not allowed its Lease for a while to both: the newer one counts.
"""

import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from nodescope.base.clock import Clock
from nodescope.fpga.node_lease import find_leased_node
from nodescope.fpga.node_load import WINDOW_KEY
from nodescope.fpga.node_workloads import WORKLOADS_KEY
from nodescope.use.scheduler.freshness import AHEAD_SECONDS, judge_age
from nodescope.use.scheduler.load_times import LoadTimes
from nodescope.use.scheduler.node import AnnotatedNode, is_measured, parse_node
from nodescope.use.scheduler.placed_pods import put_bounded
from nodescope.use.scheduler.pod_request import read_mapping, read_text
from nodescope.use.scheduler.profile.node_outlook import derive_outlook
from nodescope.use.scheduler.profile.workload_profiles import WorkloadProfiles

# What workloads use is written every five minutes; what an agent wrote that is away is history.
BELIEVED_SECONDS = 900.0
# More than a cluster has nodes; beyond it the oldest are dropped.
MOST_LEASES = 50_000


class Nodes:
    """All nodes by name; a listener of the watch."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.RLock()
        """Of the two watching threads."""
        self._nodes: dict[str, AnnotatedNode] = {}
        """With what the Lease says."""
        self._plain: dict[str, AnnotatedNode] = {}
        """By the Node alone."""
        self._leases: dict[str, AnnotatedNode] = {}
        """By the Lease alone, by node."""
        self.leases = NodeLeases(self)
        self.times = LoadTimes()
        self.profiles = WorkloadProfiles()

    def __len__(self) -> int:
        return len(self._nodes)

    def all(self) -> list[AnnotatedNode]:
        return list(self._nodes.values())

    def names(self) -> list[str]:
        return list(self._nodes)

    def find(self, name: str) -> AnnotatedNode | None:
        return self._nodes.get(name)

    def replace(self, items: Iterable[Mapping[str, Any]]) -> None:
        parsed = {node.name: node for node in map(self.learn, items)}
        with self._lock:
            self._plain = parsed
            self._nodes = {name: self._merge(node) for name, node in parsed.items()}
        self.times.keep(self._nodes)
        self.profiles.keep(self._nodes)

    def change(self, item: Mapping[str, Any]) -> None:
        node = self.learn(item)
        with self._lock:
            self._plain[node.name] = node
            self._nodes[node.name] = self._merge(node)

    def remove(self, item: Mapping[str, Any]) -> None:
        name = read_text(read_mapping(item, "metadata"), "name")
        with self._lock:
            self._plain.pop(name, None)
            self._nodes.pop(name, None)
        self.times.forget(name)
        self.profiles.forget(name)

    def tell_lease(self, name: str, item: Mapping[str, Any] | None) -> None:
        """What a node's Lease says now; None when it is gone."""
        before = self._leases.get(name)
        about = read_mapping(item, "metadata") if item else {}
        notes = read_mapping(about, "annotations")
        # Nothing but these belongs to a Lease.
        kept = {key: notes[key] for key in (WINDOW_KEY, WORKLOADS_KEY) if key in notes}
        with self._lock:
            if kept:
                now_ms = self._now_ms()
                told = parse_node({"metadata": {"name": name, "annotations": kept}}, now_ms, before)
                put_bounded(self._leases, name, self._look_ahead(told, now_ms), MOST_LEASES)
            else:
                self._leases.pop(name, None)
            if name in self._plain:
                self._nodes[name] = self._merge(self._plain[name])

    def leased(self) -> list[str]:
        return list(self._leases)

    def _merge(self, node: AnnotatedNode) -> AnnotatedNode:
        """The newer window of the two, and the outlook of whoever has one."""
        lease = self._leases.get(node.name)
        if lease is None:
            return node
        outlook = lease.outlook or node.outlook
        if lease.load is None or (node.load is not None and node.load.at_seconds > lease.load.at_seconds):
            return replace(node, outlook=outlook)
        return replace(
            node,
            load=lease.load,
            load_reason=lease.load_reason,
            host=lease.host,
            host_lost=lease.host_lost,
            outlook=outlook,
        )

    def parse(self, item: Mapping[str, Any]) -> AnnotatedNode:
        """A node as a caller sent it: it teaches nothing, for nobody vouches for it."""
        before = self._plain.get(read_text(read_mapping(item, "metadata"), "name"))
        return self._merge(parse_node(item, self._now_ms(), before))

    def learn(self, item: Mapping[str, Any]) -> AnnotatedNode:
        """A node that is not stored; the load times that it measured are, where its state is believed."""
        before = self._plain.get(read_text(read_mapping(item, "metadata"), "name"))
        now_ms = self._now_ms()
        node = self._look_ahead(parse_node(item, now_ms, before), now_ms)
        if node.fpga is None or (before is not None and before.fpga is node.fpga):
            return node
        if judge_age((now_ms - node.fpga.at_ms) / 1000)[0]:
            for name, one in reversed(list(node.fpga.bitstreams.items())):
                if is_measured(one.reconfiguration_ms):
                    self.times.learn(node.name, name, one.reconfiguration_ms)
        return node

    def _look_ahead(self, node: AnnotatedNode, now_ms: int) -> AnnotatedNode:
        """Learns what its workloads use, where it is believed, and what they will."""
        told = node.workloads
        if told is None:
            return node
        if not -AHEAD_SECONDS <= now_ms / 1000 - told.at_seconds <= BELIEVED_SECONDS:
            return replace(node, workloads=None)
        self.profiles.learn(node.name, told.uses)
        return replace(node, workloads=None, outlook=derive_outlook(told.uses, self.profiles))

    def _now_ms(self) -> int:
        return self._clock.wall_ns() // 1_000_000


@dataclass(slots=True)
class NodeLeases:
    """The Leases of nodes; a listener of their watch."""

    nodes: Nodes

    def replace(self, items: Iterable[Mapping[str, Any]]) -> None:
        gone = set(self.nodes.leased())
        for item in items:
            gone.discard(find_leased_node(read_text(read_mapping(item, "metadata"), "name")))
            self.change(item)
        for name in gone:
            self.nodes.tell_lease(name, None)

    def change(self, item: Mapping[str, Any]) -> None:
        if name := find_leased_node(read_text(read_mapping(item, "metadata"), "name")):
            self.nodes.tell_lease(name, item)

    def remove(self, item: Mapping[str, Any]) -> None:
        if name := find_leased_node(read_text(read_mapping(item, "metadata"), "name")):
            self.nodes.tell_lease(name, None)
