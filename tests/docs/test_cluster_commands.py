"""Blocks of kubectl and helm commands, in the order of their page, on a real API server with its controllers."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.chart.chart import find_program
from tests.cluster.control_plane import ADMIN, RBAC, ControlPlane, free_port, run_control_plane, wait_for
from tests.cluster.programs import Agent, run_agent, run_extender
from tests.docs.pages import ROOT, Block, list_blocks, list_pages

from nodescope.fpga.state import KEY

pytestmark = pytest.mark.real

# The nodes of the walk-through, with what their FPGAs hold.
NODES = {"minikube": "abc", "minikube-m02": "def", "minikube-m03": "xyz"}
# What a reader has done on an earlier page, before a block with these words.
INSTALL = "helm install nodescope deploy/chart --namespace nodescope --create-namespace"
BEFORE = {
    # Accounts by hand are for those who do not use the chart, which makes its own.
    "--set extender.enabled=true": f"kubectl delete -f deploy/rbac/ && kubectl wait --for=delete namespace/nodescope && {INSTALL}",
}


def list_cluster_blocks(page: Path) -> list[Block]:
    return [block for block in list_blocks(page) if block.language == "sh" and block.place == "cluster"]


PAGES = [page for page in list_pages() if list_cluster_blocks(page)]


@pytest.fixture
def plane(tmp_path: Path) -> Iterator[ControlPlane]:
    find_program("helm")
    yield from run_control_plane(tmp_path, "kubectl", "kube-scheduler", "kube-controller-manager")


def run(plane: ControlPlane, folder: Path, text: str, about: object) -> str:
    helm = Path(find_program("helm")).parent
    environment = {**os.environ, "KUBECONFIG": str(plane.kubeconfig(ADMIN)), "HELM_CACHE_HOME": str(folder)}
    ours = Path(sys.executable).parent
    environment["PATH"] = f"{ours}:{plane.tools}:{helm}:{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", text],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, f"{about}\n{text}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
    return done.stdout


def make_checkout(folder: Path) -> Path:
    """A folder with what commands name, where they may leave files."""
    folder.mkdir()
    (folder / "deploy").symlink_to(ROOT / "deploy")
    return folder


@pytest.mark.parametrize(
    "page", [page for page in PAGES if page.name != "fpga.md"], ids=lambda page: str(page.name)
)
def test_the_page_s_commands_work_on_a_cluster(page: Path, plane: ControlPlane, tmp_path: Path) -> None:
    plane.start_controllers("namespace-controller", "serviceaccount-controller")
    plane.create_node("worker-1")
    folder = make_checkout(tmp_path / "checkout")
    for block in list_cluster_blocks(page):
        for word, command in BEFORE.items():
            if word in block.text:
                run(plane, folder, command, f"before {block}")
        run(plane, folder, block.text, block)


def report(agents: dict[str, Agent]) -> None:
    """What the walk-through's second step does inside of pods."""
    for name, bitstream in NODES.items():
        now_ms = int(subprocess.run(["date", "+%s%3N"], check=True, capture_output=True).stdout)
        answer = agents[name].post(
            timestamp_ms=now_ms, reconfiguration_ms=10000, bitstream_identifier=bitstream
        )
        assert answer.text.strip() == "ok"


def test_the_fpga_walk_through_ends_on_the_node_that_has_the_bitstream(
    plane: ControlPlane, tmp_path: Path
) -> None:
    [page] = [page for page in PAGES if page.name == "fpga.md"]
    label, look, apply, see = list_cluster_blocks(page)
    folder = make_checkout(tmp_path / "checkout")
    plane.allow_agent()
    for name in ("namespace.yaml", "extender.yaml"):
        plane.kubectl("apply", "-f", RBAC / name)
    plane.start_controllers()
    plane.extender_port = free_port()
    config = plane.write_scheduler_config()
    # As the chart's own scheduler, which pods ask for by this name.
    config.write_text(config.read_text().replace("default-scheduler", "nodescope"))
    plane.start_scheduler(config)
    for name in NODES:
        plane.create_node(name)
    with ExitStack() as running:
        log = plane.folder / "extender.log"
        running.enter_context(run_extender(plane.kubeconfig("extender-token"), plane.extender_port, log))
        account = plane.kubeconfig("agent-token")
        agents = {name: running.enter_context(run_agent(Path("/"), account, name)) for name in NODES}
        run(plane, folder, label.text, label)
        report(agents)
        wait_for("the annotations", lambda: all(KEY in plane.read_annotations(name) for name in NODES), 60)
        told = run(plane, folder, look.text, look)
        assert all(f'"{bitstream}"' in told for bitstream in NODES.values())
        run(plane, folder, apply.text, apply)
        wait_for("the pod is placed", lambda: plane.read_places("app=encoder"), 120)
        assert "minikube-m02" in run(plane, folder, see.text, see)
