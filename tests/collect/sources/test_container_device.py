"""I/O of each container by device: who did nothing is not asked again."""

from pathlib import Path

from tests.collect.nodes import Node

from nodescope.base.entity import Entity
from nodescope.collect.containers.cgroup_path import CgroupName
from nodescope.collect.containers.live_containers import LiveContainer
from nodescope.collect.sources.container.device_source import ContainerDeviceSource

BASE = "sys/fs/cgroup"
LABELS = (("namespace", "shop"), ("pod", "web"), ("container", "app"), ("image", ""), ("id", "/kubepods/a"))


def open_source(node: Node, *paths: str) -> ContainerDeviceSource:
    node.write(f"{BASE}/cgroup.controllers", "io\n")
    node.write("proc/diskstats", " 254 0 vda 1 2 3\n")
    context = node.context()
    context.live_containers.replace(
        tuple(
            LiveContainer(Entity("container", (path,), LABELS), CgroupName(path), path, f"{BASE}/{path}")
            for path in paths
        )
    )
    return ContainerDeviceSource(context)


def write(node: Node, path: str, read_bytes: int) -> None:
    node.write(
        f"{BASE}/{path}/io.stat", f"254:0 rbytes={read_bytes} wbytes=0 rios=1 wios=0 dbytes=0 dios=0\n"
    )


def read_bytes(source: ContainerDeviceSource) -> dict[str, float]:
    (block,) = source.parse(source.read(), 1)
    assert all(entity.labels[-1] == ("device", "/dev/vda") for entity in block.entities)
    return {entity.ids[1]: row[0] for entity, row in zip(block.entities, block.values.tolist())}


def test_while_the_cgroup_at_the_top_stands_still_nobody_below_it_is_asked(tmp_path: Path) -> None:
    """Its file counts all that happens below it; a container of another top is asked on its own."""
    node = Node(tmp_path)
    for path in ("kubepods", "kubepods/a", "system/b"):
        write(node, path, 10)
    source = open_source(node, "kubepods/a", "system/b")
    assert read_bytes(source) == {"kubepods/a": 10, "system/b": 10}
    write(node, "kubepods/a", 99)
    write(node, "system/b", 20)
    assert read_bytes(source) == {"kubepods/a": 10, "system/b": 20}, "the kernel never leaves the top behind"
    write(node, "kubepods", 99)
    assert read_bytes(source) == {"kubepods/a": 99, "system/b": 20}


def test_a_container_that_came_meanwhile_is_asked_although_the_top_stands_still(tmp_path: Path) -> None:
    node = Node(tmp_path)
    for path in ("kubepods", "kubepods/a", "kubepods/b"):
        write(node, path, 10)
    source = open_source(node, "kubepods/a")
    read_bytes(source)
    known = source._context.live_containers.members[0]
    fresh = LiveContainer(Entity("container", ("b",), LABELS), CgroupName("b"), "kubepods/b", f"{BASE}/b")
    source._context.live_containers.replace((known, fresh))
    assert read_bytes(source) == {"kubepods/a": 10, "b": 10}
