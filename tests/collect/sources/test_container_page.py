"""Memory by NUMA node and huge pages of each container, of both versions of cgroups."""

import math
from pathlib import Path

import pytest
from tests.collect.nodes import Node

from nodescope.base.entity import Entity
from nodescope.base.errors import SourceAbsent
from nodescope.collect.containers.cgroup_path import CgroupName
from nodescope.collect.containers.live_containers import LiveContainer
from nodescope.collect.sources.container.page_source import ContainerPageSource

LABELS = (("namespace", "shop"), ("pod", "web"), ("container", "app"), ("image", ""), ("id", "/pod/c"))
V1_NUMA = """total=300 N0=200 N1=100
file=1 N0=1 N1=0
anon=2 N0=2 N1=0
unevictable=0 N0=0 N1=0
hierarchical_total=305 N0=204 N1=101
hierarchical_file=40 N0=30 N1=10
hierarchical_anon=260 N0=170 N1=90
hierarchical_unevictable=5 N0=4 N1=1
"""


def add_container(node: Node) -> ContainerPageSource:
    context = node.context()
    entity = Entity("container", ("c", "1"), LABELS, (("container_id", "c"), ("qos", "")))
    context.live_containers.replace((LiveContainer(entity, CgroupName("c"), "pod/c", "x"),))
    return ContainerPageSource(context)


def add_v2(node: Node) -> None:
    node.write("sys/fs/cgroup/cgroup.controllers", "memory hugetlb\n")
    here = "sys/fs/cgroup/pod/c"
    node.write(f"{here}/memory.numa_stat", "anon N0=8192 N1=4096\nfile N0=0 N1=40960\nslab N0=1 N1=1\n")
    node.write(f"{here}/hugetlb.2MB.current", "4194304\n")
    node.write(f"{here}/hugetlb.2MB.rsvd.current", "9\n")
    node.write(f"{here}/hugetlb.2MB.events", "max 7\n")


def read(source: ContainerPageSource) -> dict[str, dict[str, list[float]]]:
    blocks = source.parse(source.read(), 1)
    return {
        block.table.name: {
            entity.labels[-1][1]: row for entity, row in zip(block.entities, block.values.tolist())
        }
        for block in blocks
    }


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


def add_numa_nodes(node: Node, count: int) -> None:
    for number in range(count):
        node.write(f"sys/devices/system/node/node{number}/cpulist", "0\n")


def test_pages_of_v2_are_counted_by_numa_node(node: Node) -> None:
    """The kernel writes bytes; cAdvisor's name is of pages. What v2 does not tell is missing, not 0."""
    add_v2(node)
    add_numa_nodes(node, 2)
    found = read(add_container(node))
    assert {key: row[:2] for key, row in found["container_page"].items()} == {
        "0": [0.0, 2.0],
        "1": [10.0, 1.0],
    }
    assert all(math.isnan(row[2]) for row in found["container_page"].values())
    assert found["container_page.huge"] == {}


def test_pages_of_v1_include_nested_cgroups(node: Node) -> None:
    node.write("sys/fs/cgroup/memory/cgroup.procs", "")
    node.write("sys/fs/cgroup/memory/pod/c/memory.numa_stat", V1_NUMA)
    add_numa_nodes(node, 2)
    found = read(add_container(node))
    assert found["container_page"] == {"0": [30.0, 170.0, 4.0], "1": [10.0, 90.0, 1.0]}


def test_huge_pages_are_told_by_size_where_some_are_set_aside(node: Node) -> None:
    add_v2(node)
    add_numa_nodes(node, 1)
    node.write("sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", "64\n")
    found = read(add_container(node))
    assert found["container_page"] == {}
    used, most, failed = found["container_page.huge"]["2MB"]
    assert (used, failed) == (4194304.0, 7.0)
    assert math.isnan(most)


def test_huge_pages_of_v1_have_their_most(node: Node) -> None:
    node.write("sys/fs/cgroup/memory/cgroup.procs", "")
    for name, value in (
        ("usage_in_bytes", 2),
        ("max_usage_in_bytes", 3),
        ("failcnt", 1),
        ("limit_in_bytes", 9),
    ):
        node.write(f"sys/fs/cgroup/hugetlb/pod/c/hugetlb.1GB.{name}", f"{value}\n")
    node.write("sys/kernel/mm/hugepages/hugepages-1048576kB/nr_overcommit_hugepages", "1\n")
    assert read(add_container(node))["container_page.huge"] == {"1GB": [2.0, 3.0, 1.0]}


def test_a_node_with_one_numa_node_and_no_huge_pages_is_not_asked(node: Node) -> None:
    """Nothing could be told apart, and a hundred files would be read for it."""
    add_v2(node)
    add_numa_nodes(node, 1)
    node.write("sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", "0\n")
    with pytest.raises(SourceAbsent, match="nothing to tell apart"):
        add_container(node).read()
