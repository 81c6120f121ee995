"""An extender whose nodes and pods a test writes."""

import json
from typing import Any

from tests.support import WALL_NS, TurnableClock

from nodescope.fpga.node_load import WINDOW_KEY, NodeLoad, render_load
from nodescope.fpga.state import KEY, render_state
from nodescope.fpga.tracker import FpgaEvent, FpgaTracker
from nodescope.use.scheduler.explain import Decisions, describe_decision
from nodescope.use.scheduler.extender import Extender
from nodescope.use.scheduler.nodes import Nodes
from nodescope.use.scheduler.placed_pods import PlacedPods
from nodescope.use.scheduler.wire import ExtenderCall, parse_call

NOW_MS = WALL_NS // 1_000_000
ENABLED = {"fpga-scheduling.io/enabled": "true"}


class World:
    """An extender whose nodes a test writes."""

    def __init__(self, policy: str = "cost", clock: TurnableClock | None = None) -> None:
        self.clock = clock or TurnableClock()
        self.nodes = Nodes(self.clock)
        self.placed = PlacedPods(self.clock)
        self.extender = Extender(self.nodes, self.placed, Decisions(), self.clock, policy)

    def node(self, name: str, *events: FpgaEvent, labels: dict[str, str] | None = None) -> None:
        tracker = FpgaTracker(self.clock)
        for event in events:
            tracker.accept(event)
        self.annotate(name, {KEY: render_state(tracker.read())}, labels)

    def load(self, name: str, health: float | None = None, **metrics: float) -> None:
        load = NodeLoad(self.clock.wall_ns() / 1e9, 20, health, metrics)
        self.annotate(name, {WINDOW_KEY: render_load(load)})

    def annotate(self, name: str, annotations: dict[str, str], labels: dict[str, str] | None = None) -> None:
        about = {"name": name, "annotations": annotations, "labels": labels or {}}
        self.nodes.change({"metadata": about})

    def call(self, pod: str, labels: dict[str, str], **spec: Any) -> ExtenderCall:
        about = {"name": pod, "namespace": "d", "uid": f"uid-{pod}", "labels": labels}
        # The watch of pods shows it waiting.
        self.placed.change({"metadata": about, "spec": spec})
        body = {
            "Pod": {"metadata": about, "spec": spec},
            "NodeNames": sorted(self.nodes._nodes),
            "Nodes": None,
        }
        return parse_call(json.dumps(body).encode())

    def scores(self, pod: str = "p", bitstream: str = "", **more: str) -> dict[str, int]:
        labels = {**ENABLED, **more}
        if bitstream:
            labels["fpga-scheduling.io/bitstream-identifier"] = bitstream
        return self.scores_of(self.call(pod, labels))

    def scores_of(self, call: ExtenderCall) -> dict[str, int]:
        rows = json.loads(self.extender.prioritize(call))
        return {row["Host"]: row["Score"] for row in rows}

    def explain(self, pod: str = "p") -> dict[str, dict[str, Any]]:
        decision = self.extender.decisions.find(f"d/{pod}")
        assert decision is not None
        return {one["node"]: one for one in describe_decision(decision)["nodes"]}


def loaded(bitstream: str, took_ms: float = 10_000, age_seconds: float = 1) -> FpgaEvent:
    return FpgaEvent(NOW_MS - round(age_seconds * 1000), reconfiguration_ms=took_ms, bitstream=bitstream)


def used(usage_ms: float, bitstream: str = "") -> FpgaEvent:
    return FpgaEvent(NOW_MS - 1000, usage_ms=usage_ms, bitstream=bitstream)


def bind(world: World, pod: str, node: str, bitstream: str = "", phase: str = "Pending") -> dict[str, Any]:
    labels = {**ENABLED, "fpga-scheduling.io/bitstream-identifier": bitstream}
    about = {"name": pod, "namespace": "d", "uid": f"uid-{pod}", "labels": labels}
    item = {"metadata": about, "spec": {"nodeName": node}, "status": {"phase": phase}}
    world.placed.change(item)
    return item
