"""
One look at the node: every container as a few numbers, the node's own, and what happened since the last look.

Counters become rates between two looks, so a look costs the same however
many ticks lie between. A number that was not measured is NaN.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite, nan
from typing import NamedTuple

import numpy as np

from nodescope.base.block import Block, Floats
from nodescope.base.cgroup_metrics import list_raw_names
from nodescope.base.entity import Entity
from nodescope.base.frame import Event, Outcome
from nodescope.base.workload import find_workload
from nodescope.hold.pods.grid import find_places
from nodescope.hold.ring import Moment
from nodescope.watch.sighting import FindingSubject

# Of the table `container`: what it counts -> the number of a cgroup.
COUNTERS = {
    "cpu": "cpu.stat.usage_usec",
    "periods": "cpu.stat.nr_periods",
    "throttled": "cpu.stat.nr_throttled",
    "wait_cpu": "cpu.pressure.some.total",
    "wait_io": "io.pressure.some.total",
    "wait_memory": "memory.pressure.some.total",
    "read": "io.stat.rbytes",
    "written": "io.stat.wbytes",
    "kills": "memory.events.oom_kill",
}
# What cannot be given back under pressure, and its limit.
SIZES = {
    "anon": ("container.memory_stat", "memory.stat.anon"),
    "shmem": ("container.memory_stat", "memory.stat.shmem"),
    "kernel": ("container.memory_stat", "memory.stat.kernel"),
    "limit": ("container.limits", "memory.max"),
    "quota": ("container.limits", "cpu.max.quota"),
    "period": ("container.limits", "cpu.max.period"),
}
RESOURCES = ("cpu", "io", "memory")
# File systems in memory, of images, and those that are always full.
NO_DISKS = frozenset(
    {"tmpfs", "ramfs", "devtmpfs", "squashfs", "overlay", "iso9660", "erofs", "cramfs", "udf"}
)
GPU_SOURCES = ("nvidia", "amd")
# Kinds of workloads that nobody waits for.
JOBS = frozenset({"Job", "CronJob", "Jobs"})


class ContainerLook(NamedTuple):
    """A container over the time since the last look; rates are a second, waits and shares between 0 and 1."""

    key: tuple[str, ...]
    entity: Entity
    cpu: float
    """Cores."""
    throttled: float
    """Share of its periods in which the quota ran out; 0 without a quota."""
    wait_cpu: float
    wait_io: float
    wait_memory: float
    disk: float
    """Bytes read and written."""
    kills: float
    held: float
    """Bytes that cannot be given back: page cache is not among them."""
    limit: float
    """Of memory; infinite where there is none."""
    quota: float
    """Cores; infinite where there is none."""


@dataclass(frozen=True, slots=True)
class DiskLook:
    """A file system of the node."""

    mountpoint: str
    size: float
    available: float


@dataclass(frozen=True, slots=True)
class NodeLook:
    """Everything that detectors see."""

    at: float
    """Epoch seconds."""
    seconds: float
    """Since the last look."""
    containers: Sequence[ContainerLook]
    wait: Mapping[str, float]
    """By resource: the share of time in which somebody on the node waited."""
    cores: int
    memory_bytes: float
    available_bytes: float
    disks: Sequence[DiskLook] = ()
    gpus: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """By source, for those that are ok: the devices there are."""
    outcomes: Mapping[str, Outcome] = field(default_factory=dict)
    events: Sequence[Event] = ()


@dataclass(slots=True)
class CounterMemory:
    """The counters of a table at the last look."""

    block: Block | None = None
    values: Floats = field(default_factory=lambda: np.zeros((0, 0)))

    def rates(self, block: Block, values: Floats) -> tuple[Floats, float]:
        """Growth a second since the last look, and how long that is; NaN where there is nothing to compare with."""
        before, self.block = self.block, block
        earlier, self.values = self.values, values
        if before is None or block.mono_ns <= before.mono_ns:
            return np.full(values.shape, nan), nan
        places = find_places(before, block.entities)
        if places is not None:
            picked = np.full(values.shape, nan)
            picked[places >= 0] = earlier[places[places >= 0]]
            earlier = picked
        seconds = (block.mono_ns - before.mono_ns) / 1e9
        grown = values - earlier
        # A smaller counter is a reset.
        return np.where(grown >= 0, grown, nan) / seconds, seconds


@dataclass(slots=True)
class Eyes:
    """Makes looks of the ring's newest moments."""

    node: str = ""
    _containers: CounterMemory = field(default_factory=CounterMemory)
    _pressure: CounterMemory = field(default_factory=CounterMemory)

    def look(
        self,
        at: float,
        latest: Mapping[str, Moment],
        outcomes: Mapping[str, Outcome],
        events: Sequence[Event] = (),
    ) -> NodeLook:
        containers, seconds = self._see_containers(latest)
        memory = latest.get("memory")
        cores = latest.get("cpu.cpu")
        return NodeLook(
            at,
            seconds,
            containers,
            self._see_waiting(latest),
            len(cores.block.entities) if cores else 0,
            read_cell(memory.block, "memory.MemTotal") if memory else nan,
            read_cell(memory.block, "memory.MemAvailable") if memory else nan,
            list_disks(latest),
            list_gpus(latest, outcomes),
            outcomes,
            events,
        )

    def _see_containers(self, latest: Mapping[str, Moment]) -> tuple[list[ContainerLook], float]:
        moment = latest.get("container")
        if moment is None:
            return [], nan
        block = moment.block
        counted = np.column_stack([read_column(block, name) for name in COUNTERS.values()])
        rates, seconds = self._containers.rates(block, counted)
        rate = dict(zip(COUNTERS, rates.T))
        size = {name: read_beside(latest, block, *where) for name, where in SIZES.items()}
        held = size["anon"] + np.nan_to_num(size["shmem"]) + np.nan_to_num(size["kernel"])
        with np.errstate(divide="ignore", invalid="ignore"):
            throttled = np.where(rate["periods"] > 0, rate["throttled"] / rate["periods"], 0.0)
            quota = size["quota"] / size["period"]
        waits = [np.minimum(rate[f"wait_{resource}"], 1.0) for resource in RESOURCES]
        columns = (
            rate["cpu"],
            np.minimum(throttled, 1.0),
            *waits,
            np.nan_to_num(rate["read"]) + np.nan_to_num(rate["written"]),
            # A count again: 1 / s * s may be a little less than 1.
            np.rint(rate["kills"] * seconds),
            held,
            size["limit"],
            quota,
        )
        rows = np.column_stack(columns).tolist()
        found = [ContainerLook(entity.key, entity, *row) for entity, row in zip(block.entities, rows)]
        return [one for one in found if one.entity.scope == "container"], seconds

    def _see_waiting(self, latest: Mapping[str, Moment]) -> dict[str, float]:
        moment = latest.get("pressure")
        if moment is None:
            return {}
        names = [f"pressure.{resource}.some.total" for resource in RESOURCES]
        values = np.array([[read_cell(moment.block, name) for name in names]])
        rates, _ = self._pressure.rates(moment.block, values)
        return {name: min(rate, 1.0) for name, rate in zip(RESOURCES, rates[0].tolist()) if isfinite(rate)}


def read_column(block: Block, v2_name: str) -> Floats:
    """A number of all rows in its base unit, from whichever version of cgroups has it."""
    found = np.full(len(block.entities), nan)
    for name in list_raw_names(v2_name):
        column = block.table.columns.get(name)
        if column is not None:
            values = block.values[:, column] * block.table.metrics[column].scale
            found = np.where(np.isnan(found), values, found)
    return found


def read_beside(latest: Mapping[str, Moment], block: Block, table: str, v2_name: str) -> Floats:
    """A column of another table, in the order of this block's rows."""
    moment = latest.get(table)
    if moment is None:
        return np.full(len(block.entities), nan)
    values = read_column(moment.block, v2_name)
    places = find_places(moment.block, block.entities)
    if places is None:
        return values
    picked = np.full(len(places), nan)
    picked[places >= 0] = values[places[places >= 0]]
    return picked


def read_cell(block: Block, name: str, row: int = 0) -> float:
    column = block.table.columns.get(name)
    if column is None or row >= len(block.entities):
        return nan
    return float(block.values[row, column]) * block.table.metrics[column].scale


def list_disks(latest: Mapping[str, Moment]) -> list[DiskLook]:
    """One for each device: a second mount of it has the same room."""
    moment = latest.get("filesystem")
    found: dict[str, DiskLook] = {}
    for row, entity in enumerate(moment.block.entities if moment else ()):
        if moment is None or entity.attribute("fstype") in NO_DISKS:
            continue
        size = read_cell(moment.block, "filesystem.size", row)
        available = read_cell(moment.block, "filesystem.available", row)
        mountpoint = entity.attribute("mountpoint") or "/".join(entity.ids)
        if read_cell(moment.block, "filesystem.readonly", row) == 1:
            # Nobody can fill it.
            continue
        if size > 0 and isfinite(available):
            found.setdefault(entity.attribute("device") or mountpoint, DiskLook(mountpoint, size, available))
    return list(found.values())


def list_gpus(latest: Mapping[str, Moment], outcomes: Mapping[str, Outcome]) -> dict[str, frozenset[str]]:
    found = {}
    for source in GPU_SOURCES:
        moment, outcome = latest.get(source), outcomes.get(source)
        if moment and outcome and outcome.state == "ok":
            found[source] = frozenset("/".join(entity.ids) for entity in moment.block.entities)
    return found


def describe_subject(entity: Entity, node: str = "") -> FindingSubject:
    """Whom people mean by a container: its workload first."""
    return describe_labels({**dict(entity.details), **dict(entity.labels)}, entity.ids, node)


def describe_labels(known: Mapping[str, str], ids: Sequence[str], node: str = "") -> FindingSubject:
    """The same of an event, which has labels and details in one."""
    namespace, pod = known.get("namespace", ""), known.get("pod", "")
    container, identity = known.get("container", ""), known.get("container_id") or (ids[0] if ids else "")
    workload = known.get("workload") or ""
    if not workload:
        made = find_workload(
            namespace=namespace,
            pod=pod,
            container=container,
            image=known.get("image", ""),
            node=node,
            owner=known.get("owner", ""),
            container_id=identity,
        )
        workload = made.name
    uid = known.get("pod_uid", "")
    return FindingSubject(namespace, workload, pod, container, identity, pod_uid=uid)
