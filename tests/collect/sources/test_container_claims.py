"""Two cgroups that say they are the same container: one is believed, the other is refused and named."""

import shutil
from pathlib import Path

import pytest
from tests.collect.containers.test_standing import OwnedRoot
from tests.collect.nodes import Node, at
from tests.collect.sources.test_container import (
    BASE,
    UID,
    container_id,
    look,
    open_source,
    path_of,
    write_container,
)

from nodescope.base.self_counters import ContainerCounters
from nodescope.base.settings import Settings
from nodescope.collect.files.roots import NodeRoot
from nodescope.collect.run.source import Context
from nodescope.collect.sources.container.cgroup_tree import Hierarchy
from nodescope.collect.sources.container.claims import Claims
from nodescope.collect.sources.container.kubelet_root import find_kubelet_root, name_roots
from nodescope.collect.sources.container.source import ContainerSource

USER = "user.slice/user-1000.slice/user@1000.service"
TENANT = "0" * 32
POD_LOG = f"var/log/pods/shop_web-0_{UID}/app/0.log"


@pytest.fixture
def node(tmp_path: Path) -> Node:
    made = Node(tmp_path)
    made.write(f"{BASE}/cgroup.controllers", "cpu memory\n")
    return made


def write_at(node: Node, path: str, usage: int = 7) -> None:
    node.write(f"{BASE}/{path}/cgroup.procs", "")
    node.write(f"{BASE}/{path}/cpu.stat", f"usage_usec {usage}\nuser_usec 1\nsystem_usec 2\n")


def shown(source: ContainerSource, number: int) -> dict[str, str]:
    """Container id -> path, of every row."""
    _, blocks = look(source, number)
    rows = [(entity.ids[0], str(entity.attribute("id"))) for entity in blocks["container"].entities]
    assert len(rows) == len(dict(rows))
    return dict(rows)


@pytest.mark.parametrize(
    "forged",
    [
        f"{USER}/{path_of(1)}",
        f"{USER}/docker/{container_id(1)}",
        f"kubepods/pod{TENANT}/{container_id(9)}/{path_of(1)}",
        f"system.slice/batch.service/{path_of(1)}",
        f"aaa/{path_of(1)}",
    ],
)
@pytest.mark.parametrize("comes_first", [True, False], ids=["forger first", "victim first"])
def test_the_victim_keeps_its_one_row_whoever_comes_first(node: Node, forged: str, comes_first: bool) -> None:
    source, context = open_source(node)
    first, second = (forged, path_of(1)) if comes_first else (path_of(1), forged)
    write_at(node, first)
    look(source, 0)
    write_at(node, second)
    assert shown(source, 1)[container_id(1)] == f"/{path_of(1)}"
    counters = context.container_counters
    assert counters.refused["container"] == 1
    assert list(counters.refused_now) == [f"/{forged}"]
    assert path_of(1) in counters.refused_now[f"/{forged}"]
    # Refused once, not at every look; gone, it is no longer named.
    shown(source, 2)
    assert counters.refused.total() == 1
    node.remove(f"{BASE}/{forged}")
    shown(source, 3)
    assert counters.refused_now == {}
    source.close()


def test_a_stranger_s_container_is_not_put_into_a_victim_s_pod(node: Node) -> None:
    write_container(node, 1)
    write_at(node, f"{USER}/kubepods/pod{UID}/{container_id(5)}")
    source, context = open_source(node)
    assert set(shown(source, 0)) == {container_id(1)}
    assert context.container_counters.refused["pod"] == 1
    source.close()


def test_the_id_of_a_container_that_ended_is_not_taken_over(node: Node) -> None:
    """Its series would go on with the forger's figures."""
    write_container(node, 1)
    source, context = open_source(node)
    look(source, 0)
    node.remove(f"{BASE}/{path_of(1)}")
    look(source, 1)
    write_at(node, f"{USER}/{path_of(1)}")
    assert container_id(1) not in shown(source, 2)
    assert context.container_counters.refused["ended"] == 1
    # Made again where it was, it is the node's own container, started again.
    write_container(node, 1)
    assert shown(source, 3) == {container_id(1): f"/{path_of(1)}"}
    source.close()


def test_names_of_pods_are_given_to_the_node_s_own_only(node: Node) -> None:
    """A user who knows a pod's UID is not called by its name, whether or not the pod runs."""
    node.write(POD_LOG, "")
    write_at(node, f"{USER}/{path_of(2)}")
    source, context = open_source(node)
    look(source, 0)
    (forger,) = context.live_containers.members
    assert (forger.entity.attribute("pod"), forger.entity.attribute("name_source")) == ("", "path")
    write_container(node, 1)
    look(source, 1)
    (own,) = context.live_containers.members
    assert (own.entity.attribute("id"), own.entity.attribute("pod")) == (f"/{path_of(1)}", "web-0")
    assert own.entity.attribute("container") == "app"
    source.close()


def test_rootless_podman_and_a_node_inside_a_container_are_kept(node: Node) -> None:
    podman = f"{USER}/user.slice/libpod-{container_id(3)}.scope"
    kind = f"docker/{container_id(4)}"
    inner = f"{kind}/kubelet/kubepods/pod{UID}/{container_id(5)}"
    for path in (podman, kind, inner):
        write_at(node, path)
    source, context = open_source(node)
    assert set(shown(source, 0).values()) == {f"/{podman}", f"/{kind}", f"/{inner}"}
    assert context.container_counters.refused.total() == 0
    source.close()


def test_folders_of_another_user_are_not_believed_where_kubelet_s_are(node: Node) -> None:
    """Of two alike, the one below root's folders is the container."""
    write_container(node, 1)
    forged = f"kubepods/besteffort/pod{UID}/{container_id(1)}"
    write_at(node, forged)
    root = OwnedRoot(node.path)
    root.owners = {f"{BASE}/kubepods/besteffort": 1000}
    context = node.context()
    source = ContainerSource(
        Context(root, context.descriptors, context.settings, context.names, context.live_containers)
    )
    assert shown(source, 0) == {container_id(1): f"/{path_of(1)}"}
    source.close()


def test_a_flood_of_a_user_s_containers_does_not_push_out_the_node_s_own(node: Node) -> None:
    for number in range(50, 70):
        write_at(node, f"{USER}/docker/{container_id(number)}")
    source, _ = open_source(node, Settings(series_limit=4))
    look(source, 0)
    for number in (1, 2, 3):
        write_container(node, number)
    assert {container_id(number) for number in (1, 2, 3)} <= set(shown(source, 1))
    assert source.dropped()["container"] == 19
    source.close()


def test_fewer_containers_are_kept_while_memory_is_short(node: Node) -> None:
    for number in range(1, 7):
        write_container(node, number)
    source, context = open_source(node)
    assert len(shown(source, 0)) == 6
    context.live_containers.limit(4)
    assert len(shown(source, 1)) == 4
    assert source.dropped()["container"] == 2
    context.live_containers.limit(None)
    assert len(shown(source, 2)) == 6
    source.close()


# -- where kubelet says its pods are ------------------------------------------------


def write_kubelet(
    node: Node, *arguments: str, pid: int = 77, comm: str = "kubelet", cgroup: str = "/"
) -> None:
    node.write("proc/1/comm", "systemd\n")
    node.write(f"proc/{pid}/comm", f"{comm}\n")
    node.write(f"proc/{pid}/cmdline", "\0".join(["/usr/bin/kubelet", *arguments, ""]))
    node.write(f"proc/{pid}/cgroup", f"0::{cgroup}\n")


@pytest.mark.parametrize("arguments", [("--cgroup-root=/pods",), ("--v=2", "--cgroup-root", "/pods")])
def test_kubelet_s_own_root_is_found_from_its_command_line(node: Node, arguments: tuple[str, ...]) -> None:
    write_kubelet(node, *arguments)
    node.write(POD_LOG, "")
    write_at(node, f"pods/{path_of(1)}")
    source, context = open_source(node)
    look(source, 0)
    assert context.live_containers.members[0].entity.attribute("pod") == "web-0"
    source.close()


def test_kubelet_s_own_root_is_found_from_its_configuration(node: Node) -> None:
    node.write("var/lib/kubelet/config.yaml", "kind: KubeletConfiguration\ncgroupRoot: /pods # ours\n")
    write_kubelet(node, "--config=/var/lib/kubelet/config.yaml")
    assert find_kubelet_root(node.root()) == name_roots("pods")


def test_a_kubelet_in_a_container_is_not_asked(node: Node) -> None:
    """A tenant may call his program kubelet and give it any flag."""
    write_kubelet(node, "--cgroup-root=/evil", cgroup=f"/{path_of(3)}")
    assert find_kubelet_root(node.root()) == ()


def test_systemd_writes_a_root_as_slices() -> None:
    assert name_roots("a/b") == ("a/b/kubepods", "a.slice/a-b.slice/a-b-kubepods.slice")


def test_a_root_may_be_set(node: Node) -> None:
    node.write(POD_LOG, "")
    write_at(node, f"pods/{path_of(1)}")
    source, context = open_source(node, Settings(kubelet_cgroup_root="/pods"))
    list(source.refresh(at(0)))
    assert context.live_containers.members[0].entity.attribute("pod") == "web-0"
    source.close()


class VanishingRoot(NodeRoot):
    """A pod that is removed while its container is judged."""

    def owner(self, path: str) -> int | None:
        if path.endswith(VANISHING):
            shutil.rmtree(self.full(path), ignore_errors=True)
        return super().owner(path)


VANISHING = "pod00000000-0000-0000-0000-000000000001"


def test_a_container_that_ends_while_it_is_judged_is_not_refused(tmp_path: Path) -> None:
    """Folders that are gone have no owner: it looked like one below another user's folder."""
    path = f"kubepods/{VANISHING}/{'a' * 64}"
    (tmp_path / "cgroup" / path).mkdir(parents=True)
    counters = ContainerCounters()
    hierarchies = {"v2": Hierarchy("v2", "cgroup")}
    claims = Claims(VanishingRoot(tmp_path), hierarchies, counters, lambda: 0)
    assert claims.admit({path: frozenset({"v2"})}, set()) == {}
    assert not counters.refused
