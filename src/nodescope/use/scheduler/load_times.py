"""
How long each bitstream takes to load: the median over the nodes that measured it.

Bounded per node, so that a node which names thousands of bitstreams pushes out
its own and nobody else's.
"""

from collections import OrderedDict
from collections.abc import Container
from statistics import median

# Bitstreams of one node whose time is kept after the node dropped them.
BITSTREAMS = 32
# Nodes whose measurement of one bitstream is kept, the newest ones: a median needs no more.
WITNESSES = 31
# What is believed of a report. A load is never free: devices are reset, drivers wait.
LEAST_LOAD_MS = 10.0
LONGEST_LOAD_MS = 600_000.0
# Weight of a node's new report against the mean of its earlier ones.
NEWS_RATIO = 0.3


class LoadTimes:
    """Written by the watch of nodes, read by every request."""

    def __init__(self) -> None:
        self._by_node: dict[str, OrderedDict[str, float]] = {}
        self._by_bitstream: dict[str, dict[str, float]] = {}
        """The same the other way round: bitstream -> node -> ms."""
        self._middles: dict[str, float] = {}
        """The median of each node's own."""

    def learn(self, node: str, name: str, measured_ms: float) -> None:
        known = self._by_node.setdefault(node, OrderedDict())
        told_ms = min(LONGEST_LOAD_MS, max(LEAST_LOAD_MS, measured_ms))
        before = known.pop(name, told_ms)
        known[name] = before + NEWS_RATIO * (told_ms - before)
        self._witness(name, node, known[name])
        if len(known) > BITSTREAMS:
            self._drop(node, known.popitem(last=False)[0])
        self._middles[node] = median(known.values())

    def _witness(self, name: str, node: str, measured_ms: float) -> None:
        """Replaced as a whole, because readers hold no lock."""
        others = [(other, ms) for other, ms in self._by_bitstream.get(name, {}).items() if other != node]
        self._by_bitstream[name] = {**dict(others[-WITNESSES + 1 :]), node: measured_ms}

    def find(self, name: str) -> float | None:
        measured = self._by_bitstream.get(name)
        return median(measured.values()) if measured else None

    def typical(self) -> float | None:
        """Of any bitstream: the estimate for one that was never measured."""
        middles = list(self._middles.values())
        return median(middles) if middles else None

    def forget(self, node: str) -> None:
        """The node is gone."""
        for name in self._by_node.pop(node, ()):
            self._drop(node, name)
        self._middles.pop(node, None)

    def keep(self, nodes: Container[str]) -> None:
        """All other nodes are gone."""
        for node in [node for node in self._by_node if node not in nodes]:
            self.forget(node)

    def _drop(self, node: str, name: str) -> None:
        left = {other: ms for other, ms in self._by_bitstream.get(name, {}).items() if other != node}
        if left:
            self._by_bitstream[name] = left
        else:
            self._by_bitstream.pop(name, None)
