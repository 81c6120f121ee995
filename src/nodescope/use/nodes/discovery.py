"""
Viewers found in a cluster: the pods of a label, watched; each node's viewer is the pod on it.

Of two pods on one node (a rollout) the ready one counts, then the newer. A
pod that is not ready is named with its reason and not asked. While the API
server is away what was known stays; a node that then does not answer is
looked up anew before it is given up.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from threading import Lock
from typing import Any, Protocol, TypeVar

from nodescope.base.errors import NodescopeError
from nodescope.base.text import clean_text
from nodescope.kube.client import Client
from nodescope.kube.watch import ObjectWatch
from nodescope.serve.http_client import Endpoint
from nodescope.use.nodes.directory import NodeDirectory, NodeEntry
from nodescope.use.nodes.viewer_client import ViewerAccess

# What our manifests put on the pods that have a viewer.
SELECTOR = "app.kubernetes.io/name=nodescope,app.kubernetes.io/component=agent"
# The name a container's port may have, where it is not the usual number.
PORT_NAME = "viewer"

Item = Mapping[str, Any]


class Closable(Protocol):
    def close(self) -> None: ...


Answerer_ = TypeVar("Answerer_", bound=Closable)
"""What answers for a node; closed when its pod is gone."""


@dataclass(frozen=True, slots=True)
class Pod:
    """What matters of a viewer's pod."""

    uid: str
    name: str
    node: str
    ip: str
    port: int
    created: str
    reason: str
    """Why it cannot be asked; empty when it can."""

    @property
    def rank(self) -> tuple[bool, str, str]:
        """The better of two on one node is the larger: ready, then newer."""
        return not self.reason, self.created, self.uid


def parse_pod(item: Item, usual_port: int) -> Pod | None:
    """None for a pod that no scheduler has placed yet."""
    about, spec, status = (item.get(part) or {} for part in ("metadata", "spec", "status"))
    node = clean_text(str(spec.get("nodeName") or ""))
    if not node:
        return None
    named = [
        port["containerPort"]
        for container in spec.get("containers") or ()
        for port in container.get("ports") or ()
        if port.get("name") == PORT_NAME
    ]
    return Pod(
        str(about.get("uid") or ""),
        clean_text(str(about.get("name") or "")),
        node,
        str(status.get("podIP") or ""),
        int(named[0]) if named else usual_port,
        str(about.get("creationTimestamp") or ""),
        find_reason(about, status),
    )


def find_reason(about: Item, status: Item) -> str:
    name = clean_text(str(about.get("name") or ""), 80)
    if about.get("deletionTimestamp"):
        return f"its viewer's pod {name} is being deleted"
    if not status.get("podIP"):
        return f"its viewer's pod {name} has no address yet ({clean_text(str(status.get('phase') or 'no phase'), 40)})"
    ready = next((one for one in status.get("conditions") or () if one.get("type") == "Ready"), None)
    if ready is None or ready.get("status") != "True":
        why = clean_text(str((ready or {}).get("reason") or "no word from its kubelet"), 80)
        return f"its viewer's pod {name} is not ready: {why}"
    return ""


class PodDirectory(NodeDirectory[Answerer_]):
    """Kept up to date by a watch; asks the API server itself when a node fails."""

    def __init__(
        self,
        client: Client,
        lookup: Client,
        namespace: str,
        selector: str,
        port: int,
        access: ViewerAccess,
        make: Callable[[str, Endpoint], Answerer_],
    ) -> None:
        self._path = f"/api/v1/namespaces/{namespace}/pods" if namespace else "/api/v1/pods"
        self._selector = selector
        self._port = port
        self._access = access
        self._make = make
        self._client = client
        self._lookup = lookup
        self._lookup_lock = Lock()
        self._lock = Lock()
        self._pods: dict[str, Pod] = {}
        self._backends: dict[tuple[str, str], Answerer_] = {}
        self.watch = ObjectWatch(client, self._path, {"labelSelector": selector}, self, access.clock)

    # -- what the watch says ------------------------------------------------------

    def replace(self, items: Iterable[Item]) -> None:
        pods = [parse_pod(item, self._port) for item in items]
        with self._lock:
            self._pods = {pod.uid: pod for pod in pods if pod is not None}

    def change(self, item: Item) -> None:
        pod = parse_pod(item, self._port)
        with self._lock:
            if pod is not None:
                self._pods[pod.uid] = pod

    def remove(self, item: Item) -> None:
        with self._lock:
            self._pods.pop(str((item.get("metadata") or {}).get("uid") or ""), None)

    # -- what the fleet asks ------------------------------------------------------

    def entries(self) -> Mapping[str, NodeEntry[Answerer_]]:
        with self._lock:
            # Of one node's the last stays, which is the best.
            best = {pod.node: pod for pod in sorted(self._pods.values(), key=lambda pod: pod.rank)}
            entries = {node: self._entry(pod) for node, pod in best.items()}
            used = {(entry.node, entry.address) for entry in entries.values()}
            for gone in [key for key in self._backends if key not in used]:
                self._backends.pop(gone).close()
        return entries

    def _entry(self, pod: Pod) -> NodeEntry[Answerer_]:
        endpoint = Endpoint(pod.ip, pod.port, self._access.tls)
        key = (pod.node, endpoint.render())
        if key not in self._backends:
            self._backends[key] = self._make(pod.node, endpoint)
        return NodeEntry(pod.node, self._backends[key], endpoint.render(), pod.reason)

    def resolve(self, node: str) -> NodeEntry[Answerer_] | None:
        """As the API server has it now, for when the watch lags behind a failure."""
        query = {"labelSelector": self._selector, "fieldSelector": f"spec.nodeName={node}"}
        with self._lookup_lock:
            try:
                items = self._lookup.read(self._path, query).get("items") or []
            except NodescopeError:
                # Away as well: what the watch knows is all there is.
                return self.entries().get(node)
        pods = [pod for item in items if (pod := parse_pod(item, self._port))]
        with self._lock:
            self._pods = {uid: pod for uid, pod in self._pods.items() if pod.node != node}
            self._pods.update({pod.uid: pod for pod in pods})
        return self.entries().get(node)

    def server_ahead(self) -> float | None:
        return self._client.ahead_seconds

    def trouble(self) -> str:
        """Why the list of nodes may be wrong; each pod's own reason is with its node."""
        state = self.watch.state
        if state.status == "starting":
            return "the API server has not answered yet"
        if state.status != "current":
            return f"the list of nodes may be old: {clean_text(state.reason, 200)}"
        with self._lock:
            if not self._pods:
                return f"no pod has the label {self._selector}"
        return ""
