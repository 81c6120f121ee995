"""
The metrics that can be asked for: a number of the window and a statistic of it.

    cpu, cpu_mean, cpu_p95, cpu_max       without a statistic: the mean

Of pods there are the pod's own numbers, and those of the node that it runs on
(node_cpu_util, node_mem_bw, ...): memory bandwidth is counted per node.
"""

from dataclasses import dataclass

from nodescope.base.errors import RequestRejected
from nodescope.base.text import hint_nearest

STATISTICS = ("mean", "p95", "max")
# What /pods of an agent tells of a pod: unit, meaning.
POD_NUMBERS = {
    "cpu": ("cores", "CPU in use."),
    "memory": ("bytes", "Memory in use."),
    "cpu_contention": (
        "share of time",
        "Some task waited for a CPU that others had; throttling is taken out.",
    ),
    "cpu_throttled": ("share of time", "A container was held back by its CPU quota."),
    "mem_pressure": ("share of time", "Some task waited for memory."),
    "io_pressure": ("share of time", "Some task waited for I/O."),
    "gpu_util": ("share", "Mean utilisation of the GPUs that the pod's processes use."),
}
NODE_NUMBERS = {
    "cpu_util": ("share", "CPU time of all cores that was not idle."),
    "mem_util": ("share", "1 - available / total memory."),
    "cpu_contention": (
        "share of time",
        "Some task waited for a CPU that others had; throttling is taken out.",
    ),
    "mem_pressure": ("share of time", "Some task waited for memory."),
    "io_pressure": ("share of time", "Some task waited for I/O."),
    "mem_bw": ("bytes/s", "Memory bandwidth, read and write."),
    "mem_bw_util": ("share", "Memory bandwidth against its peak."),
    "gpu_util": ("share", "Mean utilisation of the GPUs."),
}
# The agent tells bandwidth in GB/s.
FACTORS = {"mem_bw": 1e9}


@dataclass(frozen=True, slots=True)
class AskedMetric:
    """One number of an agent's answer."""

    name: str
    """As it was asked for."""
    number: str
    place: int
    """Of the statistic."""
    of_node: bool

    @property
    def factor(self) -> float:
        return FACTORS.get(self.number, 1.0)


def list_names(resource: str) -> list[str]:
    """Every metric of pods or of nodes."""
    of_nodes = [f"node_{name}" if resource == "pods" else name for name in NODE_NUMBERS]
    numbers = [*POD_NUMBERS, *of_nodes] if resource == "pods" else of_nodes
    return [name for number in numbers for name in (number, *(f"{number}_{one}" for one in STATISTICS))]


def parse_metric(name: str, resource: str) -> AskedMetric:
    known = list_names(resource)
    if name not in known:
        plain = [one for one in known if not one.endswith(STATISTICS)]
        raise MetricUnknown(
            f"no metric {name[:60]!r} of {resource}{hint_nearest(name[:60], known)} there are: {', '.join(plain)}, each also with _mean, _p95 or _max"
        )
    number, _, statistic = name.rpartition("_")
    if statistic not in STATISTICS:
        number, statistic = name, STATISTICS[0]
    of_node = resource == "nodes" or number.startswith("node_")
    return AskedMetric(name, number.removeprefix("node_"), STATISTICS.index(statistic), of_node)


class MetricUnknown(RequestRejected):
    """A metric that no agent tells."""

    status, title = 404, "not found"


def render_quantity(value: float) -> str:
    """As Kubernetes reads it: whole numbers plain, others in thousandths."""
    whole = round(value)
    if abs(value) >= 1e6 or value == whole:
        return str(whole)
    return f"{round(value * 1000)}m"
