"""Workloads across nodes: what each used on every node, with the smallest, middle and largest, and where."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from nodescope.base.quantity import is_share, render_count, render_quantity
from nodescope.base.text import clean_text
from nodescope.use.cluster.asked_node import WorkloadOnNode

# Nodes of one workload that are listed with their use.
NODES_SHOWN = 200


@dataclass(frozen=True, slots=True)
class WorkloadSpread:
    """One workload over all nodes that have it."""

    namespace: str
    name: str
    kind: str
    unit: str
    on_nodes: tuple[tuple[str, float], ...]
    """Each node with what it used there, the most first."""
    pods: int
    restarts: int

    @property
    def least(self) -> float:
        return self.on_nodes[-1][1]

    @property
    def most(self) -> float:
        return self.on_nodes[0][1]

    @property
    def middle(self) -> float:
        return float(median(used for _, used in self.on_nodes))

    @property
    def total(self) -> float | None:
        """None for shares of time, which do not add up."""
        return None if is_share(self.unit) else sum(used for _, used in self.on_nodes)

    @property
    def size(self) -> float:
        """What it is ranked by."""
        return self.most if self.total is None else self.total

    @property
    def sentence(self) -> str:
        full = clean_text(f"{self.namespace}/{self.name}" if self.namespace else self.name)
        where, most = self.on_nodes[0]
        if len(self.on_nodes) == 1:
            return (
                f'"{full}" runs on {clean_text(where, 60)} alone and used {render_quantity(most, self.unit)}.'
            )
        words = [render_quantity(one, self.unit) for one in (self.least, self.middle, self.most)]
        nodes = render_count(len(self.on_nodes), "node")
        return f'"{full}" on {nodes}: {words[0]} to {words[2]}, median {words[1]}; most on {clean_text(where, 60)}.'


def join_workloads(replies: Mapping[str, Sequence[WorkloadOnNode]]) -> list[WorkloadSpread]:
    """By namespace, name and kind; what used most in all first."""
    found: dict[tuple[str, str, str], list[tuple[str, WorkloadOnNode]]] = {}
    for node, rows in replies.items():
        for row in rows:
            found.setdefault((row.namespace, row.name, row.kind), []).append((node, row))
    joined = [join_one(key, rows) for key, rows in found.items()]
    return sorted(joined, key=lambda one: (-one.size, one.namespace, one.name))


def join_one(key: tuple[str, str, str], rows: Sequence[tuple[str, WorkloadOnNode]]) -> WorkloadSpread:
    used: dict[str, float] = {}
    for node, row in rows:
        used[node] = used.get(node, 0.0) + row.used
    ordered = sorted(used.items(), key=lambda pair: (-pair[1], pair[0]))
    pods, restarts = sum(row.pods for _, row in rows), sum(row.restarts for _, row in rows)
    return WorkloadSpread(*key, rows[0][1].unit, tuple(ordered), pods, restarts)


def matches(one: WorkloadSpread, search: str) -> bool:
    """All words are in its name or namespace."""
    text = f"{one.namespace}/{one.name}".lower()
    return all(word in text for word in search.lower().split())
