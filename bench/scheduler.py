"""
What the extender costs a cluster, and what it gains.

    pods/s      a stock kube-scheduler over 200 nodes, with and without it
    verbs       both at 1,000 nodes over HTTP, beside a pod that asks for nothing
    replay      a seeded trace: cold starts, lost time and spread, beside 1-2-2
"""

import http.client
import json
import statistics
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.cluster.control_plane import RBAC, ControlPlane, free_port, tools_folder
from tests.cluster.programs import run_extender

from bench.result import Goal, Options, Row, quantile
from bench.scheduler_replay import Outcome, replay

SEEDS = (11, 12, 13)
VERB_NODES = 1000
CALLS = 400
CLUSTER_NODES = 200
PODS = 300
LABELS = {"fpga-scheduling.io/enabled": "true", "fpga-scheduling.io/bitstream-identifier": "def"}


def run(options: Options) -> list[Row]:
    del options
    return [*measure_replay(), *measure_verbs(), *measure_pods()]


# -- the replay --------------------------------------------------------------


def measure_replay() -> list[Row]:
    ours = [replay("cost", seed) for seed in SEEDS]
    theirs = [replay("rank", seed) for seed in SEEDS]

    def mean(outcomes: list[Outcome], name: str) -> float:
        return statistics.fmean(getattr(one, name) for one in outcomes)

    what = {
        "cold_share": ("cold starts, share", "", Goal(1.0, "ratio")),
        "lost_ms": ("waiting and loading, mean", "s", Goal(1.0, "ratio")),
        "usage_spread": ("spread of use over nodes", "", Goal(1.0, "ratio")),
        "load_spread": ("spread of loading over nodes", "", None),
    }
    rows = []
    for name, (label, unit, goal) in what.items():
        scale = 1e-3 if unit == "s" else 1.0
        remark = f"{len(SEEDS)} traces of 10 min on 10 nodes"
        rows.append(
            Row(
                label,
                mean(ours, name) * scale,
                unit,
                mean(theirs, name) * scale,
                "policy 1-2-2",
                goal,
                remark,
            )
        )
    return rows


# -- the verbs ---------------------------------------------------------------


@contextmanager
def serving_extender() -> Iterator[int]:
    """The extender behind a real socket, its nodes written as the watch would; its port."""
    import asyncio
    import gc

    from nodescope.base.clock import SystemClock
    from nodescope.base.fpga import FpgaEvent, FpgaTracker
    from nodescope.base.fpga_state import KEY, render_state
    from nodescope.base.node_load import WINDOW_KEY, NodeLoad, render_load
    from nodescope.base.settings import Settings
    from nodescope.publish.server import build_server, open_socket
    from nodescope.use.scheduler.explain import Decisions
    from nodescope.use.scheduler.extender import Extender
    from nodescope.use.scheduler.ledger import Ledger
    from nodescope.use.scheduler.nodes import Nodes
    from nodescope.use.scheduler.server import ExtenderApp
    from nodescope.use.scheduler.tally import ExtenderTally

    # As the command does it.
    gc.set_threshold(50_000, 20, 20)
    clock = SystemClock()
    nodes = Nodes(clock)
    for number in range(VERB_NODES):
        tracker = FpgaTracker(clock)
        for step in range(20):
            at_ms = clock.wall_ns() // 10**6 - step * 2000
            name = f"bitstream-{(number + step) % 30}"
            tracker.accept(FpgaEvent(at_ms, usage_ms=float(number), bitstream=name))
            tracker.accept(FpgaEvent(at_ms, reconfiguration_ms=100.0 + step, bitstream=name))
        metrics = {
            f"mean_{name}": number / VERB_NODES for name in ("cpu_util", "cpu_pressure", "mem_bw_util")
        }
        load = NodeLoad(clock.wall_ns() / 1e9, 20, 8.0, metrics)
        annotations = {KEY: render_state(tracker.read()), WINDOW_KEY: render_load(load)}
        nodes.change({"metadata": {"name": f"node-{number:04}", "annotations": annotations}})
    app = ExtenderApp(
        Extender(nodes, Ledger(clock), Decisions(), clock), ExtenderTally(), lambda: "", lambda: ""
    )
    server = build_server(app, Settings())
    listener = open_socket("127.0.0.1:0")
    thread = threading.Thread(target=lambda: asyncio.run(server.serve(sockets=[listener])), daemon=True)
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        server.should_exit = True
        thread.join(10)
        listener.close()


def measure_verbs() -> list[Row]:
    names = [f"node-{number:04}" for number in range(VERB_NODES)]

    def body(number: int, labels: dict[str, str]) -> bytes:
        about = {"name": f"p{number}", "namespace": "d", "uid": str(number), "labels": labels}
        return json.dumps({"Pod": {"metadata": about}, "Nodes": None, "NodeNames": names}).encode()

    rows = []
    with serving_extender() as port:
        connection = http.client.HTTPConnection("127.0.0.1", port)
        for verb in ("filter", "prioritize"):
            seconds: dict[str, list[float]] = {"fpga": [], "plain": []}
            for number in range(CALLS):
                for kind, labels in (
                    ("fpga", {**LABELS, "fpga-scheduling.io/fpga-vendor": "amd"}),
                    ("plain", {}),
                ):
                    content = body(number, labels if kind == "fpga" else {})
                    began = time.perf_counter()
                    connection.request("POST", f"/{verb}", content)
                    connection.getresponse().read()
                    seconds[kind].append(time.perf_counter() - began)
            rows.append(
                Row(
                    f"/{verb} at {VERB_NODES} nodes, p99",
                    quantile(seconds["fpga"], 0.99),
                    "s",
                    quantile(seconds["plain"], 0.99),
                    "of a plain pod",
                    None,
                    f"p50 {quantile(seconds['fpga'], 0.5) * 1e3:.1f} ms, plain {quantile(seconds['plain'], 0.5) * 1e3:.1f} ms",
                )
            )
        connection.close()
    return rows


# -- a real kube-scheduler ----------------------------------------------------


def measure_pods() -> list[Row]:
    tools = tools_folder()
    if not (tools / "kube-scheduler").exists():
        return [Row("pods placed a second", 0.0, "/s", remark="not measured: make cluster-tools first")]
    with tempfile.TemporaryDirectory(prefix="nodescope-bench-") as folder:
        plane = ControlPlane(Path(folder), tools)
        try:
            plane.start()
            plane.extender_port = free_port()
            plane.kubectl("apply", "-f", RBAC / "namespace.yaml")
            plane.kubectl("apply", "-f", RBAC / "extender.yaml")
            for number in range(CLUSTER_NODES):
                plane.create_node(f"node-{number:03}")
            alone = place(plane, "alone", {}, extenders=[])
            kubeconfig = plane.kubeconfig("extender-token")
            with run_extender(kubeconfig, plane.extender_port, Path(folder) / "extender.log"):
                asked = place(plane, "asked", LABELS)
                plain = place(plane, "plain", {})
        finally:
            plane.stop_all()
    what = f"kube-scheduler, {CLUSTER_NODES} nodes, {PODS} waiting"
    return [
        Row(
            f"a pod placed, FPGA, {what}",
            1 / asked,
            "s",
            1 / alone,
            "without extender",
            None,
            f"{asked:.0f} pods/s against {alone:.0f}",
        ),
        Row(
            f"a pod placed, plain, {what}",
            1 / plain,
            "s",
            1 / alone,
            "without extender",
            None,
            f"{plain:.0f} pods/s against {alone:.0f}",
        ),
    ]


def place(plane: ControlPlane, prefix: str, labels: dict[str, str], **config: Any) -> float:
    """Pods a second: all of them wait, then a scheduler starts; timed from its first binding on."""
    for number in range(PODS):
        plane.submit_pod(f"{prefix}-{number}", labels)
    plane.start_scheduler(plane.write_scheduler_config(**config))
    first, before = 0.0, 0
    try:
        while True:
            count = sum(name.startswith(f"{prefix}-") for name in plane.read_places())
            if count and not first:
                first, before = time.monotonic(), count
            if count == PODS and first:
                return (PODS - before) / (time.monotonic() - first)
            time.sleep(0.05)
    finally:
        plane.stop("kube-scheduler")
        plane.kubectl("delete", "pods", "--all", "--grace-period=0", "--force", "--wait=true")
