"""What a cgroup's path says, for every driver and runtime we know."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.strategies import HOSTILE, examples

from nodescope.collect.containers.cgroup_path import (
    NOTHING,
    CgroupName,
    is_container_folder,
    parse_cgroup_path,
)

ID = "0123456789abcdef" * 4
INNER = "fedcba9876543210" * 4
UID = "f3d2c1b0-1234-5678-9abc-def012345678"
STATIC = "d41d8cd98f00b204e9800998ecf8427e"
SYSTEMD_UID = UID.replace("-", "_")
NODE = f"docker/{ID}"


@pytest.mark.parametrize(
    ("path", "runtime", "uid", "qos"),
    [
        # systemd driver
        (
            f"kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{SYSTEMD_UID}.slice/cri-containerd-{ID}.scope",
            "cri-containerd",
            UID,
            "Burstable",
        ),
        (
            f"kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod{SYSTEMD_UID}.slice/crio-{ID}.scope",
            "crio",
            UID,
            "BestEffort",
        ),
        (
            f"kubepods.slice/kubepods-pod{SYSTEMD_UID}.slice/docker-{ID}.scope",
            "docker",
            UID,
            "Guaranteed",
        ),
        (
            f"kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{STATIC}.slice/cri-containerd-{ID}.scope",
            "cri-containerd",
            STATIC,
            "Burstable",
        ),
        # cgroupfs driver
        (f"kubepods/besteffort/pod{UID}/{ID}", "", UID, "BestEffort"),
        (f"kubepods/burstable/pod{UID}/{ID}", "", UID, "Burstable"),
        (f"kubepods/pod{UID}/{ID}", "", UID, "Guaranteed"),
        (f"kubepods/pod{STATIC}/{ID}", "", STATIC, "Guaranteed"),
        (f"kubepods/burstable/pod{UID}/crio-{ID}", "crio", UID, "Burstable"),
        # kind: kubelet's own slice, in a container that is a node
        (
            f"kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-pod{SYSTEMD_UID}.slice/cri-containerd-{ID}.scope",
            "cri-containerd",
            UID,
            "Guaranteed",
        ),
        (
            (
                f"docker/{INNER}/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-burstable.slice/"
                f"kubelet-kubepods-burstable-pod{SYSTEMD_UID}.slice/cri-containerd-{ID}.scope"
            ),
            "cri-containerd",
            UID,
            "Burstable",
        ),
        (f"docker/{INNER}/kubelet/kubepods/besteffort/pod{UID}/{ID}", "", UID, "BestEffort"),
        # containerd without the systemd driver, inside its own unit
        (
            f"system.slice/containerd.service/kubepods-burstable-pod{SYSTEMD_UID}.slice:cri-containerd:{ID}",
            "cri-containerd",
            UID,
            "Burstable",
        ),
        # no Kubernetes
        (f"system.slice/docker-{ID}.scope", "docker", "", ""),
        (f"docker/{ID}", "", "", ""),
        (f"machine.slice/libpod-{ID}.scope", "libpod", "", ""),
        (f"machine.slice/libpod-{ID}.scope/container", "libpod", "", ""),
        (f"user.slice/user-1000.slice/user@1000.service/user.slice/libpod-{ID}.scope", "libpod", "", ""),
        (f"system.slice/nerdctl-{ID}.scope", "nerdctl", "", ""),
        # what a container nests below itself is still that container
        (f"system.slice/docker-{ID}.scope/init.scope", "docker", "", ""),
        (f"kubepods/pod{UID}/{ID}/system.slice/cron.service", "", UID, "Guaranteed"),
    ],
)
def test_every_driver_and_runtime(path: str, runtime: str, uid: str, qos: str) -> None:
    for form in (path, f"/{path}"):
        assert parse_cgroup_path(form) == CgroupName(ID, runtime, uid, qos)


@pytest.mark.parametrize(
    "path",
    [
        "",
        "/",
        "system.slice/sshd.service",
        f"machine.slice/libpod-conmon-{ID}.scope",
        f"system.slice/crio-conmon-{ID}.scope",
        f"system.slice/{ID[:-1]}",
        f"system.slice/{ID}0",
        f"system.slice/{ID.upper()}",
        "kubepods.slice",
        "kubepods/burstable",
    ],
)
def test_what_is_no_container(path: str) -> None:
    """The runtimes' own helpers (conmon) are none, nor is a folder that merely looks like one."""
    assert parse_cgroup_path(path) is NOTHING


def test_a_pod_without_its_container_is_known_by_uid() -> None:
    found = parse_cgroup_path(f"kubepods.slice/kubepods-pod{SYSTEMD_UID}.slice")
    assert found == CgroupName("", "", UID, "Guaranteed")


def test_a_conmon_inside_a_pod_is_the_pod_only() -> None:
    path = f"kubepods.slice/kubepods-pod{SYSTEMD_UID}.slice/crio-conmon-{ID}.scope"
    assert parse_cgroup_path(path).container_id == ""


def test_the_innermost_container_counts() -> None:
    """Docker in Docker: the outer one is where it runs, the inner one is who it is."""
    assert parse_cgroup_path(f"docker/{INNER}/docker/{ID}").container_id == ID


def test_the_pod_of_a_node_in_a_container_is_not_the_node() -> None:
    """kind: the pod's own cgroup lies below the node's container, whose id is not the pod's."""
    assert parse_cgroup_path(f"{NODE}/kubelet/kubepods/pod{UID}").container_id == ""


@given(st.lists(HOSTILE | st.sampled_from([ID, f"pod{UID}", "kubepods", f"crio-{ID}.scope"]), max_size=5))
@examples(600)
def test_any_path_gives_a_name_and_never_an_error(parts: list[str]) -> None:
    """forall paths: an id is empty or 64 hex digits, and it stands in the path."""
    path = "/".join(parts)
    found = parse_cgroup_path(path)
    assert found.container_id == "" or (len(found.container_id) == 64 and found.container_id in path)
    assert found.qos in ("", "BestEffort", "Burstable", "Guaranteed")
    if found.container_id:
        assert any(is_container_folder(part) for part in path.split("/"))
