"""
What one FPGA pod costs in a cluster of 5,000 nodes: CPU of both verbs without HTTP, and the time they take over HTTP.

Costs of nodes are renewed every five seconds of the trial's clock, as the extender's
thread does it; its CPU is counted to the pods. Rare pods come seconds apart, each
at a random moment of a renewal that runs on a thread: worse than it can be.
"""

import gc
import json
import multiprocessing
import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from http.client import HTTPConnection
from multiprocessing.connection import Connection
from statistics import fmean
from typing import Any

from tests.support import TurnableClock
from tests.use.scheduler.world import ENABLED, World

from bench.result import Goal, Options, Row, quantile
from bench.scheduler import serving
from nodescope.fpga.node_load import WINDOW_KEY, NodeLoad, render_load
from nodescope.fpga.state import KEY, render_state
from nodescope.fpga.tracker import FpgaEvent, FpgaTracker
from nodescope.use.scheduler.standing import RENEW_SECONDS
from nodescope.use.scheduler.wire import parse_call

NODES = 5000
# Each node reports one of these bitstreams.
BITSTREAMS = 20
PODS = 200
# At this pace, as the clock of the trial goes.
PODS_PER_SECOND = 50
RARE_PODS = 200
# As long as a renewal takes, with its rests.
RENEWAL_SECONDS = 0.3
# Rounds after which agents write again: within the time that what they wrote is believed.
WRITE_ROUNDS = 12
SEED = 1

Ask = Callable[[bytes], tuple[float, bytes]]
"""Seconds, and what /prioritize answered."""


def run(options: Options) -> list[Row]:
    del options
    world = make_cluster()
    names = [f"node-{number:04}" for number in range(NODES)]
    # As the command sets it.
    gc.set_threshold(50_000, 20, 20)
    renewed = renew(world)
    taken = [place(world, number, names, partial(ask_directly, world)) for number in range(PODS)]
    each = fmean(taken) + renewed / RENEW_SECONDS / PODS_PER_SECOND
    with serving(world.extender) as port, calling(port) as ask:
        waited = []
        for number in range(PODS, 2 * PODS):
            if number % (RENEW_SECONDS * PODS_PER_SECOND) == 0:
                renew(world)
            waited.append(place(world, number, names, ask))
        rare = place_rare(world, names, ask)
    return [
        Row(
            f"an FPGA pod at {NODES:,} nodes: CPU, mean",
            each,
            "s",
            goal=Goal(0.008, "ours"),
            remark=f"{PODS_PER_SECOND} pods/s; renewals of {renewed * 1e3:.0f} ms counted",
        ),
        Row("the same, p99", quantile(taken, 0.99), "s", goal=Goal(0.06, "ours")),
        Row(
            f"both verbs over HTTP at {NODES:,} nodes, p99",
            quantile(waited, 0.99),
            "s",
            goal=Goal(0.06, "ours"),
            remark=f"p50 {quantile(waited, 0.5) * 1e3:.1f} ms, client's own time included",
        ),
        Row(
            "the same of rare pods, each during a renewal, p99",
            quantile(rare, 0.99),
            "s",
            goal=Goal(0.06, "ours"),
            remark=f"p50 {quantile(rare, 0.5) * 1e3:.1f} ms, {RARE_PODS} pods, seed {SEED}",
        ),
    ]


def renew(world: World) -> float:
    """CPU seconds of one renewal."""
    began = time.process_time()
    world.extender.standing.step()
    return time.process_time() - began


def place_rare(world: World, names: list[str], ask: Ask) -> list[float]:
    """One pod in each round of the thread."""
    chance = random.Random(SEED)
    taken = []
    for number in range(RARE_PODS):
        if number % WRITE_ROUNDS == 0:
            write_nodes(world)
        world.clock.advance(round(RENEW_SECONDS * 1e9))
        renewing = threading.Thread(target=renew, args=(world,))
        renewing.start()
        time.sleep(chance.uniform(0, RENEWAL_SECONDS))
        taken.append(place(world, 2 * PODS + number, names, ask))
        renewing.join()
    if world.extender.standing.renewals["call"]:
        raise SystemExit("a call renewed costs itself")
    return taken


class RestingClock(TurnableClock):
    """Turned by the trial; rests of a renewal are real."""

    def wait_until(self, deadline_mono_ns: int, stop: threading.Event) -> bool:
        return stop.wait((deadline_mono_ns - self.now_mono_ns) / 1e9)


def make_cluster() -> World:
    world = World(clock=RestingClock())
    write_nodes(world)
    return world


def write_nodes(world: World) -> None:
    """What all agents say now."""
    chance = random.Random(SEED)
    now_ms = world.clock.wall_ns() // 10**6
    states = []
    for number in range(BITSTREAMS):
        tracker = FpgaTracker(world.clock)
        load = FpgaEvent(now_ms - 1000, reconfiguration_ms=300.0 + number, bitstream=f"b{number}")
        for event in (load, *[FpgaEvent(now_ms - 1000, usage_ms=200.0 + number)] * (number + 1)):
            tracker.accept(event)
        states.append(render_state(tracker.read()))
    for number in range(NODES):
        metrics = {"mean_cpu_util": chance.random(), "mean_cpu_pressure": chance.random() / 10}
        load_text = render_load(NodeLoad(now_ms / 1000, 20, 9.0, metrics))
        annotations = {KEY: states[number % BITSTREAMS], WINDOW_KEY: load_text}
        world.annotate(f"node-{number:04}", annotations)


def place(world: World, number: int, names: list[str], ask: Ask) -> float:
    """CPU or wall seconds from both bodies to both answers; the pod is then bound to the best node."""
    labels = {**ENABLED, "fpga-scheduling.io/bitstream-identifier": f"b{number % BITSTREAMS}"}
    about = {"name": f"p{number}", "namespace": "d", "uid": f"u{number}", "labels": labels}
    pod: dict[str, Any] = {"metadata": about, "spec": {}}
    world.placed.change(pod)
    # kube-scheduler looks at nodes in parallel, and sends them in the order in which they passed.
    random.Random(number).shuffle(names)
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


@contextmanager
def calling(port: int) -> Iterator[Ask]:
    """Calls as kube-scheduler makes them: from another process, over one kept connection."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    child = context.Process(target=make_calls, args=(port, theirs), daemon=True)
    child.start()

    def ask(body: bytes) -> tuple[float, bytes]:
        ours.send(body)
        seconds, answer = ours.recv()
        return seconds, answer

    try:
        yield ask
    finally:
        child.terminate()
        child.join()


def make_calls(port: int, pipe: Connection) -> None:
    """Wall seconds of both verbs."""
    connection = HTTPConnection("127.0.0.1", port)
    while True:
        body = pipe.recv()
        began = time.perf_counter()
        for verb in ("filter", "prioritize"):
            connection.request("POST", f"/{verb}", body)
            response = connection.getresponse()
            answer = response.read()
            if response.status != 200:
                raise RuntimeError(f"/{verb}: {response.status}")
        pipe.send((time.perf_counter() - began, answer))
