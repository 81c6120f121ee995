"""The workload that a container belongs to: the one that all its replicas have in common."""

from collections.abc import Mapping
from dataclasses import dataclass

from nodescope.base.workload import find_workload
from nodescope.use.answers.timeseries import MeasuredSeries

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
    subject = series.subject
    namespace = subject.label("l_namespace") or ""
    pod = subject.label("l_pod_name") or ""
    container = subject.label("l_container_name") or ""
    details: Mapping[str, str] = subject.details
    image = details.get("image", "")
    known = find_workload(namespace=namespace, pod=pod, owner=details.get("owner", ""), node=series.node)
    scope = subject.label("l_scope") or "node"
    parts = [part for part in (namespace, known.name) if part] or [f"({scope})"]
    if container and container != known.name:
        parts.append(container)
    return Owner(series.node, namespace, "/".join(parts), image)
