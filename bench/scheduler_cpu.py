"""What one FPGA pod costs in a cluster of 5,000 nodes: CPU of both verbs without HTTP, and the time they take over HTTP."""

import gc
import json
import random
import time
from collections.abc import Callable
from contextlib import closing
from functools import partial
from http.client import HTTPConnection
from statistics import fmean
from typing import Any

from tests.use.scheduler.world import ENABLED, World, loaded, used

from bench.result import Goal, Options, Row, quantile
from bench.scheduler import serving
from nodescope.fpga.node_load import WINDOW_KEY, NodeLoad, render_load
from nodescope.fpga.state import KEY
from nodescope.use.scheduler.wire import parse_call

NODES = 5000
# Each node reports one of these bitstreams.
BITSTREAMS = 20
PODS = 200
# At this pace, as the clock of the trial goes.
PODS_PER_SECOND = 50
SEED = 1

Ask = Callable[[bytes], tuple[float, bytes]]
"""Seconds, and what /prioritize answered."""


def run(options: Options) -> list[Row]:
    del options
    world = make_cluster()
    names = [f"node-{number:04}" for number in range(NODES)]
    # As the command sets it.
    gc.set_threshold(50_000, 20, 20)
    taken = [place(world, number, names, partial(ask_directly, world)) for number in range(PODS)]
    with serving(world.extender) as port, closing(HTTPConnection("127.0.0.1", port)) as connection:
        numbers = range(PODS, 2 * PODS)
        waited = [place(world, number, names, partial(ask_over_http, connection)) for number in numbers]
    return [
        Row(f"an FPGA pod at {NODES:,} nodes: CPU, mean", fmean(taken), "s", goal=Goal(0.008, "ours")),
        Row("the same, p99", quantile(taken, 0.99), "s", goal=Goal(0.06, "ours")),
        Row(
            f"both verbs over HTTP at {NODES:,} nodes, p99",
            quantile(waited, 0.99),
            "s",
            goal=Goal(0.06, "ours"),
            remark=f"p50 {quantile(waited, 0.5) * 1e3:.1f} ms, client's own time included",
        ),
    ]


def make_cluster() -> World:
    chance = random.Random(SEED)
    world = World()
    states = []
    for number in range(BITSTREAMS):
        donor = World()
        donor.node("x", loaded(f"b{number}", 300 + number), *[used(200 + number)] * (number + 1))
        node = donor.nodes.find("x")
        assert node is not None
        states.append(str(node.texts[0]))
    for number in range(NODES):
        metrics = {"mean_cpu_util": chance.random(), "mean_cpu_pressure": chance.random() / 10}
        load = NodeLoad(world.clock.wall_ns() / 1e9, 20, 9.0, metrics)
        annotations = {KEY: states[number % BITSTREAMS], WINDOW_KEY: render_load(load)}
        world.annotate(f"node-{number:04}", annotations)
    return world


def place(world: World, number: int, names: list[str], ask: Ask) -> float:
    """CPU or wall seconds from both bodies to both answers; the pod is then bound to the best node."""
    labels = {**ENABLED, "fpga-scheduling.io/bitstream-identifier": f"b{number % BITSTREAMS}"}
    about = {"name": f"p{number}", "namespace": "d", "uid": f"u{number}", "labels": labels}
    pod: dict[str, Any] = {"metadata": about, "spec": {}}
    world.placed.change(pod)
    body = json.dumps({"Pod": pod, "Nodes": None, "NodeNames": names}, separators=(",", ":")).encode()
    taken, answer = ask(body)
    best = max(json.loads(answer), key=lambda row: row["Score"])["Host"]
    world.placed.change({**pod, "spec": {"nodeName": best}})
    world.clock.advance(10**9 // PODS_PER_SECOND)
    return taken


def ask_directly(world: World, body: bytes) -> tuple[float, bytes]:
    """CPU seconds of both verbs."""
    began = time.process_time()
    world.extender.filter(parse_call(body))
    answer = world.extender.prioritize(parse_call(body))
    return time.process_time() - began, answer


def ask_over_http(connection: HTTPConnection, body: bytes) -> tuple[float, bytes]:
    """Wall seconds of both verbs, over one kept connection, as kube-scheduler asks."""
    began = time.perf_counter()
    for verb in ("filter", "prioritize"):
        connection.request("POST", f"/{verb}", body)
        response = connection.getresponse()
        answer = response.read()
        if response.status != 200:
            raise RuntimeError(f"/{verb}: {response.status}")
    return time.perf_counter() - began, answer
