"""
The workload of a container, and how it is known: from the API, else from names.

    find_workload(namespace="shop", pod="catalog-66b6c48dd5-x2k4p", container="app")
    Workload(namespace="shop", name="catalog", kind="Deployment", known_by="pod name")
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from nodescope.base.workload.pod_name import read_job_name, read_pod_name

# docker compose counts replicas from 1: shop-web-1, and shop_web_1 before version 2.
# Swarm has the task's number and id: web.1.x3ti0erg11rjpg64m75kej2mz.
_REPLICA = re.compile(r"(?:[-_][1-9][0-9]{0,3}|\.[1-9][0-9]{0,3}\.[a-z0-9]{25})$")
# systemd's template units: getty@tty1.service is one of getty@.service.
_INSTANCE = re.compile(r"@[^/]+(?=\.service$)")
SHORT_ID_CHARACTERS = 12


@dataclass(frozen=True, slots=True)
class Workload:
    """What a person means by `catalog`: all pods and restarts of one Deployment, Job, service ..."""

    namespace: str
    name: str
    kind: str
    """Deployment, StatefulSet, DaemonSet, Job, CronJob, static pod, pod, service, container;
    where the name does not tell, "DaemonSet, Job or ReplicaSet"."""
    known_by: str
    """api, pod name, container name, image, service name, or id."""

    @property
    def full_name(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


# A node's containers keep their names; they are described again whenever one of them changes.
@lru_cache(maxsize=8192)
def find_workload(
    *,
    namespace: str = "",
    pod: str = "",
    container: str = "",
    image: str = "",
    node: str = "",
    owner: str = "",
    service: str = "",
    container_id: str = "",
) -> Workload:
    """`owner` is what the API said, as Kind/name; the rest are names, each empty where it is not known."""
    if owner:
        return read_owner(namespace, owner, pod)
    if pod:
        made = read_pod_name(pod, node)
        return Workload(namespace, made.name, made.kind, "pod name")
    if service:
        return Workload(namespace, name_service(service), "service", "service name")
    if container:
        return Workload(namespace, _REPLICA.sub("", container) or container, "container", "container name")
    if image:
        return Workload(namespace, name_image(image), "container", "image")
    return Workload(namespace, container_id[:SHORT_ID_CHARACTERS], "container", "id")


def detail_workload(workload: Workload) -> tuple[tuple[str, str], ...]:
    """As details of an entity: in the info series and in sidecars; a bare id is no workload's name."""
    if workload.known_by == "id":
        return ()
    return (
        ("workload", workload.name),
        ("workload_kind", workload.kind),
        ("workload_known_by", workload.known_by),
    )


def read_details(namespace: str, details: Mapping[str, str]) -> Workload | None:
    """As the agent wrote it; None in archives from before."""
    name = details.get("workload")
    if not name:
        return None
    kind, known_by = details.get("workload_kind") or "", details.get("workload_known_by") or ""
    return Workload(namespace, name, kind, known_by)


def read_owner(namespace: str, owner: str, pod: str = "") -> Workload:
    """What the API named as the pod's controller; a static pod's is its node, a scheduled Job is its CronJob's."""
    kind, _, name = owner.rpartition("/")
    if kind == "Node":
        return Workload(namespace, pod.removesuffix(f"-{name}"), "static pod", "api")
    if kind == "Job":
        made = read_job_name(name)
        return Workload(namespace, made.name, made.kind, "api")
    return Workload(namespace, name, kind or "pod", "api")


def name_service(path: str) -> str:
    """/system.slice/nginx.service is nginx.service; all instances of a template are one."""
    return _INSTANCE.sub("@", path.rstrip("/").rpartition("/")[2]) or path


def name_image(image: str) -> str:
    """registry.example/shop/web:1.4 is web."""
    bare = image.partition("@")[0].rpartition("/")[2]
    return bare.partition(":")[0] or image
