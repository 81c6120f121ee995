"""
Pods a second that a stock kube-scheduler places in clusters of 500 and 5,000 nodes: without an extender, with
ours, and beside a second scheduler that asks ours; and the extender's CPU for each pod.

A real etcd, kube-apiserver and kube-scheduler; nodes are objects. `--rounds 1` takes the smaller cluster only.
"""

import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import yaml
from tests.cluster.control_plane import RBAC, ControlPlane, free_port, tools_folder
from tests.cluster.programs import Extender, run_extender

from bench.result import Goal, Options, Row
from bench.scheduler import LABELS, PODS, UNLIMITED, place

SIZES = (500, 5000)
MAKERS = 4
# Plain pods beside a second scheduler must be placed as fast as without any; measuring twice differs by this much.
NOISE = 1.25


def run(options: Options) -> list[Row]:
    rows = []
    for nodes in SIZES[: options.rounds]:
        rows += measure(nodes)
        told = "; ".join(f"{row.what}: {row.ours:.4g} s, {row.remark}" for row in rows[-4:])
        print(f"{nodes} nodes: {told}", file=sys.stderr, flush=True)
    return rows


def measure(nodes: int) -> list[Row]:
    with tempfile.TemporaryDirectory() as folder:
        plane = ControlPlane(Path(folder), tools_folder())
        try:
            plane.start()
            plane.extender_port = free_port()
            for name in ("namespace", "extender"):
                plane.kubectl("apply", "-f", RBAC / f"{name}.yaml")
            with ThreadPoolExecutor(MAKERS) as pool:
                list(pool.map(lambda first: make_nodes(plane, range(first, nodes, MAKERS)), range(MAKERS)))
            alone = place(plane, "alone", {}, extenders=[])
            log = Path(folder) / "extender.log"
            with run_extender(plane.kubeconfig("extender-token"), plane.extender_port, log) as extender:
                before = extender.metric("nodescope_process_cpu_seconds_total")
                asked = place(plane, "asked", LABELS)
                cpu = (extender.metric("nodescope_process_cpu_seconds_total") - before) / PODS
                plain = place(plane, "plain", {})
                calls = count_calls(extender)
                with run_second(plane):
                    beside = place(plane, "beside", {}, extenders=[])
                more = count_calls(extender) - calls
        finally:
            plane.stop_all()
    what = f"{nodes:,} nodes, {PODS} pods waiting"
    return [
        make_row(f"an FPGA pod placed, the scheduler asks us: {what}", asked, alone),
        make_row(f"a plain pod, the scheduler asks us: {what}", plain, alone),
        make_row(
            f"a plain pod, a second scheduler asks us: {what}",
            beside,
            alone,
            Goal(NOISE, "ratio"),
            f"; {more:.0f} calls",
        ),
        Row(f"the extender's CPU for an FPGA pod, {nodes:,} nodes", cpu, "s", goal=Goal(0.008, "ours")),
    ]


def make_nodes(plane: ControlPlane, numbers: Iterable[int]) -> None:
    """With their status, as a kubelet registers itself; over one connection."""
    room = {"cpu": "8", "memory": "32Gi", "pods": "110", "ephemeral-storage": "100Gi"}
    ready = {"type": "Ready", "status": "True", "reason": "Bench", "message": "a bench's node"}
    status = {"capacity": room, "allocatable": room, "conditions": [ready]}
    with plane.client() as client:
        for number in numbers:
            about = {"name": f"node-{number:04}", "labels": {"kubernetes.io/hostname": f"node-{number:04}"}}
            client.create("/api/v1/nodes", {"metadata": about, "status": status})


def make_row(what: str, pods: float, alone: float, goal: Goal | None = None, more: str = "") -> Row:
    remark = f"{pods:.0f} pods/s against {alone:.0f}{more}"
    return Row(what, 1 / pods, "s", 1 / alone, "no extender", goal, remark)


def count_calls(extender: Extender) -> float:
    return extender.metric('nodescope_extender_requests_total{verb="filter",outcome="ok"}')


@contextmanager
def run_second(plane: ControlPlane) -> Iterator[None]:
    """As the chart has it: schedulerName nodescope, with our extender."""
    config = yaml.safe_load(plane.write_scheduler_config(requests_per_second=UNLIMITED).read_text())
    config["profiles"] = [{"schedulerName": "nodescope"}]
    path = plane.folder / "second.yaml"
    path.write_text(yaml.safe_dump(config))
    command = [str(plane.tools / "kube-scheduler"), f"--config={path}", "--bind-address=127.0.0.1"]
    with (plane.folder / "second.log").open("ab") as log:
        process = subprocess.Popen([*command, f"--secure-port={free_port()}"], stdout=log, stderr=log)
    try:
        yield
    finally:
        process.terminate()
        process.wait()
