"""The root, slices and pods as a whole: of both versions of cgroups, only where asked for."""

from pathlib import Path

import numpy as np
import pytest
from tests.collect.nodes import Node, at

from nodescope.base.block import Block
from nodescope.base.entity import Entity
from nodescope.base.errors import SourceAbsent
from nodescope.base.settings import Settings
from nodescope.collect.containers.cgroup_path import parse_cgroup_path
from nodescope.collect.containers.live_containers import LiveContainer
from nodescope.collect.run.source import Context
from nodescope.collect.sources.container.level_source import TIER, ContainerLevelSource
from nodescope.hold.ring import Moment
from nodescope.publish.derived import derive_levels

UID = "11111111-2222-3333-4444-555555555555"
POD = f"kubepods/burstable/pod{UID}"
APP, SIDE = f"{POD}/{'a' * 64}", f"{POD}/{'b' * 64}"
BASE = "sys/fs/cgroup"
ON = Settings(cgroup_levels=True)


def member(path: str, name: str = "web") -> LiveContainer:
    labels = (("namespace", "shop"), ("pod", name), ("container", "c"), ("image", ""), ("id", f"/{path}"))
    cgroup = parse_cgroup_path(path)
    return LiveContainer(Entity("container", (cgroup.container_id,), labels), cgroup, path, f"{BASE}/{path}")


def write_v2(node: Node, path: str, usec: int, used: int) -> None:
    here = f"{BASE}/{path}".rstrip("/")
    node.write(f"{here}/cpu.stat", f"usage_usec {usec}\nuser_usec 1\nsystem_usec 1\n")
    node.write(f"{here}/memory.stat", f"anon {used // 2}\nfile {used // 4}\ninactive_file 10\n")
    if path:
        node.write(f"{here}/memory.current", f"{used}\n")
        node.write(f"{here}/memory.max", "max\n")
        node.write(f"{here}/pids.current", "4\n")


@pytest.fixture
def node(tmp_path: Path) -> Node:
    made = Node(tmp_path)
    made.write(f"{BASE}/cgroup.controllers", "cpu memory pids\n")
    for number, path in enumerate(("", "kubepods", "kubepods/burstable", POD, APP, SIDE)):
        write_v2(made, path, 1_000_000 * (number + 1), 4000)
    return made


def open_levels(node: Node, *members: LiveContainer) -> tuple[ContainerLevelSource, Context]:
    context = node.context(ON)
    context.live_containers.replace(members)
    return ContainerLevelSource(context), context


def look(source: ContainerLevelSource, number: int) -> Block:
    list(source.refresh(at(number)))
    ((segment, tier),) = source.segments()
    assert tier == TIER
    segment.read()
    block = segment.block(number)
    assert block is not None
    return block


def by_id(block: Block, published: str) -> dict[str, float]:
    column = next(n for n, metric in enumerate(block.table.metrics) if metric.published == published)
    return {str(one.attribute("id")): row[column] for one, row in zip(block.entities, block.values.tolist())}


def test_every_cgroup_above_a_container_is_read_once(node: Node) -> None:
    source, _ = open_levels(node, member(APP), member(SIDE))
    block = look(source, 0)
    assert by_id(block, "container_cpu_usage_seconds_total") == {
        "/": 1e6,
        "/kubepods": 2e6,
        "/kubepods/burstable": 3e6,
        f"/{POD}": 4e6,
    }
    pod = block.entities[-1]
    assert pod.key == ("pod", UID)
    assert dict(pod.labels) == {
        "namespace": "shop",
        "pod": "web",
        "container": "",
        "image": "",
        "id": f"/{POD}",
    }
    source.close()


def test_names_in_the_archive_are_not_those_of_containers(node: Node) -> None:
    """Whoever adds up containers there would count everything again."""
    source, _ = open_levels(node, member(APP))
    assert {metric.name.partition(".")[0] for metric in look(source, 0).table.metrics} == {"level"}
    source.close()


def test_the_root_of_v2_has_its_memory_by_its_parts(node: Node) -> None:
    source, _ = open_levels(node, member(APP))
    block = look(source, 0)
    derived = derive_levels({"container_level": Moment(0, 5 * 10**9, 0, block)})
    assert derived is not None
    usage, working = (
        by_id(derived, "container_memory_usage_bytes"),
        by_id(derived, "container_memory_working_set_bytes"),
    )
    assert usage["/"] == 3000
    assert np.isnan(usage[f"/{POD}"]), "that is in the block itself"
    assert working == {"/": 2990.0, "/kubepods": 3990.0, "/kubepods/burstable": 3990.0, f"/{POD}": 3990.0}
    assert set(by_id(derived, "container_last_seen").values()) == {5.0}
    source.close()


def test_levels_come_and_go_with_containers_and_names_that_arrive_later(node: Node) -> None:
    source, context = open_levels(node, member(APP, ""))
    look(source, 0)
    context.live_containers.replace((member(APP, "web"),))
    assert look(source, 1).entities[-1].attribute("pod") == "", "looked at before a reading only"
    assert look(source, TIER).entities[-1].attribute("pod") == "web"
    context.live_containers.replace(())
    assert by_id(look(source, 2 * TIER), "container_threads").keys() == {"/"}
    source.close()


def test_what_a_container_nests_in_itself_has_no_levels(node: Node) -> None:
    """A node of kind inside a container: its tree is the container's own affair."""
    inner = f"{APP}/kubelet/kubepods/pod{UID}/{'c' * 64}"
    source, _ = open_levels(node, member(APP), member(inner))
    assert f"/{APP}" not in by_id(look(source, 0), "container_threads")
    source.close()


def test_controllers_of_v1_are_read_and_not_those_of_v2_again(tmp_path: Path) -> None:
    node = Node(tmp_path)
    for name in ("memory", "cpuacct"):
        node.write(f"{BASE}/{name}/cgroup.procs", "1\n")
    node.write(f"{BASE}/unified/cgroup.controllers", "\n")
    for path in ("", f"/{POD}"):
        node.write(f"{BASE}/cpuacct{path}/cpuacct.usage", "7000000000\n")
        node.write(f"{BASE}/unified{path}/cpu.stat", "usage_usec 99\n")
        node.write(f"{BASE}/memory{path}/memory.usage_in_bytes", "4096\n")
        node.write(f"{BASE}/memory{path}/memory.stat", "rss 1\ntotal_rss 3000\ntotal_inactive_file 96\n")
    source, _ = open_levels(node, member(APP))
    block = look(source, 0)
    assert by_id(block, "container_cpu_usage_seconds_total")[f"/{POD}"] == 7e9
    derived = derive_levels({"container_level": Moment(0, 0, 0, block)})
    assert derived is not None
    assert by_id(derived, "container_memory_working_set_bytes")["/"] == 4000
    source.close()


def test_they_are_off_unless_asked_for(node: Node) -> None:
    with pytest.raises(SourceAbsent, match="cgroup_levels"):
        ContainerLevelSource(node.context())
