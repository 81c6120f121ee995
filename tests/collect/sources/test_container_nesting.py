"""Containers that nest cgroups without end: what is looked at is limited, and they alone have no count."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from tests.collect.nodes import Node
from tests.collect.sources.test_container import (
    BASE,
    UID,
    container_id,
    look,
    open_source,
    path_of,
    write_container,
)

from nodescope.collect.files.roots import NodeRoot
from nodescope.collect.sources.container.cgroup_tree import (
    DEPTH,
    NESTED_DEPTH,
    NESTED_FOLDERS,
    TENANT_FOLDERS,
    Hierarchy,
    Members,
    Tree,
    member_folders,
    update_folder,
    walk_tree,
)

USER = "user.slice/user-1000.slice"
V2 = Hierarchy("v2", BASE)


@pytest.fixture
def node(tmp_path: Path) -> Node:
    made = Node(tmp_path)
    made.write(f"{BASE}/cgroup.controllers", "cpu memory\n")
    return made


class EndlessRoot(NodeRoot):
    """Every folder holds another, without end: as deep as a path may be."""

    def folders(self, path: str, most: int | None = None) -> Iterator[str]:
        del path
        return iter(["a"][:most])

    def count_folders(self, path: str) -> int | None:
        del path
        return 1


def test_nesting_without_end_is_walked_to_its_limit(tmp_path: Path) -> None:
    """Also where Python's own recursion would have ended."""
    found = member_folders(EndlessRoot(tmp_path), "c")
    assert found.is_cut
    assert len(found.folders) == NESTED_DEPTH + 1


def test_a_path_longer_than_the_kernel_takes_is_cut(tmp_path: Path) -> None:
    found = member_folders(EndlessRoot(tmp_path), "x" * 4000)
    assert found == Members(("x" * 4000,), is_cut=True)


def test_a_wide_container_is_walked_to_its_limit(node: Node) -> None:
    for number in range(NESTED_FOLDERS + 5):
        (node.path / "c" / str(number)).mkdir(parents=True)
    found = member_folders(node.root(), "c")
    assert found.is_cut
    assert len(found.folders) == NESTED_FOLDERS


def test_what_is_within_the_limit_is_whole_and_in_order(node: Node) -> None:
    for path in ("c/a/b", "c/d"):
        (node.path / path).mkdir(parents=True)
    assert member_folders(node.root(), "c") == Members(("c", "c/a", "c/a/b", "c/d"))


def test_only_the_container_that_nests_too_deep_has_no_count(node: Node) -> None:
    """Its neighbour has; /status gets a sentence, and an end of the nesting ends it."""
    write_container(node, 1, pids="10\n11\n")
    write_container(node, 2, pids="20\n")
    deep = f"{BASE}/{path_of(2)}/" + "/".join("n" * (NESTED_DEPTH + 3))
    node.write(f"{deep}/cgroup.procs", "21\n")
    source, context = open_source(node)
    _, blocks = look(source, 0)
    block = blocks["container.processes"]
    counts = {entity.ids[0]: row[0] for entity, row in zip(block.entities, block.values)}
    assert counts[container_id(1)] == 2
    assert np.isnan(counts[container_id(2)])
    assert len(blocks["container"].entities) == 2
    (fault,) = next(segment for segment, _ in source.segments() if segment.table is block.table).faults
    assert fault.status == "cut"
    assert path_of(2) in fault.path
    look(source, 1)
    assert [path_of(2) in path for path in context.container_counters.cut_now] == [True]
    node.remove(f"{BASE}/{path_of(2)}/n")
    for number in range(2, 40):
        _, blocks = look(source, number)
        if "container.processes" in blocks:
            block = blocks["container.processes"]
    counts = {entity.ids[0]: row[0] for entity, row in zip(block.entities, block.values)}
    assert counts[container_id(2)] == 1
    assert context.container_counters.cut_now == {}
    source.close()


# -- the tree --------------------------------------------------------------------------


def test_a_user_s_folders_are_looked_at_up_to_a_number(node: Node) -> None:
    """The node's own containers are all found, before and behind them in the alphabet."""
    for number in range(TENANT_FOLDERS + 50):
        (node.path / BASE / USER / f"f{number}").mkdir(parents=True)
    write_container(node, 1)
    node.write(f"{BASE}/zzz/{container_id(2)}/cgroup.procs", "")
    tree = walk_tree(node.root(), V2)
    assert tree.containers == {path_of(1), f"zzz/{container_id(2)}"}
    assert tree.cut_tenants() == {USER}
    assert tree.counts[USER] == TENANT_FOLDERS


def test_all_tenants_together_are_looked_at_up_to_a_number(node: Node) -> None:
    for user in range(5):
        for number in range(6):
            (node.path / BASE / f"user.slice/user-{user}.slice/f{number}").mkdir(parents=True)
    tree = Tree(owner=node.root().owner(BASE), most=10)
    update_folder(node.root(), V2, tree, "")
    assert len(tree.tenants) == 10
    assert len(tree.cut_tenants()) >= 3


def test_what_a_tenant_removes_makes_room_again(node: Node) -> None:
    outer = f"docker/{container_id(9)}"
    inner = f"{outer}/kubelet/kubepods/pod{UID}/{container_id(8)}"
    node.write(f"{BASE}/{inner}/cgroup.procs", "")
    tree = walk_tree(node.root(), V2)
    assert tree.counts == {outer: 4}
    node.remove(f"{BASE}/{outer}/kubelet/kubepods")
    update_folder(node.root(), V2, tree, f"{outer}/kubelet")
    assert tree.containers == {outer}
    assert tree.counts == {outer: 1}
    node.remove(f"{BASE}/{outer}")
    update_folder(node.root(), V2, tree, "docker")
    assert (tree.tenants, tree.counts) == ({}, {})


def test_a_tree_deeper_than_any_runtime_s_is_cut_and_said(node: Node) -> None:
    path = "/".join(["d"] * (DEPTH + 5))
    node.write(f"{BASE}/{path}/cgroup.procs", "")
    tree = walk_tree(node.root(), V2)
    assert max(path.count("/") for path in tree.children) == DEPTH - 1
    assert tree.cut
