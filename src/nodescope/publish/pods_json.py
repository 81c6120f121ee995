"""
GET /pods: the last seconds of every pod of this node, and of the node, for an autoscaler.

    {"node": "worker-1", "window_seconds": 20, "newest_seconds": 0.4, "timestamp": 1690000000.1,
     "statistics": ["mean", "p95", "max"],
     "pods": [{"uid": "...", "namespace": "shop", "pod": "web-1", "metrics": {"cpu": [0.41, 0.66, 0.7]}}],
     "metrics": {"cpu_util": [0.2, 0.3, 0.35]}}

What was not measured is not there. With form=lines the first line is the same
without its pods, and each pod follows on a line of its own, behind its uid: who
needs two pods of a hundred reads two lines.

    0a1b2c3d-... {"cpu":[0.41,0.66,0.7]}
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from typing import Any

from nodescope.base.clock import Clock
from nodescope.base.errors import RequestRejected
from nodescope.hold.feature import FEATURES
from nodescope.hold.pods.node_contention import take_node_contention
from nodescope.hold.pods.pod_window import PodLook, PodWindow, take_pod_windows
from nodescope.hold.pods.spread import STATISTICS
from nodescope.hold.ring import Ring
from nodescope.hold.window import take_node_window
from nodescope.publish.agent_json import shorten

# Of the node, what an autoscaler may want beside its pods' own.
NODE_FEATURES = tuple(
    feature
    for feature in FEATURES
    if feature.name
    in ("cpu_util", "mem_util", "mem_pressure", "io_pressure", "mem_bw", "mem_bw_util", "gpu_util")
)
# A node runs some hundred.
PODS = 5000
FORMS = ("json", "lines")


@dataclass(frozen=True, slots=True)
class PodsAnswer:
    """What both forms render."""

    head: Mapping[str, Any]
    pods: Sequence[PodWindow]
    missing: Mapping[str, Any]

    def describe(self) -> dict[str, Any]:
        return {**self.head, "pods": [describe_pod(one) for one in self.pods], "missing": self.missing}

    def render_lines(self) -> bytes:
        # A uid is digits and dashes; whatever else a cgroup's name may say is no pod of the API server.
        pods = [f"{one.identity.uid} {render_pod(one)}" for one in self.pods if " " not in one.identity.uid]
        return "\n".join([json.dumps(self.head, separators=(",", ":")), *pods]).encode()


def answer_pods(ring: Ring, clock: Clock, node: str, seconds: float) -> PodsAnswer:
    now_mono_ns = clock.mono_ns()
    window = take_node_window(ring, seconds, now_mono_ns, STATISTICS, NODE_FEATURES)
    metrics = {
        name: [window.metrics[f"{statistic}_{name}"] for statistic in STATISTICS] for name in window.sources
    }
    look = PodLook.back(ring, seconds, now_mono_ns)
    if waited := take_node_contention(look):
        metrics["cpu_contention"] = waited.render()
    head = {
        "node": node,
        "window_seconds": shorten(seconds),
        "newest_seconds": window.newest_seconds,
        "timestamp": clock.wall_ns() / 1e9,
        "statistics": list(STATISTICS),
        "metrics": metrics,
    }
    return PodsAnswer(head, take_pod_windows(look)[:PODS], window.missing)


def describe_pod(window: PodWindow) -> dict[str, Any]:
    metrics = {name: spread.render() for name, spread in window.metrics.items()}
    about = window.identity
    return {"uid": about.uid, "namespace": about.namespace, "pod": about.pod, "metrics": metrics}


def check_pods_form(form: str) -> str:
    if form not in FORMS:
        raise RequestRejected(f"form={form[:40]!r} is not accepted; accepted: {', '.join(FORMS)}")
    return form


def render_pod(window: PodWindow) -> str:
    """
    The metrics of describe_pod as JSON.

    Put together here: an agent is asked by adapters all day, and making a list of
    each spread for the encoder takes twice as long as the text itself.
    """
    metrics = window.metrics
    return make_pod_template(tuple(metrics)) % tuple(chain.from_iterable(metrics.values()))


@lru_cache(maxsize=64)
def make_pod_template(names: tuple[str, ...]) -> str:
    """Names of metrics are ours: nothing in them needs to be escaped."""
    return "{" + ",".join(f'"{name}":[%.5g,%.5g,%.5g]' for name in names) + "}"
