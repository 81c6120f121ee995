"""What the pods of a node will use at each hour of the day, by what its agent has seen of them."""

from array import array
from collections.abc import Mapping
from dataclasses import dataclass

from nodescope.base.workload.pod_use import HOURS, PodUse, find_hour
from nodescope.use.scheduler.profile.workload_profiles import WorkloadProfiles


@dataclass(frozen=True, slots=True)
class NodeOutlook:
    """All pods of one node together."""

    pods: int
    cores: "array[float]"
    """By hour of the day."""
    bandwidth: "array[float]"
    """GB/s by hour of the day, of the workloads whose bandwidth some node has measured."""
    has_bandwidth: bool
    """Whether those are most of the node's use: else it says nothing."""


# The share of a node's cores whose bandwidth must be known.
MOST = 0.5


def derive_outlook(uses: Mapping[str, PodUse], profiles: WorkloadProfiles) -> NodeOutlook:
    cores, moved = [0.0] * HOURS, [0.0] * HOURS
    total = known = 0.0
    for name, use in uses.items():
        if not use.pods:
            continue
        factor = find_bandwidth(name, use, profiles)
        total += use.pods * use.cores
        known += use.pods * use.cores if factor is not None else 0.0
        for hour in range(HOURS):
            wanted = use.pods * find_hour(use.hours, hour, use.cores)
            cores[hour] += wanted
            moved[hour] += wanted * (factor or 0.0)
    # The others are taken to be like those that are known.
    scale = total / known if known else 0.0
    pods = sum(use.pods for use in uses.values())
    found = array("f", [value * scale for value in moved])
    return NodeOutlook(pods, array("f", cores), found, known > MOST * total)


def find_bandwidth(name: str, use: PodUse, profiles: WorkloadProfiles) -> float | None:
    """As the cluster knows it: a node that does not measure any takes the others' word."""
    usual = profiles.find_bandwidth(name)
    return use.bandwidth if usual is None else usual
