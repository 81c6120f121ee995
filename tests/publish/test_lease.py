"""A node's Lease: written in place of the Node, made when it is not there, and the Node where it is refused."""

from collections.abc import Mapping
from typing import Any

import pytest
from tests.support import TurnableClock

from nodescope.base.errors import KubernetesRefused
from nodescope.fpga.node_lease import LEASE_LABEL, find_leased_node, name_lease
from nodescope.publish.annotated_object import REFUSED_SECONDS, LeaseObject, NodeObject, render_micro_time
from nodescope.publish.annotation import AnnotationCounters, Annotator
from nodescope.publish.annotation_content import AnnotationContent

KEY = "nodescope.io/window"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/ns/leases"


class Objects:
    """Stands in for a client: objects by path, and who may write which."""

    def __init__(self) -> None:
        self.objects: dict[str, dict[str, Any]] = {"/api/v1/nodes/n": {"metadata": {"uid": "u1"}}}
        self.refused: dict[str, int] = {}
        """What a path begins with -> the status of its refusal."""
        self.writes: list[str] = []

    def read(self, path: str) -> dict[str, Any]:
        self._check(path)
        if path not in self.objects:
            raise KubernetesRefused("404 not found", 404)
        return self.objects[path]

    def patch(
        self, path: str, change: dict[str, Any], query: Mapping[str, str] | None = None
    ) -> dict[str, Any]:
        found = self.read(path)
        if query is None:
            self.writes.append(path)
            notes = found["metadata"].setdefault("annotations", {})
            notes |= change["metadata"]["annotations"]
            found["metadata"]["annotations"] = {key: text for key, text in notes.items() if text is not None}
            found["spec"] = {**found.get("spec", {}), **change.get("spec", {})}
        return found

    def create(self, path: str, content: dict[str, Any]) -> dict[str, Any]:
        self._check(path)
        self.writes.append(path)
        self.objects[f"{path}/{content['metadata']['name']}"] = content
        return content

    def close(self) -> None: ...

    def _check(self, path: str) -> None:
        for start, status in self.refused.items():
            if path.startswith(start):
                raise KubernetesRefused(f"{status} no", status)


def build(objects: Objects) -> LeaseObject:
    client: Any = objects
    return LeaseObject(NodeObject(client, "n"), "ns", TurnableClock())


def read_notes(objects: Objects, path: str) -> dict[str, str]:
    found: dict[str, str] = objects.objects[path]["metadata"].get("annotations", {})
    return found


def test_the_first_write_makes_the_lease_and_later_ones_patch_it() -> None:
    objects = Objects()
    lease = build(objects)
    lease.read()
    lease.write({KEY: "1"})
    lease.write({KEY: "2"})
    made = objects.objects[f"{LEASES}/node.n"]
    assert made["metadata"]["annotations"] == {KEY: "2"}
    assert made["metadata"]["labels"] == {LEASE_LABEL: "true"}
    assert made["metadata"]["ownerReferences"] == [
        {"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "u1"}
    ]
    assert made["spec"]["holderIdentity"] == "n"
    assert objects.writes == [LEASES, f"{LEASES}/node.n"]


def test_what_an_older_agent_left_at_the_node_is_read_and_taken_away() -> None:
    """Once the Lease has it, and the keys of others stay."""
    objects = Objects()
    objects.objects["/api/v1/nodes/n"]["metadata"]["annotations"] = {KEY: "old", "human": "kept"}
    lease = build(objects)
    assert lease.read()[KEY] == "old"
    lease.write({KEY: "new"})
    assert read_notes(objects, "/api/v1/nodes/n") == {"human": "kept"}
    lease.write({KEY: "newer"})
    assert objects.writes.count("/api/v1/nodes/n") == 1


@pytest.mark.parametrize("status", [403, 404])
def test_without_the_right_or_the_namespace_the_node_is_written(status: int) -> None:
    """And the Lease is tried again ten minutes later."""
    objects = Objects()
    objects.refused[LEASES] = status
    lease = build(objects)
    lease.read()
    lease.write({KEY: "1"})
    lease.write({KEY: "2"})
    assert read_notes(objects, "/api/v1/nodes/n") == {KEY: "2"}
    assert "needs get, create and patch on leases in namespace ns" in lease.note
    objects.refused.clear()
    lease.write({KEY: "3"})
    assert LEASES not in objects.writes
    clock: Any = lease.clock
    clock.advance(round(REFUSED_SECONDS * 1e9))
    lease.write({KEY: "4"})
    assert lease.note == ""
    assert read_notes(objects, "/api/v1/nodes/n") == {}
    assert read_notes(objects, f"{LEASES}/node.n") == {KEY: "4"}


def test_a_refusal_by_a_policy_is_no_reason_to_write_the_node() -> None:
    """A token of another node: the Node would be refused as well, and it is told."""
    objects = Objects()
    lease = build(objects)
    lease.read()
    objects.refused[LEASES] = 422
    with pytest.raises(KubernetesRefused):
        lease.write({KEY: "1"})
    assert objects.writes == []


def test_a_write_can_be_rehearsed_before_there_is_a_lease() -> None:
    objects = Objects()
    lease = build(objects)
    annotator = Annotator(lease, [], TurnableClock(), AnnotationCounters())
    assert annotator.rehearse() == ""
    objects.refused[LEASES] = 403
    assert annotator.rehearse().startswith("403 no; the account needs get, create and patch on leases")
    assert objects.writes == []


def test_one_place_s_success_hides_nothing_of_the_other() -> None:
    """/status tells the refusal of the Lease although the Node is written."""
    objects, counters = Objects(), AnnotationCounters()
    objects.refused[LEASES] = 403
    lease = build(objects)

    def make(key: str) -> AnnotationContent[str]:
        return AnnotationContent(key, lambda: "x", str, lambda _, __: True, lambda _: False)

    clock = TurnableClock()
    first = Annotator(lease, [make(KEY)], clock, counters)
    second = Annotator(lease.node, [make("fpga")], clock, counters)
    first.step()
    second.step()
    assert "leases" in counters.reason
    assert counters.keys == (KEY, "fpga")
    assert counters.written == 2


def test_names_and_times() -> None:
    assert find_leased_node(name_lease("worker-1.example")) == "worker-1.example"
    assert find_leased_node("nodescope-scheduler") == ""
    assert render_micro_time(1_690_000_000_123_456_000) == "2023-07-22T04:26:40.123456Z"
