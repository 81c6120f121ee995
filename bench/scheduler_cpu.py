"""What one FPGA pod costs the extender in a cluster of 5,000 nodes: CPU of both verbs, without HTTP."""

import gc
import json
import random
import time
from typing import Any

from tests.use.scheduler.world import ENABLED, World, loaded, used

from bench.result import Goal, Options, Row, quantile
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


def run(options: Options) -> list[Row]:
    del options
    world = make_cluster()
    names = [f"node-{number:04}" for number in range(NODES)]
    # As the command sets it.
    gc.set_threshold(50_000, 20, 20)
    taken = sorted(place(world, number, names) for number in range(PODS))
    mean = sum(taken) / len(taken)
    return [
        Row(f"an FPGA pod at {NODES:,} nodes: CPU, mean", mean, "s", goal=Goal(0.008, "ours")),
        Row("the same, p99", quantile(taken, 0.99), "s", goal=Goal(0.06, "ours")),
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


def place(world: World, number: int, names: list[str]) -> float:
    """CPU seconds from both bodies to both answers; the pod is then bound to the best node."""
    labels = {**ENABLED, "fpga-scheduling.io/bitstream-identifier": f"b{number % BITSTREAMS}"}
    about = {"name": f"p{number}", "namespace": "d", "uid": f"u{number}", "labels": labels}
    pod: dict[str, Any] = {"metadata": about, "spec": {}}
    world.placed.change(pod)
    body = json.dumps({"Pod": pod, "Nodes": None, "NodeNames": names}, separators=(",", ":")).encode()
    began = time.process_time()
    world.extender.filter(parse_call(body))
    answer = world.extender.prioritize(parse_call(body))
    taken = time.process_time() - began
    best = max(json.loads(answer), key=lambda row: row["Score"])["Host"]
    world.placed.change({**pod, "spec": {"nodeName": best}})
    world.clock.advance(10**9 // PODS_PER_SECOND)
    return taken
