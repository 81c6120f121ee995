"""The workload that a container belongs to: the one that all its replicas have in common."""

from dataclasses import dataclass

from nodescope.read.series_name import workload_of
from nodescope.use.answers.timeseries import MeasuredSeries

# What belongs to a workload; disks, cores and the node do not.
OWNED = ("container", "pod", "process", "service")
GROUPINGS = ("workload", "namespace", "image", "node")


@dataclass(frozen=True, slots=True)
class Owner:
    """What a series belongs to, for each way of grouping."""

    node: str
    namespace: str
    workload: str
    """namespace/owner/container; a node's own series belong to their scope."""
    image: str

    def group(self, by: str) -> str:
        return str(getattr(self, by)) or f"({by} not known)"


def owner_of(series: MeasuredSeries) -> Owner:
    subject, node = series.subject, series.node
    known = workload_of(subject, node)
    container = subject.label("l_container_name") or ""
    scope = subject.label("l_scope") or "node"
    if scope not in OWNED or not known.name:
        return Owner(node, known.namespace, f"({scope})", subject.details.get("image", ""))
    part = f"/{container}" if container and container != known.name else ""
    return Owner(node, known.namespace, known.full_name + part, subject.details.get("image", ""))
