"""
The extender's own view of all nodes, kept up to date by a watch of their metadata.

Written by the watching thread, read by every request: a node is replaced as a
whole, never changed, so readers need no lock.
"""

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from typing import Any

from nodescope.base.clock import Clock
from nodescope.use.scheduler.node import AnnotatedNode, is_measured, parse_node
from nodescope.use.scheduler.pod_request import read_mapping, read_text

# Bitstreams whose time to load is kept after the nodes dropped it.
BITSTREAMS = 4096
# Weight of a new report of a bitstream's time against the mean of earlier ones.
NEWS_RATIO = 0.3


class LoadTimes:
    """How long each bitstream takes to load, by all nodes that measured it."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, float] = OrderedDict()

    def learn(self, name: str, measured_ms: float) -> None:
        before = self._known.pop(name, measured_ms)
        self._known[name] = before + NEWS_RATIO * (measured_ms - before)
        if len(self._known) > BITSTREAMS:
            self._known.popitem(last=False)

    def find(self, name: str) -> float | None:
        return self._known.get(name)

    def mean(self) -> float | None:
        """Of all bitstreams: the estimate for one that was never measured."""
        known = list(self._known.values())
        return sum(known) / len(known) if known else None


class Nodes:
    """All nodes by name; a listener of the watch."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._nodes: dict[str, AnnotatedNode] = {}
        self.times = LoadTimes()

    def __len__(self) -> int:
        return len(self._nodes)

    def all(self) -> list[AnnotatedNode]:
        return list(self._nodes.values())

    def find(self, name: str) -> AnnotatedNode | None:
        return self._nodes.get(name)

    def replace(self, items: Iterable[Mapping[str, Any]]) -> None:
        parsed = [self.parse(item) for item in items]
        self._nodes = {node.name: node for node in parsed}

    def change(self, item: Mapping[str, Any]) -> None:
        node = self.parse(item)
        self._nodes[node.name] = node

    def remove(self, item: Mapping[str, Any]) -> None:
        self._nodes.pop(read_text(read_mapping(item, "metadata"), "name"), None)

    def parse(self, item: Mapping[str, Any]) -> AnnotatedNode:
        """A node that is not stored; the load times that it measured are."""
        before = self._nodes.get(read_text(read_mapping(item, "metadata"), "name"))
        node = parse_node(item, self._clock.wall_ns() // 1_000_000, before)
        if node.fpga is not None and (before is None or before.fpga is not node.fpga):
            for name, one in node.fpga.bitstreams.items():
                if is_measured(one.reconfiguration_ms):
                    self.times.learn(name, one.reconfiguration_ms)
        return node
