"""
The names of this node's pods, watched at the Kubernetes API server.

Reads   GET /api/v1/pods?fieldSelector=spec.nodeName=NODE, then a watch of the same
Needs   an account that may get, list and watch pods: the pod's own, or a kubeconfig
Docs    https://kubernetes.io/docs/reference/using-api/api-concepts/#efficient-detection-of-changes

What is used of a pod, as the server writes it:

    {"metadata": {"name": "web-5d4f-x", "namespace": "shop", "uid": "0f4c...", "labels": {"app": "web"},
                  "ownerReferences": [{"kind": "ReplicaSet", "name": "web-5d4f", "controller": true}]},
     "spec": {"containers": [{"name": "app", "image": "nginx:1.17.10",
                              "resources": {"requests": {"cpu": "250m", "memory": "64Mi"}}}]},
     "status": {"containerStatuses": [{"name": "app", "containerID": "containerd://3f1a...", "restartCount": 2}]}}

The watch has a thread of its own: the tick never waits for the server, and
what was learned stays while the server is away.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from nodescope.base.block import Block, Table, make_block
from nodescope.base.entity import NODE
from nodescope.base.errors import SourceAbsent, SourceFailed
from nodescope.base.metric import Metric
from nodescope.base.text import clean_text
from nodescope.collect.containers.live_containers import LiveContainers
from nodescope.collect.containers.names import ContainerNames, Name
from nodescope.collect.run.source import CallDefaults, Context
from nodescope.kube.client import Client
from nodescope.kube.pod_owner import parse_owner
from nodescope.kube.resource_quantity import parse_resource
from nodescope.kube.watch import ObjectWatch, WatchState

STATUSES = ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses")
CONTAINERS = ("containers", "initContainers", "ephemeralContainers")
# Labels of one pod in an archive's column: what a person would still read.
LABEL_CHARACTERS = 1024
REASON_CHARACTERS, ID_CHARACTERS = 40, 12
REMEDY = "give its account get, list and watch on pods (a ClusterRole and its binding), or turn it off with --no-kubernetes"


def counted(name: str, sentence: str) -> Metric:
    return Metric(f"kubernetes.{name}", "counter", sentence, f"nodescope_kubernetes_{name}_total")


TABLE = Table(
    "kubernetes",
    "kubernetes",
    ("node",),
    (
        Metric("kubernetes.pods", "gauge", "Pods of this node that are known.", "nodescope_kubernetes_pods"),
        counted("lists", "Times all pods were listed."),
        counted("watches", "Watches begun."),
        counted("events", "Changes that the server told."),
        counted("errors", "Times the server was away or said no."),
    ),
)


class PodNames:
    """Puts what the watch tells into the names; on the watching thread."""

    def __init__(self, names: ContainerNames, live_containers: LiveContainers) -> None:
        self._names = names
        self._live_containers = live_containers
        self.pods: dict[str, tuple[str, ...]] = {}
        """Container ids by pod UID."""

    def replace(self, items: Iterable[Mapping[str, Any]]) -> None:
        before = set(self.pods)
        for item in items:
            before.discard(self._learn(item))
        for uid in before:
            self._forget(uid)

    def change(self, item: Mapping[str, Any]) -> None:
        self._learn(item)

    def remove(self, item: Mapping[str, Any]) -> None:
        self._forget(str((item.get("metadata") or {}).get("uid")))

    def _learn(self, item: Mapping[str, Any]) -> str:
        uid = str((item.get("metadata") or {}).get("uid"))
        pod = parse_pod(item)
        found = dict(parse_containers(item, pod))
        for container_id, name in found.items():
            self._names.learn(container_id, name)
        self._names.learn_pod(uid, pod)
        # An id that a restart replaced is let go with its cgroup.
        self.pods[uid] = tuple({*self.pods.get(uid, ()), *found})
        return uid

    def _forget(self, uid: str) -> None:
        living = self._live_containers.by_container
        self._names.unlearn([one for one in self.pods.pop(uid, ()) if one not in living], uid)


def parse_pod(item: Mapping[str, Any]) -> Name:
    about = item.get("metadata") or {}
    labels = about.get("labels") or {}
    shown = ",".join(f"{key}={value}" for key, value in sorted(labels.items()))
    return Name(
        namespace=clean_text(str(about.get("namespace") or "")),
        pod=clean_text(str(about.get("name") or "")),
        source="kube",
        owner=clean_text(parse_owner(about.get("ownerReferences") or [], labels)),
        labels=clean_text(shown, LABEL_CHARACTERS),
    )


def parse_containers(item: Mapping[str, Any], pod: Name) -> Iterator[tuple[str, Name]]:
    """(container id, name) of every container that has been started."""
    spec, status = item.get("spec") or {}, item.get("status") or {}
    specified = {one.get("name"): one for kind in CONTAINERS for one in spec.get(kind) or ()}
    for one in (one for kind in STATUSES for one in status.get(kind) or ()):
        # containerd://<id>; empty until it is started.
        _, _, container_id = str(one.get("containerID") or "").partition("://")
        if container_id:
            yield container_id, name_container(pod, one, specified.get(one.get("name")) or {})


def name_container(pod: Name, status: Mapping[str, Any], spec: Mapping[str, Any]) -> Name:
    requests = (spec.get("resources") or {}).get("requests") or {}
    return replace(
        pod,
        container=clean_text(str(status.get("name") or "")),
        image=clean_text(str(spec.get("image") or status.get("image") or "")),
        restarts=str(status.get("restartCount", "")),
        cpu_request=render_request(requests.get("cpu")),
        memory_request=render_request(requests.get("memory")),
        previous_exit=render_exit((status.get("lastState") or {}).get("terminated") or {}),
    )


def render_exit(ended: Mapping[str, Any]) -> str:
    """Three words, as Name.previous_exit has them; empty where the API does not say how it ended."""
    code, reason = ended.get("exitCode"), clean_text(str(ended.get("reason") or "Unknown"), REASON_CHARACTERS)
    _, _, container_id = str(ended.get("containerID") or "").partition("://")
    if not isinstance(code, int) or not container_id:
        return ""
    return f"{code} {''.join(reason.split()) or 'Unknown'} {clean_text(container_id[:ID_CHARACTERS])}"


def render_request(quantity: object) -> str:
    """A plain number of cores or bytes; empty where nothing is requested."""
    value = None if quantity is None else parse_resource(quantity)
    return "" if value is None else f"{value:.15g}"


class KubernetesSource(CallDefaults):
    """Starts the watch and tells how it stands."""

    name = "kubernetes"
    pace_seconds = 5.0
    # The watch has a thread of its own; only its state is read.
    is_prompt = True
    absent_pace_seconds = 1.0

    def __init__(self, context: Context) -> None:
        account = context.kubernetes.account
        if account is None:
            raise SourceAbsent(context.kubernetes.absent)
        self._listener = PodNames(context.names, context.live_containers)
        query = {"fieldSelector": f"spec.nodeName={context.node}"}
        self._watch = ObjectWatch(Client(account), "/api/v1/pods", query, self._listener, context.clock)
        self._watch.start()

    def read(self) -> tuple[int, WatchState]:
        state = self._watch.state
        if state.status == "starting":
            raise SourceAbsent("the API server has not answered yet")
        if state.http_status == 403:
            raise SourceAbsent(f"{state.reason}; {REMEDY}")
        if state.status != "current":
            kept = f"; {len(self._listener.pods)} pods stay named" if self._listener.pods else ""
            raise SourceFailed(f"{state.reason}{kept}")
        return len(self._listener.pods), state

    def parse(self, answer: Any, mono_ns: int) -> tuple[Block, ...]:
        pods, state = answer
        row = [pods, state.lists, state.watches, state.events, state.errors]
        return (make_block(TABLE, {NODE: row}, mono_ns),)

    def close(self) -> None:
        self._watch.stop()
