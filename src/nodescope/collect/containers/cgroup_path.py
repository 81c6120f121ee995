"""
What a cgroup's path says about the container in it.

Pure. The last container in a path counts (kind runs containers inside one):

    kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod<uid>.slice/cri-containerd-<id>.scope
    kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-pod<uid>.slice/crio-<id>.scope
    kubepods/besteffort/pod<uid>/<id>
    system.slice/docker-<id>.scope          docker/<id>
    machine.slice/libpod-<id>.scope         system.slice/containerd.service/...slice:cri-containerd:<id>

An id is 64 hex digits. crio-conmon-<id> and libpod-conmon-<id> are the
runtime's own helpers, not containers. A pod's UID is written with underscores
by the systemd driver; static pods have 32 hex digits without dashes.
"""

import re
from dataclasses import dataclass
from functools import lru_cache

_CONTAINER = re.compile(
    r"(?:(?:.*:)?(cri-containerd|containerd|crio|docker|libpod|nerdctl)[-:])?([0-9a-f]{64})(?:\.scope)?"
)
_POD = re.compile(
    r"(?:.*-)?pod([0-9a-f]{8}[-_][0-9a-f]{4}[-_][0-9a-f]{4}[-_][0-9a-f]{4}[-_][0-9a-f]{12}|[0-9a-f]{32})(?:\.slice)?"
)
_SANDBOXED_POD = re.compile(
    r"pod([0-9a-f]{8}[-_][0-9a-f]{4}[-_][0-9a-f]{4}[-_][0-9a-f]{4}[-_][0-9a-f]{12}|[0-9a-f]{32})"
)


@dataclass(frozen=True, slots=True)
class CgroupName:
    """What the path alone tells; empty where it does not."""

    container_id: str = ""
    runtime: str = ""
    pod_uid: str = ""
    qos: str = ""


NOTHING = CgroupName()


# A node has some thousand paths; each is parsed once, then looked up.
@lru_cache(maxsize=8192)
def parse_cgroup_path(path: str) -> CgroupName:
    """The innermost container and its pod, from a path such as /proc/PID/cgroup has."""
    container_id = runtime = pod_uid = ""
    for part in path.split("/"):
        container = _CONTAINER.fullmatch(part)
        if container:
            container_id = container[2]
            runtime = container[1] or ""
        pod = _POD.fullmatch(part) or (_SANDBOXED_POD.search(part) if ":" in part else None)
        if pod:
            pod_uid = pod[1].replace("_", "-")
            if not container:
                # A pod below a container (kind's node) starts a new search.
                container_id = runtime = ""
    if not container_id and not pod_uid:
        return NOTHING
    return CgroupName(container_id, runtime, pod_uid, parse_qos(path) if pod_uid else "")


def parse_qos(path: str) -> str:
    """The pod's quality-of-service class, as kubelet lays out its tree."""
    if "besteffort" in path:
        return "BestEffort"
    if "burstable" in path:
        return "Burstable"
    return "Guaranteed" if "kubepods" in path else ""


def is_container_folder(name: str) -> bool:
    """Whether a folder's own name marks a container."""
    return _CONTAINER.fullmatch(name) is not None


def find_container(name: str) -> str:
    """The container id in a folder's own name; empty where there is none."""
    match = _CONTAINER.fullmatch(name)
    return match[2] if match else ""


def is_pod_folder(name: str) -> bool:
    """Whether a folder's own name marks a pod."""
    return _POD.fullmatch(name) is not None


def find_group(pod: str, container_path: str) -> str:
    """The pod's cgroup. A container that is in no pod stands for itself: its slice holds others."""
    path, _, last = container_path.rpartition("/")
    return container_path if pod in last or not path else path
