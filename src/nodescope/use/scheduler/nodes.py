"""
The extender's own view of all nodes, kept up to date by a watch of their metadata.

Written by the watching thread, read by every request: a node is replaced as a
whole, never changed, so readers need no lock.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from nodescope.base.clock import Clock
from nodescope.use.scheduler.freshness import AHEAD_SECONDS, judge_age
from nodescope.use.scheduler.load_times import LoadTimes
from nodescope.use.scheduler.node import AnnotatedNode, is_measured, parse_node
from nodescope.use.scheduler.pod_request import read_mapping, read_text
from nodescope.use.scheduler.profile.node_outlook import derive_outlook
from nodescope.use.scheduler.profile.workload_profiles import WorkloadProfiles

# What workloads use is written every five minutes; what an agent wrote that is away is history.
BELIEVED_SECONDS = 900.0


class Nodes:
    """All nodes by name; a listener of the watch."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._nodes: dict[str, AnnotatedNode] = {}
        self.times = LoadTimes()
        self.profiles = WorkloadProfiles()

    def __len__(self) -> int:
        return len(self._nodes)

    def all(self) -> list[AnnotatedNode]:
        return list(self._nodes.values())

    def find(self, name: str) -> AnnotatedNode | None:
        return self._nodes.get(name)

    def replace(self, items: Iterable[Mapping[str, Any]]) -> None:
        parsed = [self.learn(item) for item in items]
        self._nodes = {node.name: node for node in parsed}
        self.times.keep(self._nodes)
        self.profiles.keep(self._nodes)

    def change(self, item: Mapping[str, Any]) -> None:
        node = self.learn(item)
        self._nodes[node.name] = node

    def remove(self, item: Mapping[str, Any]) -> None:
        name = read_text(read_mapping(item, "metadata"), "name")
        self._nodes.pop(name, None)
        self.times.forget(name)
        self.profiles.forget(name)

    def parse(self, item: Mapping[str, Any]) -> AnnotatedNode:
        """A node as a caller sent it: it teaches nothing, for nobody vouches for it."""
        before = self._nodes.get(read_text(read_mapping(item, "metadata"), "name"))
        return parse_node(item, self._now_ms(), before)

    def learn(self, item: Mapping[str, Any]) -> AnnotatedNode:
        """A node that is not stored; the load times that it measured are, where its state is believed."""
        before = self._nodes.get(read_text(read_mapping(item, "metadata"), "name"))
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
