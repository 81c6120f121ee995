"""
Pods a second that a stock kube-scheduler places in clusters of 500 and 5,000 nodes: without an extender, with
ours, and beside a second scheduler that asks ours; and what a pod costs each program in CPU.

A real etcd, kube-apiserver and kube-scheduler; nodes are objects with what an agent writes at them. "Beside" and
"alone" take turns, up to `--rounds N` of each: their medians are compared, and each turn's second scheduler has
listed all nodes before the first pod comes.
"""

import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from statistics import median

import httpx
import yaml
from tests.cluster.control_plane import RBAC, ControlPlane, free_port, tools_folder, wait_for
from tests.cluster.programs import Extender, run_extender

from bench.placements import PODS, UNLIMITED, Placement, place
from bench.result import Goal, Options, Row
from bench.scheduler import LABELS
from nodescope.base.clock import SystemClock
from nodescope.fpga.node_load import WINDOW_KEY, NodeLoad, render_load
from nodescope.fpga.state import KEY, render_state
from nodescope.fpga.tracker import FpgaEvent, FpgaTracker

# Nodes, and the most turns.
SIZES = {500: 5, 5000: 3}
MAKERS = 4
# Plain pods beside a second scheduler must be placed as fast as without any; measuring twice differs by this much.
NOISE = 1.25
SECOND = "second scheduler"
PLANE = ("etcd", "kube-apiserver", "kube-scheduler")


def run(options: Options) -> list[Row]:
    rows = []
    for nodes, turns in SIZES.items():
        found = measure(nodes, min(turns, options.rounds))
        for row in found:
            print(f"{row.what}: {row.ours:.4g} s, {row.remark}", file=sys.stderr, flush=True)
        rows += found
    return rows


def measure(nodes: int, turns: int) -> list[Row]:
    with tempfile.TemporaryDirectory() as folder:
        plane = ControlPlane(Path(folder), tools_folder())
        try:
            plane.start()
            plane.extender_port = free_port()
            for name in ("namespace", "extender"):
                plane.kubectl("apply", "-f", RBAC / f"{name}.yaml")
            with ThreadPoolExecutor(MAKERS) as pool:
                list(pool.map(lambda first: make_nodes(plane, range(first, nodes, MAKERS)), range(MAKERS)))
            log = Path(folder) / "extender.log"
            with run_extender(plane.kubeconfig("extender-token"), plane.extender_port, log) as extender:
                wait_for("nodes are known", lambda: extender.metric("nodescope_extender_nodes") == nodes, 60)
                others = {"extender": extender.process.pid}
                asked, plain = place(plane, LABELS, others), place(plane, {}, others)
                alone, beside = take_turns(plane, extender, turns)
        finally:
            plane.stop_all()
    what = f"{nodes:,} nodes, {PODS} pods waiting"
    usual = summarize(alone)
    return [
        make_row(f"an FPGA pod placed, the scheduler asks us: {what}", asked, usual),
        make_row(f"a plain pod, the scheduler asks us: {what}", plain, usual),
        make_row(
            f"a plain pod, a second scheduler asks us: {what}", summarize(beside), usual, Goal(NOISE, "ratio")
        ),
        describe_turns(what, alone, beside),
        Row(
            f"the extender's CPU for an FPGA pod, {nodes:,} nodes",
            asked.cpu["extender"],
            "s",
            goal=Goal(0.008, "ours"),
        ),
    ]


def take_turns(
    plane: ControlPlane, extender: Extender, turns: int
) -> tuple[list[Placement], list[Placement]]:
    """Without and with a second scheduler, which must make no call for plain pods."""
    alone, beside = [], []
    calls = count_calls(extender)
    others = {"extender": extender.process.pid}
    for turn in range(turns):
        # Each is first in every other turn.
        for is_beside in (False, True) if turn % 2 == 0 else (True, False):
            if not is_beside:
                alone.append(place(plane, {}, others, extenders=[]))
                continue
            with run_second(plane) as pid:
                beside.append(place(plane, {}, {**others, SECOND: pid}, extenders=[]))
    if more := count_calls(extender) - calls:
        raise SystemExit(f"{more:.0f} calls were made for plain pods")
    return alone, beside


def summarize(placements: Sequence[Placement]) -> Placement:
    names = placements[0].cpu
    cpu = {name: median(one.cpu[name] for one in placements) for name in names}
    return Placement(median(one.pods_per_second for one in placements), cpu)


def make_nodes(plane: ControlPlane, numbers: Iterable[int]) -> None:
    """With their status, as a kubelet registers itself, and their annotations; over one connection."""
    room = {"cpu": "8", "memory": "32Gi", "pods": "110", "ephemeral-storage": "100Gi"}
    ready = {"type": "Ready", "status": "True", "reason": "Bench", "message": "a bench's node"}
    status = {"capacity": room, "allocatable": room, "conditions": [ready]}
    with plane.client() as client:
        for number in numbers:
            name = f"node-{number:04}"
            about = {
                "name": name,
                "labels": {"kubernetes.io/hostname": name},
                "annotations": annotate(number),
            }
            client.create("/api/v1/nodes", {"metadata": about, "status": status})


def annotate(number: int) -> dict[str, str]:
    """Every fifth node has the bitstream that is asked for."""
    tracker = FpgaTracker(SystemClock())
    at_ms = time.time_ns() // 10**6
    bitstream = "def" if number % 5 == 0 else f"b{number % 20}"
    tracker.accept(FpgaEvent(at_ms, reconfiguration_ms=400.0, bitstream=bitstream))
    tracker.accept(FpgaEvent(at_ms, usage_ms=200.0 + number % 7, bitstream=bitstream))
    load = NodeLoad(at_ms / 1000, 20, 9.0, {"mean_cpu_util": number % 90 / 100, "mean_cpu_pressure": 0.01})
    return {KEY: render_state(tracker.read()), WINDOW_KEY: render_load(load)}


def make_row(what: str, one: Placement, alone: Placement, goal: Goal | None = None) -> Row:
    remark = f"{one.pods_per_second:.0f} pods/s against {alone.pods_per_second:.0f}; CPU {render_cpu(one)}"
    return Row(what, 1 / one.pods_per_second, "s", 1 / alone.pods_per_second, "no extender", goal, remark)


def describe_turns(what: str, alone: Sequence[Placement], beside: Sequence[Placement]) -> Row:
    """What the control plane does for a plain pod, whoever else has the cores."""

    def sum_plane(one: Placement) -> float:
        return sum(one.cpu[name] for name in PLANE)

    def list_rates(placements: Sequence[Placement]) -> str:
        return ", ".join(f"{one.pods_per_second:.0f}" for one in placements)

    own = summarize(beside).cpu[SECOND]
    remark = f"the second scheduler's own {own * 1e3:.2f} ms; pods/s beside {list_rates(beside)}, alone {list_rates(alone)}"
    return Row(
        f"the control plane's CPU for a plain pod, a second scheduler asks us: {what}",
        sum_plane(summarize(beside)),
        "s",
        sum_plane(summarize(alone)),
        "no extender",
        Goal(NOISE, "ratio"),
        remark,
    )


def render_cpu(one: Placement) -> str:
    return ", ".join(f"{name} {seconds * 1e3:.2f} ms" for name, seconds in one.cpu.items())


def count_calls(extender: Extender) -> float:
    return extender.metric('nodescope_extender_requests_total{verb="filter",outcome="ok"}')


@contextmanager
def run_second(plane: ControlPlane) -> Iterator[int]:
    """As the chart has it: schedulerName nodescope, with our extender; its process id, once it has listed the nodes."""
    config = yaml.safe_load(plane.write_scheduler_config(requests_per_second=UNLIMITED).read_text())
    config["profiles"] = [{"schedulerName": "nodescope"}]
    path = plane.folder / "second.yaml"
    path.write_text(yaml.safe_dump(config))
    command = [str(plane.tools / "kube-scheduler"), f"--config={path}", "--bind-address=127.0.0.1"]
    port = free_port()
    with (plane.folder / "second.log").open("ab") as log:
        process = subprocess.Popen([*command, f"--secure-port={port}"], stdout=log, stderr=log)
    try:
        wait_for("the second scheduler has listed all", lambda: is_ready(port), 120)
        yield process.pid
    finally:
        process.terminate()
        process.wait()


def is_ready(port: int) -> bool:
    """Once its informers have their lists; its certificate is its own."""
    try:
        return httpx.get(f"https://127.0.0.1:{port}/readyz", verify=False).status_code == 200
    except httpx.HTTPError:
        return False
