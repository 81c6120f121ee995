"""Names without asking anybody: layers, and who said so."""

import os
from pathlib import Path

from tests.collect.nodes import Node

from nodescope.collect.containers.cgroup_path import CgroupName
from nodescope.collect.containers.names import UNNAMED, ContainerNames, Name

ID = "ab" * 32
OTHER = "cd" * 32
UID = "f3d2c1b0-1234-5678-9abc-def012345678"
CONTAINER = CgroupName(ID, "cri-containerd", UID, "Burstable")


def touch(node: Node, path: str, at_ns: int) -> None:
    """The folder's modification time, set by hand: two changes may fall into one clock tick."""
    os.utime(node.path / path, ns=(at_ns, at_ns))


def test_without_any_layer_only_the_path_speaks(tmp_path: Path) -> None:
    names = ContainerNames(Node(tmp_path).root())
    names.refresh()
    assert names.lookup(CONTAINER) is UNNAMED
    assert names.lookup(CONTAINER).source == "path"


def test_a_container_log_names_all_three(tmp_path: Path) -> None:
    node = Node(tmp_path)
    node.write(f"var/log/containers/web-0_shop_nginx-{ID}.log", "")
    names = ContainerNames(node.root())
    names.refresh()
    assert names.lookup(CONTAINER) == Name("shop", "web-0", "nginx", source="logs")


def test_a_pod_log_names_the_pod_and_its_only_container(tmp_path: Path) -> None:
    node = Node(tmp_path)
    node.write(f"var/log/pods/shop_web-0_{UID}/nginx/0.log", "")
    names = ContainerNames(node.root())
    names.refresh()
    assert names.lookup(CONTAINER) == Name("shop", "web-0", "nginx", source="logs")
    assert names.lookup(CONTAINER, is_sandbox=True) == Name("shop", "web-0", source="logs")


def test_with_two_containers_the_pod_log_names_neither(tmp_path: Path) -> None:
    """A guess would be wrong half the time."""
    node = Node(tmp_path)
    for container in ("nginx", "sidecar"):
        node.write(f"var/log/pods/shop_web-0_{UID}/{container}/0.log", "")
    names = ContainerNames(node.root())
    names.refresh()
    assert names.lookup(CONTAINER) == Name("shop", "web-0", source="logs")


def test_a_second_container_of_a_known_pod_does_not_get_the_name_of_the_first(tmp_path: Path) -> None:
    """Its log folder appears inside the pod's: the outer folder does not change."""
    node = Node(tmp_path)
    node.write(f"var/log/pods/shop_web-0_{UID}/init/0.log", "")
    touch(node, "var/log/pods", 1)
    names = ContainerNames(node.root())
    names.refresh()
    assert names.lookup(CONTAINER).container == "init"
    node.write(f"var/log/pods/shop_web-0_{UID}/nginx/0.log", "")
    touch(node, "var/log/pods", 1)
    names.refresh()
    names.look_again(UID)
    second = CgroupName(OTHER, "cri-containerd", UID)
    assert names.lookup(second).container == "nginx"
    assert names.lookup(CONTAINER).container == "init"
    names.forget(CONTAINER)
    names.forget(second)
    assert names.lookup(second).container == ""


def test_a_name_that_was_learned_wins_and_is_news(tmp_path: Path) -> None:
    node = Node(tmp_path)
    node.write(f"var/log/containers/web-0_shop_nginx-{ID}.log", "")
    names = ContainerNames(node.root())
    names.refresh()
    version = names.version
    told = Name("shop", "web-0", "nginx", "nginx:1.27", "kube", "3")
    names.learn(ID, told)
    assert names.lookup(CONTAINER) == told
    assert names.version == version + 1
    names.learn(ID, told)
    assert names.version == version + 1


def test_the_folders_are_listed_again_only_when_they_changed(tmp_path: Path) -> None:
    node = Node(tmp_path)
    node.write(f"var/log/containers/web-0_shop_nginx-{ID}.log", "")
    touch(node, "var/log/containers", 1)
    names = ContainerNames(node.root())
    names.refresh()
    version = names.version
    names.refresh()
    assert names.version == version
    node.write(f"var/log/containers/db-0_shop_postgres-{OTHER}.log", "")
    touch(node, "var/log/containers", 2)
    names.refresh()
    assert names.version == version + 1
    assert names.lookup(CgroupName(OTHER)).pod == "db-0"


def test_a_hostile_log_name_is_cleaned(tmp_path: Path) -> None:
    node = Node(tmp_path)
    node.write(f"var/log/containers/we\x1bb_sh\top_ng\x7finx-{ID}.log", "")
    names = ContainerNames(node.root())
    names.refresh()
    found = names.lookup(CONTAINER)
    assert (found.namespace, found.pod, found.container) == ("sh op", "we b", "ng inx")


def test_a_static_pod_is_found_by_its_hash(tmp_path: Path) -> None:
    node = Node(tmp_path)
    static = "d41d8cd98f00b204e9800998ecf8427e"
    node.write(f"var/log/pods/kube-system_etcd-n1_{static}/etcd/0.log", "")
    names = ContainerNames(node.root())
    names.refresh()
    assert names.lookup(CgroupName(ID, "crio", static)).pod == "etcd-n1"
