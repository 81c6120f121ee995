"""
Where a pod's whole devices fit: the part of the cost that packing has.

A device that one pod has alone is not busier for what its neighbours do. What
counts is what is left for others: stranded.py says how much. The rule `spread`
rates GPU pods by load instead.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from nodescope.use.scheduler.devices.claims import DeviceClaims, DeviceSlices
from nodescope.use.scheduler.devices.device_request import Devices
from nodescope.use.scheduler.devices.node_capacities import NodeCapacities
from nodescope.use.scheduler.devices.stranded import count_change
from nodescope.use.scheduler.node import AnnotatedNode
from nodescope.use.scheduler.placed_pods import PlacedPods
from nodescope.use.scheduler.pod_request import PodRequest
from nodescope.use.scheduler.rating import CostPart, NodeRating

# A stranded device counts as much as half of a host's work, so that a node under heavy pressure is
# still left alone; among equals the one with fewer devices left is taken.
STRANDED_MS = 500.0
LEFT_MS = 20.0
# What most nodes with many GPUs have. The first pods of a cluster are asked about before its nodes were
# listed; kube-scheduler has seen to it that there is room.
ASSUMED = 8


@dataclass(slots=True)
class DeviceRoom:
    """What is known of all nodes' devices."""

    placed: PlacedPods
    capacities: NodeCapacities
    slices: DeviceSlices = field(default_factory=DeviceSlices)
    claims: DeviceClaims = field(default_factory=DeviceClaims)

    def find_wanted(self, pod: PodRequest) -> Devices:
        """Resources, and drivers of claims that have no devices yet; () where nothing is known."""
        return self._count_wanted(pod, self._know_drivers()) if pod.claims else pod.devices

    def _know_drivers(self) -> "KnownDrivers":
        """Of a large cluster this takes some ms."""
        return KnownDrivers(self.slices.drivers(), self.claims.learn_drivers())

    def _count_wanted(self, pod: PodRequest, known: "KnownDrivers") -> Devices:
        wanted: Counter[str] = Counter(dict(pod.devices))
        for name in pod.claims:
            claim = self.claims.find(pod.namespace, name) if name else None
            if claim is not None and not claim.has:
                for device_class, count in claim.asked:
                    if driver := name_driver(device_class, *known):
                        wanted[driver] += max(1, count)
        return tuple(sorted(wanted.items()))

    def build_packing(self, pod: PodRequest, wanted: Devices) -> "Packing":
        names = [name for name, _ in wanted]
        assumed = 0 if self.capacities.found else ASSUMED
        return Packing(wanted, self._find_totals(names), self._find_taken(pod), assumed)

    def _find_totals(self, names: Iterable[str]) -> dict[tuple[str, str], int | None]:
        totals = self.slices.totals()
        found = list(self.capacities.found.items())
        totals.update(
            {(node, name): has.get(name, 0) for name in names if "/" in name for node, has in found}
        )
        return totals

    def _find_taken(self, pod: PodRequest) -> Counter[tuple[str, str]]:
        """By the pods that are there, by the claims that have devices, and by our own answers."""
        taken = self.placed.held_devices()
        pools = self.slices.pools()
        for (driver, pool), count in self.claims.held().items():
            taken[pools.get((driver, pool), pool), driver] += count
        expected = [(other, node) for other, node in self.placed.expected() if other.uid != pod.uid]
        # Once for all of them: many pods may wait for their claims at the same time.
        known = self._know_drivers() if any(other.claims for other, _ in expected) else KnownDrivers()
        for other, node in expected:
            for name, count in self._count_wanted(other, known):
                taken[node, name] += count
        return taken


class KnownDrivers(NamedTuple):
    """Who makes devices, and for which classes of claims."""

    drivers: Collection[str] = ()
    learned: Mapping[str, str] = {}
    """By class, of claims that have devices."""


def name_driver(device_class: str, drivers: Collection[str], learned: Mapping[str, str]) -> str:
    """A class has its driver's name by custom; else by claims of the class, or where there is one driver only."""
    if device_class in drivers:
        return device_class
    return learned.get(device_class) or (next(iter(drivers)) if len(drivers) == 1 else "")


@dataclass(frozen=True, slots=True)
class Packing:
    """One pod's devices on any node."""

    wanted: Devices
    totals: Mapping[tuple[str, str], int | None]
    taken: Mapping[tuple[str, str], int]
    assumed: int = 0
    """Devices of every node, until the first list of nodes; 0 afterwards."""

    def judge(self, node: AnnotatedNode, rating: NodeRating) -> CostPart:
        cost_ms, left_all = 0.0, 0
        for name, count in self.wanted:
            total = self.totals.get((node.name, name))
            if total is None and self.assumed and "/" in name:
                total = max(self.assumed, self.taken.get((node.name, name), 0) + count)
                rating.reasons += (f"how many {name} it has was not read yet: taken as {total}",)
            if total is None:
                rating.reasons += (f"how many {name} it has is not known",)
                return CostPart()
            free = total - self.taken.get((node.name, name), 0)
            if free < count:
                # kube-scheduler knows better: a pod has ended that our watch still shows.
                rating.reasons += (f"{free} of {total} {name} are free by our watch, {count} are asked for",)
                return CostPart()
            rating.facts[f"free_{name}"] = free
            cost_ms += STRANDED_MS * count_change(free, count)
            left_all += free - count
        rating.terms["stranded"] = cost_ms
        rating.terms["left"] = LEFT_MS * left_all
        return CostPart(cost_ms + LEFT_MS * left_all, 1.0)
