"""Rules about all fixture nodes, and what is true of those described by hand."""

import errno
import json
from pathlib import Path
from typing import Any

import pytest
from tests.nodes.captured import list_captured, read_captured, write_difference
from tests.nodes.files import digest_tree, prefix_paths, read_tree, write_tree
from tests.nodes.kubernetes_nodes import make_cgroup2_systemd
from tests.nodes.make_nodes import MAKERS, make_nodes, write_whole
from tests.nodes.node import Node, render_node
from tests.nodes.pods import BATCH, DATABASE, FRESH, PROXY, WEB, container_id
from tests.support import NODES, list_nodes, read_faults, read_node

GOLDEN = Path(__file__).parents[1] / "golden"
# Nodes on which the web pod's container uses 0.55 of a core between the instants.
WITH_WEB = (
    "cgroup2-systemd",
    "cgroup2-cgroupfs",
    "kind",
    "kind-host",
    "cgroup1",
    "hybrid",
    "hotplug",
    "arm64-64k",
)


def read_windows(name: str) -> dict[str, Any]:
    windows: dict[str, Any] = json.loads((GOLDEN / name / "window.json").read_text())
    return windows


def containers(name: str) -> dict[str, dict[str, Any]]:
    """The window of each container, by its id."""
    found = read_windows(name)["container"]["entities"]
    return {entity["labels"]["container_id"]: entity for entity in found}


@pytest.mark.parametrize("name", list_nodes())
def test_a_node_says_where_it_comes_from(name: str) -> None:
    """Kernel, page size, cgroup version, the time between the instants and who made it."""
    node = read_node(name)
    assert {"kernel", "page_bytes", "cgroup", "elapsed_ns", "captured_with"} <= set(node)
    # An emulated machine on a busy host takes seconds for what is meant as one.
    assert 0.5e9 < node["elapsed_ns"] < 5e9
    assert (NODES / name / "t0" / "proc").is_dir()
    assert (NODES / name / "t1" / "proc").is_dir()


@pytest.mark.parametrize("name", list_nodes())
def test_faults_are_errors_of_files_that_exist(name: str) -> None:
    """faults.toml holds what a file cannot answer; a missing file needs no entry."""
    for path, word in read_faults(name).items():
        assert hasattr(errno, word)
        assert (NODES / name / "t0" / path).exists(), path


@pytest.mark.parametrize("make", MAKERS, ids=lambda make: make.__name__)
def test_a_described_node_is_what_its_description_gives(make: Any) -> None:
    """The folder is shared by every test and every run: none of them has changed it."""
    node: Node = make()
    assert read_tree(NODES / node.name) == render_node(node)


def test_a_node_is_either_described_or_captured() -> None:
    """Two nodes of one name would be written into one folder."""
    names = [*(make().name for make in MAKERS), *(folder.name for folder in list_captured())]
    assert sorted(names) == list_nodes()


def test_a_captured_node_keeps_of_t1_what_has_changed(tmp_path: Path) -> None:
    """Changed, new, gone and equal files, and links: both instants are whole when the node is read."""
    first = {
        "proc/stat": b"1",
        "proc/7/ns/net": b"-> net:[1]",
        "proc/8/ns/net": b"-> net:[1]",
        "proc/9/stat": b"9",
    }
    second = {**first, "proc/stat": b"2", "proc/8/ns/net": b"-> net:[2]", "proc/10/stat": b"10"}
    del second["proc/9/stat"]
    node = {"node.toml": b"", **prefix_paths("t0", first), **prefix_paths("t1", second)}
    write_tree(tmp_path, node)
    write_difference(tmp_path)
    assert sorted(read_tree(tmp_path / "t1")) == ["proc/10/stat", "proc/8/ns/net", "proc/stat"]
    assert not (tmp_path / "t1/proc/7").exists()
    assert read_captured(tmp_path) == node


@pytest.mark.parametrize("folder", list_captured(), ids=lambda folder: folder.name)
def test_a_committed_node_keeps_of_t1_what_has_changed(folder: Path) -> None:
    """A capture that was copied here with two whole instants is stored again by `write_difference`."""
    first, second = read_tree(folder / "t0"), read_tree(folder / "t1")
    assert [name for name, content in second.items() if first.get(name) == content] == []


def test_the_nodes_are_written_once_for_every_content(tmp_path: Path) -> None:
    """The folder is named after its content, whichever run wrote it."""
    folder = make_nodes(tmp_path)
    assert folder.name == NODES.name
    assert digest_tree(read_tree(folder)) == digest_tree(read_tree(NODES))


def test_of_two_writers_one_folder_remains(tmp_path: Path) -> None:
    """The slower of two runs finds the folder there, and leaves nothing of its own."""
    for _ in range(2):
        write_whole(tmp_path / "nodes", {"bare/t0/proc/stat": b"cpu 1\n", "bare/t0/proc/self": b"-> 1"})
    assert list(tmp_path.iterdir()) == [tmp_path / "nodes"]
    assert (tmp_path / "nodes/bare/t0/proc/self").readlink() == Path("1")


@pytest.mark.parametrize("name", WITH_WEB)
def test_a_planted_load_is_the_same_on_every_node(name: str) -> None:
    """0.55 of a core, whichever driver, runtime and cgroup version: CPU time over elapsed time."""
    metrics = containers(name)[WEB.container("app")]["metrics"]
    usage = next(
        metrics[key] for key in metrics if key.endswith(("usage_usec", "cpuacct.usage")) and "rate" in key
    )
    assert usage == pytest.approx(0.55, rel=1e-5)


def test_helpers_of_a_runtime_are_no_containers() -> None:
    """conmon has a scope with a container's id in its name; it is not the container."""
    conmons = [group.path for group in make_cgroup2_systemd().groups if "conmon" in group.path]
    assert len(conmons) == 2
    assert "conmon-" not in (GOLDEN / "cgroup2-systemd" / "metrics.prom").read_text()


def test_the_path_tells_quality_of_service_and_runtime() -> None:
    """Both drivers, containerd, CRI-O, Docker and Podman, each from the name of its folder."""
    found = containers("cgroup2-systemd")
    found_as = {key: (one["labels"]["qos"], one["labels"]["runtime"]) for key, one in found.items()}
    assert found_as[WEB.container("app")] == ("Burstable", "cri-containerd")
    assert found_as[DATABASE.container("postgres")] == ("Guaranteed", "cri-containerd")
    assert found_as[PROXY.container("kube-proxy")] == ("BestEffort", "crio")
    assert found_as[container_id("docker/redis")] == ("", "docker")
    assert found_as[container_id("podman/caddy")] == ("", "libpod")


def test_a_sandbox_is_marked_and_has_no_container_name() -> None:
    """The pause container belongs to the pod, not to any of its containers."""
    labels = containers("cgroup2-systemd")[WEB.container("pause")]["labels"]
    assert (labels["sandbox"], labels["pod"], labels["container"]) == ("true", WEB.name, "")


def test_processes_in_a_nested_cgroup_belong_to_the_container() -> None:
    """One process in the container's own cgroup and one in init.scope below it are two."""
    assert containers("cgroup2-systemd")[WEB.container("app")]["metrics"]["last_processes"] == 2


def test_a_container_that_ends_leaves_its_exit_and_no_series() -> None:
    """The exit is published for a minute; limits read in a slower tier end with the container."""
    text = (GOLDEN / "cgroup2-systemd" / "metrics.prom").read_text()
    gone = [line for line in text.splitlines() if BATCH.container("main") in line]
    assert gone
    assert all(line.startswith("nodescope_container_exit_") for line in gone)
    assert "nodescope_container_exits_total 1\n" in text
    assert FRESH.container("main") in text


def test_a_pod_on_the_host_network_has_no_traffic_of_its_own() -> None:
    """kube-proxy shares process 1's namespace: the node's bytes are not its bytes."""
    shown = [entity["labels"] for entity in read_windows("cgroup2-systemd")["pod"]["entities"]]
    pods = {labels["pod"] for labels in shown if "interface" in labels}
    assert WEB.name in pods
    assert PROXY.name not in pods


def test_kind_is_the_same_cluster_from_inside_and_from_the_host() -> None:
    """Containers in a container are found beside it."""
    inside, outside = set(containers("kind")), set(containers("kind-host"))
    assert outside - inside == {container_id("docker/demo-worker")}
    assert inside < outside


def test_a_node_in_a_container_and_its_pods_have_traffic_of_their_own() -> None:
    """The outer container's processes include the pods', but its network is its own process' one."""
    entities = read_windows("kind-host")["pod"]["entities"]
    rates = {
        one["labels"]["pod_uid"]: one["metrics"]["rate_pod.network.receive_bytes"]
        for one in entities
        if "interface" in one["labels"]
    }
    assert rates == {
        container_id("docker/demo-worker"): pytest.approx(120_000, rel=1e-3),
        WEB.uid: pytest.approx(90_000, rel=1e-3),
        BATCH.uid: pytest.approx(700, rel=1e-2),
    }


def test_a_hybrid_node_has_pressure_from_the_one_tree_and_memory_from_the_other() -> None:
    """A cell comes from whichever tree has it."""
    metrics = containers("hybrid")[WEB.container("app")]["metrics"]
    assert metrics["last_memory"] > 0
    assert metrics["rate_cgroup.v2.cpu.pressure.some.total"] == pytest.approx(0.009, rel=1e-2)


def test_after_a_reboot_no_rate_is_negative() -> None:
    """A counter that went backwards is a reset: its rate is missing, not below zero."""
    windows = read_windows("reboot")
    lived = [entity for scope, window in windows.items() if scope != "node" for entity in window["entities"]]
    rates = {
        key: value
        for entity in lived
        for key, value in entity["metrics"].items()
        if key.startswith("rate_") and key.endswith(("_bytes", "_usec", "total", ".cpu", "_ms"))
    }
    assert all(value >= 0 for value in rates.values())
    usage = containers("reboot")[WEB.container("app")]
    assert "rate_cgroup.v2.cpu.stat.usage_usec" in usage["missing"]
    assert "mean_cpu_util" not in read_windows("reboot")["node"]["metrics"]


def test_what_was_unplugged_is_gone_and_the_rest_goes_on() -> None:
    """Three cores and one disk at the second instant, each with a rate."""
    windows = read_windows("hotplug")
    assert [entity["labels"]["cpu"] for entity in windows["cpu"]["entities"]] == ["0", "1", "2"]
    assert [entity["labels"]["device"] for entity in windows["disk"]["entities"]] == ["sda"]
    assert windows["node"]["metrics"]["mean_cpu_util"] == pytest.approx(0.35, abs=0.02)


def test_a_broken_container_does_not_hide_a_healthy_one() -> None:
    """One container's files are denied, another's are cut off; the third has all its figures."""
    found = containers("hostile")
    assert found[DATABASE.container("postgres")]["metrics"]["last_memory_limit"] == 2048 * 2**20
    assert "last_memory" not in found[BATCH.container("main")]["metrics"]
    assert "last_memory_limit" not in found[WEB.container("app")]["metrics"]


def test_resident_memory_is_counted_in_the_pages_of_the_node() -> None:
    """12 MiB are 3,072 pages here and 192 there; both are 12 MiB."""
    for name in ("cgroup2-systemd", "arm64-64k"):
        shown = {one["labels"]["pid"]: one["metrics"] for one in read_windows(name)["process"]["entities"]}
        assert shown["2101"]["last_process.rss"] == 12 * 2**20


def test_without_a_container_services_are_shown() -> None:
    """A first look is never empty; slices and mounts are not services."""
    windows = read_windows("services")
    assert windows["container"]["entities"] == []
    assert [one["labels"]["id"] for one in windows["service"]["entities"]] == [
        "/init.scope",
        "/system.slice/postgresql.service",
        "/system.slice/sshd.service",
        "/user.slice/user-1000.slice/session-3.scope",
    ]
