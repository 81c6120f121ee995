"""
What one container of a workload needed on the nodes where it ran: facts, without any recommendation.

A figure that was not measured is None, and so is a request or a limit that
nobody set; `is_specified` tells whether the specification was seen at all.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class ContainerNeed:
    """One container (`app`) of one workload (`shop/catalog`); figures are of one replica."""

    node: str
    namespace: str
    workload: str
    kind: str
    container: str
    replicas: int
    """Running at the end of the span."""
    runs: int
    """Containers seen in the span: pods and their restarts."""
    first_ms: int
    last_ms: int
    seen_ms: int
    """How long it was watched."""
    is_specified: bool
    """Whether the pod's specification was read; without it a request that is not there is not known."""
    cpu_request: float | None
    cpu_limit: float | None
    memory_request: float | None
    memory_limit: float | None
    cpu_mean: float | None
    cpu_busy: float | None
    """The 95th percentile of the seconds within the busiest minutes."""
    cpu_most: float | None
    """The highest second."""
    is_cpu_exact: bool
    """False where seconds were not read: `cpu_busy` is then the highest second of the busiest minute."""
    throttled: float | None
    """Share of the scheduler's periods in which its CPU limit held it back."""
    memory_most: float | None
    """The crest of what cannot be reclaimed."""
    is_cache_known: bool
    """False where page cache was not measured: `memory_most` then has it in it."""
    cache_mean: float | None
    growth: float | None
    """Mean memory of the last quarter of the time divided by that of the quarter before."""
    oom_kills: int
    killed_at: float | None
    """The highest limit at which it was killed."""

    @property
    def key(self) -> tuple[str, str, str]:
        return (self.namespace, self.workload, self.container)

    @property
    def seen_seconds(self) -> float:
        return self.seen_ms / 1000


@dataclass(frozen=True, slots=True)
class NodeNeeds:
    """All containers of a node, and the span that was read."""

    node: str
    from_ms: int
    to_ms: int
    needs: tuple[ContainerNeed, ...]
    unseen: tuple[str, ...] = ()


def merge_needs(needs: Iterable[ContainerNeed]) -> list[ContainerNeed]:
    """One for each container of each workload: replicas of all nodes, sized for the busiest of them."""
    groups: dict[tuple[str, str, str], list[ContainerNeed]] = {}
    for one in needs:
        groups.setdefault(one.key, []).append(one)
    return [merge(group) for group in groups.values()]


def merge(group: Sequence[ContainerNeed]) -> ContainerNeed:
    if len(group) == 1:
        return group[0]
    newest = max(group, key=lambda one: one.last_ms)
    runs = sum(one.runs for one in group)
    return replace(
        newest,
        node=", ".join(sorted({one.node for one in group})),
        replicas=sum(one.replicas for one in group),
        runs=runs,
        first_ms=min(one.first_ms for one in group),
        seen_ms=max(one.seen_ms for one in group),
        cpu_mean=mean_of(group, "cpu_mean"),
        cpu_busy=most_of(group, "cpu_busy"),
        cpu_most=most_of(group, "cpu_most"),
        is_cpu_exact=all(one.is_cpu_exact for one in group),
        throttled=most_of(group, "throttled"),
        memory_most=most_of(group, "memory_most"),
        is_cache_known=all(one.is_cache_known for one in group),
        cache_mean=mean_of(group, "cache_mean"),
        growth=most_of(group, "growth"),
        oom_kills=sum(one.oom_kills for one in group),
        killed_at=most_of(group, "killed_at"),
    )


def most_of(group: Sequence[ContainerNeed], name: str) -> float | None:
    return max((value for one in group if (value := getattr(one, name)) is not None), default=None)


def mean_of(group: Sequence[ContainerNeed], name: str) -> float | None:
    known = [(value, one.runs) for one in group if (value := getattr(one, name)) is not None]
    runs = sum(count for _, count in known)
    return sum(value * count for value, count in known) / runs if runs else None
