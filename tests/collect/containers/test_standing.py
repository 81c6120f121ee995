"""What a cgroup's place and the owners of the folders above it say about its claim to be a container."""

from pathlib import Path

import pytest
from tests.collect.nodes import Node

from nodescope.base.entity import Entity
from nodescope.collect.containers.cgroup_path import NOTHING, parse_cgroup_path
from nodescope.collect.containers.live_containers import LiveContainer, LiveContainers
from nodescope.collect.containers.standing import Standing, is_boundary, judge_folder, judge_path
from nodescope.collect.files.roots import NodeRoot

ID = "ab" * 32
OTHER = "cd" * 32
UID = "f3d2c1b0-1234-5678-9abc-def012345678"
SLICE = f"kubepods-burstable-pod{UID.replace('-', '_')}.slice"
SCOPE = f"cri-containerd-{ID}.scope"
USER = "user.slice/user-1000.slice/user@1000.service"


@pytest.mark.parametrize(
    ("path", "standing"),
    [
        (f"kubepods/burstable/pod{UID}/{ID}", Standing.NODE),
        (f"kubepods.slice/kubepods-burstable.slice/{SLICE}/{SCOPE}", Standing.NODE),
        # A node of kind, seen from inside.
        (f"kubelet/kubepods/pod{UID}/{ID}", Standing.NODE),
        (f"kubelet.slice/kubelet-kubepods.slice/kubelet-{SLICE}/{SCOPE}", Standing.NODE),
        (f"docker/{ID}", Standing.NODE),
        (f"system.slice/docker-{ID}.scope", Standing.NODE),
        (f"machine.slice/libpod-{ID}.scope", Standing.NODE),
        (f"system.slice/containerd.service/{SLICE}:cri-containerd:{ID}", Standing.NODE),
        # A cgroup parent of one's own.
        (f"batch.slice/docker-{ID}.scope", Standing.ELSEWHERE),
        (f"lxc.payload.web/kubepods/pod{UID}/{ID}", Standing.ELSEWHERE),
        (f"kubepods-not/pod{UID}/{ID}", Standing.ELSEWHERE),
        # The same names inside somebody's container, unit or session.
        (f"docker/{OTHER}/kubelet/kubepods/pod{UID}/{ID}", Standing.NESTED),
        (f"kubepods/pod{UID}/{OTHER}/kubepods/pod{UID}/{ID}", Standing.NESTED),
        (f"system.slice/batch.service/kubepods/pod{UID}/{ID}", Standing.NESTED),
        (f"machine.slice/machine-web.scope/docker/{ID}", Standing.NESTED),
        (f"system.slice/containerd.service/docker/{ID}", Standing.NESTED),
        (f"other.slice/containerd.service/{ID}", Standing.NESTED),
        (f"{USER}/user.slice/libpod-{ID}.scope", Standing.DELEGATED),
        (f"{USER}/kubepods/burstable/pod{UID}/{ID}", Standing.DELEGATED),
    ],
)
def test_the_place_says_who_made_it(path: str, standing: Standing) -> None:
    assert judge_path(path) is standing


class OwnedRoot(NodeRoot):
    """A node on which some folders belong to users."""

    owners: dict[str, int]

    def owner(self, path: str) -> int | None:
        return self.owners.get(path, 0) if self.exists(path) else None


def test_below_a_user_s_folder_no_name_is_believed(tmp_path: Path) -> None:
    """Not even where kubelet's pods are; but a container's own folder may be given to a user."""
    node = Node(tmp_path)
    path = f"kubepods/burstable/pod{UID}/{ID}"
    node.write(f"cgroup/{path}/cgroup.procs", "")
    root = OwnedRoot(node.path)
    root.owners = {f"cgroup/{path}": 1000}
    assert judge_folder(root, "cgroup", path) is Standing.NODE
    root.owners = {"cgroup/kubepods/burstable": 1000}
    assert judge_folder(root, "cgroup", path) is Standing.DELEGATED


@pytest.mark.parametrize("name", [ID, SCOPE, "user-1000.slice", "user@0.service", "web.service", "a.scope"])
def test_a_boundary_is_known_by_its_name(name: str) -> None:
    assert is_boundary(name)


@pytest.mark.parametrize(
    "name", ["kubepods", "user.slice", "containerd.service", SLICE, f"pod{UID}", "docker"]
)
def test_what_the_node_decides_itself_is_no_boundary(name: str) -> None:
    assert not is_boundary(name)


# -- whose a process is -----------------------------------------------------------


def living(*paths: str) -> LiveContainers:
    containers = LiveContainers()
    containers.replace(
        tuple(
            LiveContainer(Entity("container", (path,)), parse_cgroup_path(path), path, path) for path in paths
        )
    )
    return containers


VICTIM = f"kubepods/burstable/pod{UID}/{ID}"


@pytest.mark.parametrize(
    "path",
    [f"/{VICTIM}", f"/{VICTIM}/init.scope", f"/../../pod{UID}/{ID}", f"/../../../burstable/pod{UID}/{ID}/x"],
)
def test_a_process_is_its_container_s_also_seen_from_a_cgroup_namespace(path: str) -> None:
    member = living(VICTIM).find(path)
    assert member is not None
    assert member.path == VICTIM


@pytest.mark.parametrize(
    "path",
    [
        f"/{USER}/kubepods/burstable/pod{UID}/{ID}",
        f"/kubepods/pod{UID}/{OTHER}/{VICTIM}",
        f"/../../../../{USER}/{VICTIM}",
        f"/docker/{ID}",
    ],
)
def test_a_process_that_bears_another_s_id_is_nobody_s(path: str) -> None:
    """Neither the container's, nor named after the pod that its path names."""
    cgroup, member = living(VICTIM).identify(path)
    if path.startswith("/docker/"):
        # Docker's place is believed, but this container is not known: no pod's name comes of it.
        assert (cgroup.pod_uid, member) == ("", None)
    else:
        assert (cgroup, member) == (NOTHING, None)


def test_a_process_in_a_refused_cgroup_is_that_of_the_container_around_it() -> None:
    outer = f"kubepods/pod{UID}/{OTHER}"
    member = living(VICTIM, outer).find(f"/{outer}/{VICTIM}")
    assert member is not None
    assert member.path == outer
