"""
What one pod of a workload uses: the medians over the nodes that have run it.

A node's own report is one vote, whatever it says. Votes are bounded per node, so that one that
names thousands of workloads crowds out its own and nobody else's; and per workload, because a
median needs no more than some dozens.
"""

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from nodescope.base.workload.pod_use import HOURS, PodUse, decode_hours

# Votes for one workload, the newest ones.
WITNESSES = 31
# Votes in all; a node has its part of them, and never less than the least.
VOTES, LEAST_VOTES = 60_000, 8


@dataclass(frozen=True, slots=True)
class WorkloadProfile:
    """One pod of a workload; None is what no node has measured."""

    cores: float
    hours: Sequence[float]
    """Cores at each hour of the day (UTC); an hour that nobody saw has the usual ones."""
    bandwidth: float | None
    """GB/s for each core."""
    waits: float | None
    gpu: float | None
    nodes: int
    """How many nodes have a vote."""


class WorkloadProfiles:
    """Written by the watch of nodes, read by every request."""

    def __init__(self) -> None:
        self._votes: dict[str, dict[str, PodUse]] = {}
        """Workload -> node -> what it told."""
        self._by_node: dict[str, tuple[str, ...]] = {}
        self._known: dict[str, WorkloadProfile] = {}
        """Made when somebody asks, dropped when a vote changes."""

    def __len__(self) -> int:
        return len(self._votes)

    def count_votes(self) -> int:
        return sum(map(len, self._votes.values()))

    def learn(self, node: str, uses: Mapping[str, PodUse]) -> None:
        """All that a node tells; what it told before and tells no more is forgotten."""
        most = max(LEAST_VOTES, VOTES // max(1, len(self._by_node)))
        by_use = sorted(uses, key=lambda name: -uses[name].cores * max(1, uses[name].pods))[:most]
        for name in set(self._by_node.get(node, ())) - set(by_use):
            self._drop(node, name)
        for name in by_use:
            self._vote(name, node, uses[name])
        self._by_node[node] = tuple(by_use)

    def _vote(self, name: str, node: str, use: PodUse) -> None:
        """Replaced as a whole, because readers hold no lock."""
        before = self._votes.get(name, {})
        if before.get(node) == use:
            return
        others = [(other, told) for other, told in before.items() if other != node]
        self._votes[name] = {**dict(others[-WITNESSES + 1 :]), node: use}
        self._known.pop(name, None)

    def _drop(self, node: str, name: str) -> None:
        left = {other: told for other, told in self._votes.get(name, {}).items() if other != node}
        self._known.pop(name, None)
        if left:
            self._votes[name] = left
        else:
            self._votes.pop(name, None)

    def find(self, name: str) -> WorkloadProfile | None:
        known = self._known.get(name)
        if known is None and (votes := self._votes.get(name)):
            known = self._known[name] = derive_profile(list(votes.values()))
        return known

    def find_bandwidth(self, name: str) -> float | None:
        """Its profile's, without the rest."""
        return find_middle([use.bandwidth for use in self._votes.get(name, {}).values()])

    def forget(self, node: str) -> None:
        """The node is gone."""
        for name in self._by_node.pop(node, ()):
            self._drop(node, name)

    def keep(self, nodes: Container[str]) -> None:
        """All other nodes are gone."""
        for node in [node for node in self._by_node if node not in nodes]:
            self.forget(node)


def derive_profile(votes: Sequence[PodUse]) -> WorkloadProfile:
    cores = median(use.cores for use in votes)
    decoded = [decode_hours(use.hours) for use in votes]
    by_hour = (find_middle([row[hour] for row in decoded]) for hour in range(HOURS))
    return WorkloadProfile(
        cores,
        tuple(cores if seen is None else seen for seen in by_hour),
        find_middle([use.bandwidth for use in votes]),
        find_middle([use.waits for use in votes]),
        find_middle([use.gpu for use in votes]),
        len(votes),
    )


def find_middle(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return median(known) if known else None
