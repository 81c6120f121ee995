"""
Where a node's annotations are written: its Node, or a Lease of its own.

A write of a Node is a write of some ten KiB, and is sent to everybody who
watches nodes: schedulers, controllers, network plugins on every node. A Lease
is half a KiB, and nobody watches ours but the extender. So what changes all the
time goes to the Lease `node.NAME`; the FPGA state, which other schedulers read,
stays at the Node.

An agent that may not write Leases (an older role) writes the Node as before.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

from nodescope.base.clock import Clock
from nodescope.base.errors import KubernetesRefused
from nodescope.base.log import Log
from nodescope.fpga.node_lease import LEASE_LABEL, name_lease, path_leases
from nodescope.kube.client import Client

log = Log("annotation")
# A reader may take a node for gone that did not renew for this long; agents do every minute.
LEASE_SECONDS = 90
# How long the Node stands in for a Lease that was refused.
REFUSED_SECONDS = 600.0
FORBIDDEN, MISSING = 403, 404


@dataclass(slots=True)
class NodeObject:
    """Annotations of the Node."""

    client: Client
    node: str
    note: str = ""
    """What the owner should know although writes succeed."""

    @property
    def needs(self) -> str:
        return f"get and patch on nodes, and the node must be called {self.node}"

    @property
    def name(self) -> str:
        return f"node {self.node}"

    def read(self) -> Mapping[str, str]:
        return read_annotations(self.read_whole())

    def read_whole(self) -> dict[str, Any]:
        return self.client.read(self._path)

    def write(self, texts: Mapping[str, str | None], *, rehearsed: bool = False) -> None:
        query = {"dryRun": "All"} if rehearsed else None
        self.client.patch(self._path, {"metadata": {"annotations": texts}}, query)

    @property
    def _path(self) -> str:
        return f"/api/v1/nodes/{quote(self.node, safe='')}"


@dataclass(slots=True)
class LeaseObject:
    """Annotations of the node's Lease, made when the first are written."""

    node: NodeObject
    namespace: str
    clock: Clock
    note: str = ""
    _left: set[str] = field(default_factory=set)
    """Our keys that an older agent left at the Node."""
    _refused_mono_ns: int | None = None

    @property
    def client(self) -> Client:
        return self.node.client

    @property
    def needs(self) -> str:
        return f"get, create and patch on leases in namespace {self.namespace}"

    @property
    def name(self) -> str:
        return f"lease {self.namespace}/{name_lease(self.node.node)}"

    def read(self) -> Mapping[str, str]:
        """Of the Lease, else what an older agent left at the Node."""
        left = self.node.read()
        self._left = set(left)
        try:
            return {**left, **read_annotations(self.client.read(self._path))}
        except KubernetesRefused as error:
            if error.status not in (FORBIDDEN, MISSING):
                raise
            return left

    def write(self, texts: Mapping[str, str | None], *, rehearsed: bool = False) -> None:
        if rehearsed:
            self._rehearse()
            return
        if self._is_refused():
            self.node.write(texts)
            return
        try:
            self._write_lease(texts)
        except KubernetesRefused as error:
            if error.status not in (FORBIDDEN, MISSING):
                raise
            self._stand_in(error, texts)
            return
        self.note, self._refused_mono_ns = "", None
        if moved := {key: None for key in texts if key in self._left}:
            self.node.write(moved)
            self._left -= set(moved)

    def _write_lease(self, texts: Mapping[str, str | None]) -> None:
        spec = {
            "holderIdentity": self.node.node,
            "leaseDurationSeconds": LEASE_SECONDS,
            "renewTime": render_micro_time(self.clock.wall_ns()),
        }
        try:
            self.client.patch(self._path, {"metadata": {"annotations": texts}, "spec": spec})
        except KubernetesRefused as error:
            if error.status != MISSING:
                raise
            about = {
                "name": name_lease(self.node.node),
                "labels": {LEASE_LABEL: "true"},
                "annotations": texts,
                "ownerReferences": [self._refer_to_node()],
            }
            self.client.create(path_leases(self.namespace), {"metadata": about, "spec": spec})

    def _refer_to_node(self) -> dict[str, str]:
        """The Lease goes with its Node."""
        about = self.node.read_whole().get("metadata") or {}
        return {"apiVersion": "v1", "kind": "Node", "name": self.node.node, "uid": str(about.get("uid"))}

    def _stand_in(self, error: KubernetesRefused, texts: Mapping[str, str | None]) -> None:
        note = f"{error}; written to the Node instead: the account needs {self.needs}"
        if note != self.note:
            log.warning("lease not written", node=self.node.node, reason=note)
        self.note, self._refused_mono_ns = note, self.clock.mono_ns()
        self.node.write(texts)
        self._left |= set(texts)

    def _rehearse(self) -> None:
        """A Lease that is not there yet is as good as one that may be patched."""
        try:
            self.client.patch(self._path, {"metadata": {"annotations": {}}}, {"dryRun": "All"})
        except KubernetesRefused as error:
            if error.status != MISSING:
                raise

    def _is_refused(self) -> bool:
        since = self._refused_mono_ns
        return since is not None and self.clock.mono_ns() - since < REFUSED_SECONDS * 1e9

    @property
    def _path(self) -> str:
        return f"{path_leases(self.namespace)}/{quote(name_lease(self.node.node), safe='')}"


def read_annotations(item: Mapping[str, Any]) -> Mapping[str, str]:
    found = (item.get("metadata") or {}).get("annotations") or {}
    return {key: str(text) for key, text in found.items()}


def render_micro_time(wall_ns: int) -> str:
    """RFC 3339 with six digits, as the API server demands of a MicroTime."""
    return datetime.fromtimestamp(wall_ns / 1e9, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
