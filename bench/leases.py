"""
What a node's window costs the control plane: written to its Node, and to a Lease of its own.

A real etcd and kube-apiserver, Nodes as long as a kubelet's with fifty images,
and as many watchers of nodes as a small cluster has: a scheduler, controllers,
and a network plugin on some nodes, which all see every change of a Node. Agents'
writes are sent at an even pace by this process; the figures are the CPU time of
the two servers, and what a watcher is sent.
"""

import json
import os
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from tests.cluster.control_plane import ControlPlane, tools_folder

from bench.result import Options, Row
from nodescope.base.clock import SystemClock
from nodescope.fpga.node_load import WINDOW_KEY, NodeLoad, render_load
from nodescope.kube.client import Client
from nodescope.publish.annotated_object import LeaseObject, NodeObject

NODES, IMAGES = 200, 50
# Of all nodes, as schedulers, controllers and network plugins are.
WATCHERS = 10
WRITES_PER_SECOND, SECONDS = 40, 20
WRITERS = 4
# A cluster of the largest supported size: each agent writes every 17 s in the mean.
LARGE_NODES, LARGE_WRITES = 5000, 300
TICKS = os.sysconf("SC_CLK_TCK")
METRICS = (
    "cpu_util",
    "cpu_pressure",
    "cpu_contention",
    "mem_pressure",
    "io_pressure",
    "mem_util",
    "mem_bw_util",
)


def run(options: Options) -> list[Row]:
    del options
    with tempfile.TemporaryDirectory() as folder:
        plane = ControlPlane(Path(folder), tools_folder())
        try:
            plane.start()
            make_nodes(plane)
            make_leases(plane)
            idle = measure(plane, None)
            node = measure(plane, "node")
            lease = measure(plane, "lease")
        finally:
            plane.stop_all()
    writes = WRITES_PER_SECOND * SECONDS
    costs = {name: (one[0] - idle[0]) / writes for name, one in (("node", node), ("lease", lease))}
    remark = f"{WATCHERS} watchers of nodes, {WRITES_PER_SECOND} writes/s"
    return [
        Row("one window written: CPU of the control plane", costs["lease"], "s", costs["node"], "to the Node",
            None, remark),
        Row("the same: sent to each watcher of nodes", lease[1] / writes, "bytes", node[1] / writes, "to the Node"),
        Row(f"{LARGE_NODES:,} nodes, {LARGE_WRITES} writes/s: control plane", costs["lease"] * LARGE_WRITES, "core",
            costs["node"] * LARGE_WRITES, "to the Node", None, "by the figures above"),
    ]  # fmt: skip


def make_nodes(plane: ControlPlane) -> None:
    images = [
        {"names": [f"registry.example/{n}@sha256:{n:064}", f"registry.example/{n}:v1"], "sizeBytes": n}
        for n in range(IMAGES)
    ]
    plane.kubectl("create", "namespace", "nodescope")
    for number in range(NODES):
        plane.create_node(f"n{number}")
        with plane.client() as client:
            client.patch(f"/api/v1/nodes/n{number}/status", {"status": {"images": images}})


def make_leases(plane: ControlPlane) -> None:
    """Before anything is measured: each is made once in its node's life."""
    with plane.client() as client:
        for number in range(NODES):
            LeaseObject(NodeObject(client, f"n{number}"), "nodescope", SystemClock()).write(
                {WINDOW_KEY: "{}"}
            )


def measure(plane: ControlPlane, place: str | None) -> tuple[float, float]:
    """CPU seconds of both servers over the span, and bytes that one watcher was sent."""
    stop, sent = threading.Event(), [0] * WATCHERS
    threads = [
        threading.Thread(target=watch, args=(plane, stop, sent, number), daemon=True)
        for number in range(WATCHERS)
    ]
    for thread in threads:
        thread.start()
    time.sleep(2)
    before, received = read_cpu_seconds(plane), sum(sent)
    began = time.monotonic()
    if place:
        with ThreadPoolExecutor(WRITERS) as pool:
            list(pool.map(lambda writer: write(plane, place, writer, began), range(WRITERS)))
    time.sleep(max(0.0, began + SECONDS - time.monotonic()))
    found = read_cpu_seconds(plane) - before, (sum(sent) - received) / WATCHERS
    stop.set()
    return found


def write(plane: ControlPlane, place: str, writer: int, began: float) -> None:
    """One of the senders: its share of the writes, at an even pace, each of another node."""
    client, clock = plane.client(), SystemClock()
    for number in range(writer, WRITES_PER_SECOND * SECONDS, WRITERS):
        time.sleep(max(0.0, began + number / WRITES_PER_SECOND - time.monotonic()))
        node = NodeObject(client, f"n{number % NODES}")
        share = number % 97 / 97
        metrics = {f"{kind}_{name}": share for name in METRICS for kind in ("mean", "p95")}
        text = render_load(NodeLoad(time.time(), 20, 9.0, metrics))
        target = node if place == "node" else LeaseObject(node, "nodescope", clock)
        target.write({WINDOW_KEY: text})
    client.close()


def watch(plane: ControlPlane, stop: threading.Event, sent: list[int], number: int) -> None:
    client = Client(plane.account())
    version = client.read("/api/v1/nodes", {"limit": "1"})["metadata"]["resourceVersion"]
    query = {"watch": "1", "resourceVersion": version, "timeoutSeconds": str(SECONDS * 3)}
    event: dict[str, Any]
    for event in client.stream("/api/v1/nodes", query, SECONDS * 3):
        sent[number] += len(json.dumps(event))
        if stop.is_set():
            break
    client.close()


def read_cpu_seconds(plane: ControlPlane) -> float:
    """User and system time of etcd and the API server."""
    found = 0
    for name in ("etcd", "kube-apiserver"):
        fields = Path(f"/proc/{plane.running[name].pid}/stat").read_text().rpartition(")")[2].split()
        found += int(fields[11]) + int(fields[12])
    return found / TICKS
