"""
Names without asking anybody: what a container is called, and who said so.

Layers, each optional, each recorded as the name's source:

    path    the cgroup path: container id, pod UID, QoS class
    logs    /var/log/containers/<pod>_<namespace>_<container>-<id>.log and
            /var/log/pods/<namespace>_<pod>_<uid>/<container>/
    bundle  what the runtime wrote when it made the container (`bundle`)
    kube    the Kubernetes API, told to us from outside (`learn`)

Folders are listed again when their modification time changed.
"""

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from nodescope.base.text import clean_text
from nodescope.collect.containers.cgroup_path import CgroupName
from nodescope.collect.files.roots import NodeRoot

CONTAINER_LOGS = "var/log/containers"
POD_LOGS = "var/log/pods"
_CONTAINER_LOG = re.compile(r"(.+)_(.+)_(.+)-([0-9a-f]{64})\.log")
_POD_LOG = re.compile(r"([^_]+)_([^_]+)_([0-9a-f-]{32,36})")


@dataclass(frozen=True, slots=True)
class Name:
    """What a container is called; empty where nobody said."""

    namespace: str = ""
    pod: str = ""
    container: str = ""
    image: str = ""
    source: str = "path"
    """The layer that gave the name: path, logs, bundle or kube."""
    restarts: str = ""
    owner: str = ""
    """What made the pod, as Kind/name."""
    labels: str = ""
    """The pod's labels, as key=value separated by commas."""
    cpu_request: str = ""
    """Cores that the pod's specification requests for this container."""
    memory_request: str = ""
    """Bytes, likewise."""
    previous_exit: str = ""
    """How the run before this one ended: exit code, reason, beginning of its id; `137 OOMKilled 4f2a09c1d7e8`."""
    alias: str = ""
    """What the runtime's own users call it: Docker's names."""


UNNAMED = Name()


class ContainerNames:
    """Answers "who is this" from what was learned; never blocks, never asks."""

    def __init__(self, root: NodeRoot) -> None:
        self._root = root
        self._by_container: dict[str, Name] = {}
        self._by_pod: dict[str, Name] = {}
        self._containers_of_pod: dict[str, list[str]] = {}
        self._pod_folders: dict[str, str] = {}
        self._given: dict[str, dict[str, str]] = {}
        """Names inferred for living containers, by pod."""
        self._bundles: dict[str, Name] = {}
        """From the runtime's own files, by container."""
        self._learned: dict[str, Name] = {}
        self._learned_pods: dict[str, Name] = {}
        self._listed: tuple[int | None, int | None] = (None, None)
        self.version = 0
        """Grows when any answer may have changed."""

    def refresh(self) -> None:
        """List the log folders again when they changed."""
        stamp = (self._stamp(CONTAINER_LOGS), self._stamp(POD_LOGS))
        if stamp == self._listed:
            return
        self._listed = stamp
        self._list_container_logs()
        self._list_pod_logs()
        self.version += 1

    def _stamp(self, path: str) -> int | None:
        try:
            return os.stat(self._root.full(path)).st_mtime_ns
        except OSError:
            return None

    def _list_container_logs(self) -> None:
        self._by_container = {}
        for file in self._names(CONTAINER_LOGS):
            match = _CONTAINER_LOG.fullmatch(file)
            if match:
                pod, namespace, container, container_id = (clean_text(part) for part in match.groups())
                self._by_container[container_id] = Name(namespace, pod, container, source="logs")

    def _list_pod_logs(self) -> None:
        self._by_pod = {}
        self._containers_of_pod = {}
        self._pod_folders = {}
        for folder in self._names(POD_LOGS):
            match = _POD_LOG.fullmatch(folder)
            if match:
                namespace, pod, uid = (clean_text(part) for part in match.groups())
                self._by_pod[uid] = Name(namespace, pod, source="logs")
                self._pod_folders[uid] = folder
                self.look_again(uid)

    def _names(self, path: str) -> list[str]:
        try:
            return self._root.names(path)
        except OSError:
            return []

    def note_bundle(self, container_id: str, name: Name) -> None:
        """What the runtime wrote about a container; it wins over the names of logs."""
        self._bundles[container_id] = name

    def learn(self, container_id: str, name: Name) -> None:
        """A name from outside; it wins over the node's own files."""
        if self._learned.get(container_id) != name:
            self._learned[container_id] = name
            self.version += 1

    def learn_pod(self, pod_uid: str, name: Name) -> None:
        """A pod's name from outside: for its sandbox, and for containers not told yet."""
        if self._learned_pods.get(pod_uid) != name:
            self._learned_pods[pod_uid] = name
            self.version += 1

    def unlearn(self, container_ids: Iterable[str], pod_uid: str) -> None:
        """The pod is gone; what still runs of it keeps its name until it ends."""
        for container_id in container_ids:
            self._learned.pop(container_id, None)
        self._learned_pods.pop(pod_uid, None)
        self.version += 1

    def lookup(self, cgroup: CgroupName, *, is_sandbox: bool = False) -> Name:
        """The best name known now."""
        learned = self._learned.get(cgroup.container_id)
        if learned:
            return learned
        told = self._bundles.get(cgroup.container_id) or self._by_container.get(cgroup.container_id)
        pod = self._learned_pods.get(cgroup.pod_uid)
        if told:
            own = {"container": told.container, "image": told.image, "alias": told.alias}
            return replace(pod, **own) if pod else told
        pod = pod or self._by_pod.get(cgroup.pod_uid)
        if pod is None:
            return UNNAMED
        if is_sandbox or not cgroup.container_id:
            return pod
        return replace(pod, container=self._infer(cgroup))

    def _infer(self, cgroup: CgroupName) -> str:
        """
        A container's name from its pod's log folders, where it is certain.

        containerd's logs carry no id. Of the pod's names those are left that
        no other container of the pod was given; when one is left, it is this
        one's, and stays so.
        """
        given = self._given.setdefault(cgroup.pod_uid, {})
        if cgroup.container_id not in given:
            left = set(self._containers_of_pod.get(cgroup.pod_uid, ())) - set(given.values())
            if len(left) != 1:
                return ""
            given[cgroup.container_id] = clean_text(left.pop())
        return given[cgroup.container_id]

    def look_again(self, pod_uid: str) -> None:
        """A container was born in this pod: its log folder is there by now."""
        folder = self._pod_folders.get(pod_uid)
        if folder is not None:
            self._containers_of_pod[pod_uid] = sorted(self._root.folders(f"{POD_LOGS}/{folder}"))

    def forget(self, cgroup: CgroupName) -> None:
        """A container ended: its name is free for its successor."""
        self._learned.pop(cgroup.container_id, None)
        self._bundles.pop(cgroup.container_id, None)
        self._take_back(cgroup)

    def note_sandbox(self, cgroup: CgroupName) -> None:
        """A container that was given a name turned out to hold the pod only: the name is another's."""
        self._take_back(cgroup)
        self.version += 1

    def _take_back(self, cgroup: CgroupName) -> None:
        given = self._given.get(cgroup.pod_uid, {})
        given.pop(cgroup.container_id, None)
        if not given:
            self._given.pop(cgroup.pod_uid, None)
