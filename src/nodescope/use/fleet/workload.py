"""The workload that a container belongs to: the one that all its replicas have in common."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from nodescope.read.query.engine import QueryLine

# What Kubernetes appends: a ReplicaSet's hash and a pod's, a Job's number and a
# pod's, a DaemonSet's pod, a StatefulSet's ordinal. Its hashes have no vowels
# and no 0, 1 or 3, so that they spell no words.
_LETTERS = "[bcdfghjklmnpqrstvwxz2456789]"
_ENDINGS = (
    re.compile(rf"-{_LETTERS}{{6,10}}-{_LETTERS}{{5}}$"),
    re.compile(rf"-[0-9]{{8,10}}-{_LETTERS}{{5}}$"),
    re.compile(rf"-{_LETTERS}{{5}}$"),
    re.compile(r"-[0-9]+$"),
)
GROUPINGS = ("workload", "namespace", "image", "node")


def strip_pod(pod: str) -> str:
    """The owner's name, guessed from the pod's name."""
    for ending in _ENDINGS:
        if ending.search(pod):
            return ending.sub("", pod)
    return pod


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


def owner_of(line: QueryLine, node: str) -> Owner:
    subject = line.subject
    namespace = subject.label("l_namespace") or ""
    pod = subject.label("l_pod_name") or ""
    container = subject.label("l_container_name") or ""
    details: Mapping[str, str] = subject.details
    named = details.get("owner", "").rpartition("/")[2] or strip_pod(pod)
    scope = subject.label("l_scope") or "node"
    parts = [part for part in (namespace, named) if part] or [f"({scope})"]
    if container and container != named:
        parts.append(container)
    return Owner(node, namespace, "/".join(parts), details.get("image", ""))
