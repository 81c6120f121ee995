"""Pod networks: one process speaks for a pod; pods on the host's network do not speak."""

from pathlib import Path
from unittest import mock

import pytest
from tests.collect.nodes import Node, at

from nodescope.base.block import Block
from nodescope.base.entity import Entity
from nodescope.collect.containers.cgroup_path import CgroupName
from nodescope.collect.containers.live_containers import LiveContainer
from nodescope.collect.run.source import Context
from nodescope.collect.sources.pod import LOOK_TICKS, PodSource

HOST = "net:[1]"
HEAD = "Inter-| Receive\n face |bytes\n"


def write_network(node: Node, pid: int, namespace: str, received: int, interface: str = "eth0") -> None:
    node.link(f"proc/{pid}/ns/net", namespace)
    numbers = " ".join([str(received), *["0"] * 15])
    lo = " ".join(["9"] * 16)
    node.write(f"proc/{pid}/net/dev", f"{HEAD}    lo: {lo}\n  {interface}: {numbers}\n")


def member(pod: str, pids: tuple[int, ...], container: str = "c", name: str = "") -> LiveContainer:
    labels = (
        ("namespace", "shop"),
        ("pod", name),
        ("container", ""),
        ("image", ""),
        ("id", f"/pod{pod}/{container}"),
    )
    entity = Entity("container", (f"{pod}{container}",), labels)
    return LiveContainer(entity, CgroupName(f"{pod}{container}", "", pod), container, f"cgroup/{pod}", pids)


@pytest.fixture
def node(tmp_path: Path) -> Node:
    made = Node(tmp_path)
    made.write("proc/stat", "")
    made.link("proc/1/ns/net", HOST)
    return made


def open_source(node: Node, *members: LiveContainer) -> tuple[PodSource, Context]:
    context = node.context()
    context.live_containers.replace(members)
    source = PodSource(context)
    return source, context


def look(source: PodSource, number: int) -> Block:
    list(source.refresh(at(number)))
    ((segment, _),) = source.segments()
    segment.read()
    block = segment.block(number)
    assert block is not None
    return block


def received(block: Block) -> dict[str, float]:
    return {entity.ids[0]: row[0] for entity, row in zip(block.entities, block.values.tolist())}


def test_one_process_speaks_for_a_pod_and_loopback_is_left_out(node: Node) -> None:
    write_network(node, 10, "net:[2]", 123)
    source, _ = open_source(node, member("p", (10, 11), "a"), member("p", (12,), "b"))
    block = look(source, 0)
    assert received(block) == {"p": 123.0}
    assert block.entities[0].attribute("interface") == "eth0"
    source.close()


def test_a_pod_on_the_network_of_the_host_is_left_out(node: Node) -> None:
    """It would show the node's traffic as its own."""
    write_network(node, 10, HOST, 999)
    write_network(node, 20, "net:[2]", 5)
    source, context = open_source(node, member("h", (10,)), member("p", (20,)))
    assert received(look(source, 0)) == {"p": 5.0}
    assert context.descriptors.pinned == 1
    source.close()


def test_pods_that_share_a_namespace_are_on_the_host_though_process_1_tells_nothing(node: Node) -> None:
    (node.path / "proc/1/ns/net").unlink()
    for pid in (10, 11):
        write_network(node, pid, HOST, 999)
    source, _ = open_source(node, member("h", (10,)), member("i", (11,)))
    assert received(look(source, 0)) == {}
    source.close()


def test_when_the_speaker_dies_another_process_speaks(node: Node) -> None:
    write_network(node, 10, "net:[2]", 100)
    write_network(node, 11, "net:[2]", 150)
    source, context = open_source(node, member("p", (10, 11)))
    assert received(look(source, 0)) == {"p": 100.0}
    node.remove("proc/10")
    context.live_containers.replace((member("p", (11,)),))
    assert received(look(source, 1)) == {"p": 150.0}
    assert context.descriptors.pinned == 1
    source.close()


def test_a_pod_that_ended_gives_its_descriptor_back(node: Node) -> None:
    write_network(node, 10, "net:[2]", 100)
    source, context = open_source(node, member("p", (10,)))
    look(source, 0)
    context.live_containers.replace(())
    assert look(source, 1).entities == ()
    assert context.descriptors.pinned == 0
    source.close()


def test_a_name_that_arrives_later_reaches_the_series(node: Node) -> None:
    write_network(node, 10, "net:[2]", 100)
    source, context = open_source(node, member("p", (10,)))
    before = look(source, 0).entities[0]
    context.live_containers.replace((member("p", (10,), name="web-0"),))
    after = look(source, 1).entities[0]
    assert (before.attribute("pod"), after.attribute("pod")) == ("", "web-0")
    assert before.key == after.key
    source.close()


def test_pids_are_read_from_the_cgroup_where_the_live_containers_have_none(node: Node) -> None:
    write_network(node, 10, "net:[2]", 100)
    node.write("cgroup/p/cgroup.procs", "10\n")
    source, _ = open_source(node, member("p", ()))
    assert received(look(source, 0)) == {"p": 100.0}
    source.close()


def test_a_process_that_leaves_the_host_s_network_is_found(node: Node) -> None:
    """It was met while a runtime set it up; its pid and its container stay the same."""
    write_network(node, 10, HOST, 100)
    source, _ = open_source(node, member("p", (10,)))
    assert look(source, 0).entities == ()
    node.remove("proc/10/ns/net")
    node.link("proc/10/ns/net", "net:[2]")
    found = [received(look(source, tick)) for tick in range(1, LOOK_TICKS + 1)]
    assert found[-1] == {"p": 100.0}
    source.close()


def test_pods_whose_processes_are_the_same_are_not_asked_again(node: Node) -> None:
    """On a node where something starts every second the others cost nothing."""
    for pid in (10, 11, 12):
        write_network(node, pid, f"net:[{pid}]", 100)
    source, context = open_source(node, member("p", (10,)), member("q", (11,)))
    look(source, 1)
    context.live_containers.replace((member("p", (10,)), member("q", (11, 12))))
    with mock.patch.object(context.root, "link", side_effect=context.root.link) as link:
        look(source, 2)
    assert [call.args[0] for call in link.call_args_list] == ["proc/11/ns/net"]
    source.close()
