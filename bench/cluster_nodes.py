"""
Archives of many nodes, cheap to write: for the page of a cluster, in the bench and in its tests.

Each node has a day of its own, made of its number and a seed: how busy it is,
a wave over the hours, and for some of them a story. Samples are 15 s apart,
which a minute's cell does not show, so that a hundred nodes with a hundred
containers are written in some minutes, and a hundred small ones in seconds.

    python -m bench.cluster_nodes FOLDER 100 --containers 8 --hours 1
"""

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from nodescope.base.block import Floats, Integers
from nodescope.base.entity import NODE, Entity
from nodescope.base.findings.event_form import FACT, FINDING
from nodescope.base.findings.node_finding import NodeFinding
from nodescope.base.frame import OOM_EXIT, START
from nodescope.base.metric import Metric
from nodescope.keep.demo.archive import gather_columns
from nodescope.keep.demo.samples import CONTAINER_METRICS, GPU_METRICS, NODE_METRICS, DemoColumn
from nodescope.keep.demo.story import hexadecimal, seeded_random
from nodescope.keep.disk import Disk
from nodescope.keep.file_writer import begin_head, write_file
from nodescope.keep.folder import MS_PER_DAY, PARQUET, DataFolder, clean_identifier, render_day, render_stamp
from nodescope.keep.label_columns import Identity, Subject, describe_entity
from nodescope.keep.rollup import renew_rollups
from nodescope.keep.session import Session, render_time, write_session
from nodescope.keep.sidecar import Sidecar, Ticks

TICK_MS = 15_000
CORES = 8
NODE_BYTES = 32 * 2**30
SERVICES = ("api", "web", "cache", "queue", "search", "auth", "mail", "index", "billing", "gateway")
NAMESPACES = ("shop", "media", "infra")
# What a node's number gives it; all others are well.
STORIES = ("kill", "pressure", "throttled", "full", "loop", "finding")
CPU_METRICS = {
    name: Metric(f"cpu.{name}", "counter", f"Time in mode {name}.", unit="seconds", scale=0.01)
    for name in ("user", "system", "idle")
}
PRESSURE_METRICS = {
    name: Metric(f"pressure.{name}.some.total", "counter", f"Stalled on {name}.", unit="seconds", scale=1e-6)
    for name in ("cpu", "memory", "io")
}


@dataclass(frozen=True, slots=True)
class NodePlan:
    """One node to write."""

    folder: Path
    number: int
    containers: int
    from_ms: int
    to_ms: int
    seed: int = 1
    name: str = ""

    @property
    def node(self) -> str:
        return self.name or name_node(self.number)

    @property
    def story(self) -> str:
        """Six of every twenty nodes have one."""
        place = (self.number * 7) % 20
        return STORIES[place] if place < len(STORIES) else ""


def name_node(number: int) -> str:
    return f"worker-{number:03}"


class NodePage:
    """The content of a node's file."""

    def __init__(self, plan: NodePlan) -> None:
        self.plan = plan
        self.time_ms: Integers = np.arange(plan.from_ms, plan.to_ms, TICK_MS, dtype=np.int64)
        self.random = seeded_random(plan.seed, plan.node)
        self.subjects: dict[Identity, Subject] = {}
        self.columns: list[DemoColumn] = []
        self.events: list[dict[str, object]] = []

    @property
    def ticks(self) -> Ticks:
        mono = (self.time_ms - self.plan.to_ms + MS_PER_DAY) * 1_000_000
        return Ticks(self.time_ms, mono, np.zeros(len(mono), np.int64), (run_of(self.plan),))

    def keep(self, entity: Entity, metrics: Mapping[str, Metric], values: Mapping[str, Floats]) -> None:
        subject = describe_entity(entity, self.plan.node, int(self.time_ms[0]))
        self.subjects[subject.identity] = subject
        self.columns += [
            DemoColumn(metrics[name], subject.identity, self.time_ms, value) for name, value in values.items()
        ]

    def count_up(self, per_second: Floats) -> Floats:
        """A counter that grows so fast."""
        return np.rint(np.cumsum(np.maximum(per_second, 0.0) * TICK_MS / 1000))

    def wave(self, level: float, depth: float) -> Floats:
        """Around a level, slower and faster."""
        hours = self.time_ms / 3_600_000
        phase = self.random.uniform(0, 6.28)
        slow = np.sin(hours * 2.1 + phase) + 0.4 * np.sin(hours * 9.7 + 2 * phase)
        return np.asarray(level + depth * slow + self.random.normal(0, depth / 5, len(hours)))

    def late(self, share: float) -> Floats:
        """1 in the last part of the time, 0 before."""
        start = self.plan.to_ms - round((self.plan.to_ms - self.plan.from_ms) * share)
        return (self.time_ms >= start).astype(float)


def run_of(plan: NodePlan) -> str:
    return hexadecimal("run", plan.seed, plan.node)[:12]


def fill(page: NodePage) -> None:
    plan, story = page.plan, page.plan.story
    busy = page.random.uniform(0.15, 0.65)
    cpu = np.clip(page.wave(busy, 0.1) + (0.45 * page.late(0.4) if story == "full" else 0.0), 0.02, 0.99)
    used = np.clip(page.wave(page.random.uniform(0.3, 0.7), 0.04), 0.05, 0.97)
    for core in range(CORES):
        values = {name: page.count_up(np.zeros(len(cpu))) for name in CPU_METRICS}
        values["user"], values["idle"] = page.count_up(cpu * 100), page.count_up((1 - cpu) * 100)
        page.keep(Entity("cpu", (str(core),), (("cpu", str(core)),)), CPU_METRICS, values)
    total = np.full(len(cpu), float(NODE_BYTES))
    load = np.round(cpu * CORES, 2)
    available = np.rint(total * (1 - used))
    page.keep(NODE, NODE_METRICS, {"load": load, "available": available, "total": total})
    stalled = {name: np.clip(page.wave(0.01, 0.01), 0, 1) for name in PRESSURE_METRICS}
    if story == "pressure":
        stalled["memory"] = np.clip(0.32 * page.late(0.5) + stalled["memory"], 0, 1)
    page.keep(NODE, PRESSURE_METRICS, {name: page.count_up(one * 1e6) for name, one in stalled.items()})
    if plan.number % 10 == 4:
        fill_gpu(page)
    shares = page.random.dirichlet(np.ones(plan.containers))
    for number in range(plan.containers):
        fill_container(page, number, shares[number] * cpu * CORES, shares[number] * used * NODE_BYTES)
    if story == "finding":
        page.events.append(tell_finding(page))


def fill_gpu(page: NodePage) -> None:
    uuid = f"GPU-{hexadecimal('gpu', page.plan.node)[:12]}"
    labels = (("gpu_index", "0"), ("uuid", uuid), ("vendor", "nvidia"))
    busy = np.round(np.clip(page.wave(0.6, 0.3), 0, 1) * 100)
    page.keep(Entity("gpu", (uuid,), labels), GPU_METRICS, {"utilization": busy})


def fill_container(page: NodePage, number: int, cores: Floats, size: Floats) -> None:
    story = page.plan.story
    entity = name_container(page.plan, number)
    size = np.rint(size / 4096) * 4096
    values = {
        "cpu.stat.usage_usec": page.count_up(cores * 1e6),
        "memory.current": size,
        "memory.max": np.full(len(size), float(2 * NODE_BYTES)),
    }
    if number == 0:
        share = 0.7 * page.late(0.6) if story == "throttled" else np.zeros(len(size))
        values["cpu.stat.nr_periods"] = page.count_up(np.full(len(size), 10.0))
        values["cpu.stat.nr_throttled"] = page.count_up(10.0 * share)
    page.keep(entity, CONTAINER_METRICS, values)
    if number == 1 and story in ("kill", "loop"):
        for back in range(1 if story == "kill" else 6):
            page.events += tell_restart(page, number, 2 + 3 * back, is_kill=story == "kill")


def name_container(plan: NodePlan, number: int, life: int = 0) -> Entity:
    service, namespace = SERVICES[number % len(SERVICES)], NAMESPACES[number % len(NAMESPACES)]
    identity = hexadecimal("container", plan.seed, plan.node, number, life)
    uid = hexadecimal("pod", plan.seed, plan.node, number)
    name = service if number < len(SERVICES) else f"{service}-{number // len(SERVICES)}"
    labels = (
        ("namespace", namespace),
        ("pod", f"{name}-{uid[:9]}-{uid[9:14]}"),
        ("container", name),
        ("image", f"registry.example/{name}:1.4.2"),
    )
    details = (
        ("container_id", identity),
        ("pod_uid", f"{uid[:8]}-{uid[8:12]}-{uid[12:16]}-{uid[16:20]}-{uid[20:32]}"),
        ("owner", f"Deployment/{name}"),
    )
    return Entity("container", (identity,), labels, details)


def tell_restart(page: NodePage, number: int, minutes_ago: int, *, is_kill: bool) -> list[dict[str, object]]:
    """An end and a new life; the new life has no samples of its own, which a cell does not miss."""
    at_ms = page.plan.to_ms - minutes_ago * 60_000
    events = []
    for life, kind, moment_ms in ((0, OOM_EXIT, at_ms), (minutes_ago, START, at_ms + 2000)):
        if kind == OOM_EXIT and not is_kill:
            continue
        entity = name_container(page.plan, number, life)
        labels = {**dict(entity.labels), **dict(entity.details)}
        facts = {"memory_limit_bytes": 512 * 2.0**20} if kind == OOM_EXIT else {}
        base = {"scope": "container", "ids": list(entity.ids), "labels": labels, "facts": facts}
        events.append({"kind": kind, "at_ms": moment_ms, **base})
    return events


def tell_finding(page: NodePage) -> dict[str, object]:
    at = page.plan.to_ms / 1000 - 1200
    sentence = "shop/cache reaches its limit of 512 MiB in 2.1 h and is killed then: it holds 335 MiB and rises by 84 MiB/h."
    finding = NodeFinding(
        hexadecimal("finding", page.plan.node)[:12],
        "memory_leak/shop/cache",
        "memory_leak",
        "kill",
        "confirmed",
        page.plan.node,
        at - 3600,
        at - 1800,
        at,
        sentence,
        confirmed=at - 1500,
        namespace="shop",
        workload="cache",
        time_to_limit_seconds=7560.0,
    )
    labels = {"kind": finding.kind, "severity": finding.severity, "state": finding.state}
    facts = {FACT: json.dumps(finding.to_json())}
    base = {"scope": "node", "ids": [finding.id], "labels": labels, "facts": facts}
    return {"kind": FINDING, "at_ms": round(at * 1000), **base}


def write_node(plan: NodePlan) -> Path:
    """One node's folder: one file with its sidecar, and its minutes."""
    disk, folder = Disk(), DataFolder(plan.folder)
    identifier = clean_identifier(plan.node)
    disk.make_folder(folder.path)
    started = render_time(plan.from_ms * 1_000_000)
    write_session(
        disk,
        folder,
        Session(run_of(plan), identifier, started, plan.node, "bench", TICK_MS, 3600.0, "0", {}),
    )
    page = NodePage(plan)
    fill(page)
    partition = folder.partition(render_day(plan.from_ms), identifier)
    disk.make_folder(partition)
    ticks = page.ticks
    stamps = f"{render_stamp(int(ticks.time_ms[0]))}-{render_stamp(int(ticks.time_ms[-1]))}"
    subjects = dict(sorted(page.subjects.items()))
    head = begin_head(ticks, plan.node, partition, {run_of(plan): [[1, 1]]})
    events = sorted(page.events, key=lambda event: str(event["at_ms"]))
    outcomes = [(int(ticks.time_ms[0]), {"container": ["ok", ""]})]
    sidecar = Sidecar(head, (), tuple(subjects.values()), ticks, {}, events, outcomes)
    parts = gather_columns(page.columns, {identity: place for place, identity in enumerate(subjects)})
    write_file(disk, partition / f"consolidated-{stamps}{PARQUET}", sidecar, parts)
    renew_rollups(disk, folder, partition)
    return plan.folder


def write_cluster(
    folder: Path, nodes: int, containers: int, hours: float, to_ms: int, numbers: Sequence[int] = ()
) -> list[Path]:
    """A folder for each node; all end at the same moment, on one day."""
    from_ms = to_ms - round(hours * 3_600_000)
    plans = (
        NodePlan(folder / name_node(number), number, containers, from_ms, to_ms)
        for number in numbers or range(nodes)
    )
    return [write_node(plan) for plan in plans]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.cluster_nodes")
    parser.add_argument("folder", type=Path)
    parser.add_argument("nodes", type=int)
    parser.add_argument("--containers", type=int, default=8)
    parser.add_argument("--hours", type=float, default=1.0)
    parser.add_argument("--end", type=float, default=1_772_366_400.0, help="epoch seconds")
    given = parser.parse_args()
    write_cluster(given.folder, given.nodes, given.containers, given.hours, round(given.end * 1000))
    return 0


if __name__ == "__main__":
    sys.exit(main())
