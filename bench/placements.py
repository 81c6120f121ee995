"""Pods that a stock kube-scheduler places: how many a second, and what each program took for one."""

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.cluster.control_plane import ControlPlane

from nodescope.base.clock import SystemClock
from nodescope.kube.client import Client
from nodescope.kube.watch import ObjectWatch

PODS = 600
PATH = "/api/v1/namespaces/default/pods"
# Otherwise kube-scheduler's own limit of 50 requests a second is all there is to see.
UNLIMITED = 10_000
LONGEST_SECONDS = 300.0
TICKS_PER_SECOND = 100

Cpu = Mapping[str, float]
"""CPU seconds by program."""


@dataclass(frozen=True)
class Placement:
    pods_per_second: float
    cpu: Cpu
    """For one pod."""


@dataclass
class Bindings:
    """A listener of the watch of pods: when the first and the last were bound, and the CPU time at both moments."""

    read_cpu: Callable[[], Cpu]
    seen: set[str] = field(default_factory=set)
    moments: list[tuple[float, Cpu]] = field(default_factory=list)
    is_done: threading.Event = field(default_factory=threading.Event)

    def replace(self, items: Iterable[Mapping[str, Any]]) -> None:
        for item in items:
            self.change(item)

    def change(self, item: Mapping[str, Any]) -> None:
        if not item["spec"].get("nodeName") or item["metadata"]["name"] in self.seen:
            return
        self.seen.add(item["metadata"]["name"])
        if len(self.seen) in (1, PODS):
            self.moments.append((time.monotonic(), self.read_cpu()))
        if len(self.seen) == PODS:
            self.is_done.set()

    def remove(self, item: Mapping[str, Any]) -> None:
        """None ends before all are placed."""

    def summarize(self) -> Placement:
        (first, before), (last, after) = self.moments
        taken = {name: (after[name] - before[name]) / (PODS - 1) for name in after}
        return Placement((PODS - 1) / (last - first), taken)


def place(plane: ControlPlane, labels: dict[str, str], others: Mapping[str, int], **config: Any) -> Placement:
    """
    All of them wait, then a scheduler starts; timed from its first binding to its last.

    Told by a watch: listing all pods again and again takes the API server's time. The
    client's own limit is lifted: with it, 50 pods a second are placed with and without us.
    `others` are process ids beside the control plane's.
    """
    submit(plane, labels)
    plane.start_scheduler(plane.write_scheduler_config(requests_per_second=UNLIMITED, **config))
    pids = {**{name: one.pid for name, one in plane.running.items()}, **others}
    bindings = Bindings(lambda: {name: read_cpu_seconds(pid) for name, pid in pids.items()})
    watch = ObjectWatch(Client(plane.account()), PATH, {}, bindings, SystemClock())
    with ExitStack() as stack:
        # All at once: kubectl alone would ask for them one by one, for minutes.
        stack.callback(plane.kubectl, "delete", "--raw", f"{PATH}?gracePeriodSeconds=0")
        stack.callback(plane.stop, "kube-scheduler")
        stack.callback(watch.stop)
        watch.start()
        if not bindings.is_done.wait(LONGEST_SECONDS):
            raise SystemExit(f"{len(bindings.seen)} of {PODS} pods were placed in {LONGEST_SECONDS:g} s")
    return bindings.summarize()


def submit(plane: ControlPlane, labels: dict[str, str]) -> None:
    spec = {"containers": [{"name": "app", "image": "nginx:1.17.10"}]}
    with plane.client() as client:
        for number in range(PODS):
            client.create(PATH, {"metadata": {"name": f"pod-{number}", "labels": labels}, "spec": spec})


def read_cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_PER_SECOND
