"""
Series that no file has: derived from the newest blocks, at the edge.

What is kept is raw; these are for dashboards that ask by name.
"""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from nodescope.base.block import Block, Table, Values
from nodescope.base.cgroup_metrics import list_raw_names
from nodescope.base.entity import NODE, Entity
from nodescope.base.metric import Metric
from nodescope.hold.feature import GPUS, NOT_IDLE
from nodescope.hold.ring import Moment, Ring
from nodescope.hold.window import align_rows, take_feature
from nodescope.publish.health_score import HealthInputs, derive_health_score

# Long enough that a single tick's jitter does not show, short enough that a
# scheduler sees a burst: five intervals.
UTILIZATION_INTERVALS = 5

NODE_TABLE = Table(
    "derived.node",
    "node",
    ("node",),
    (
        Metric(
            "derived.cpu_utilization_ratio",
            "gauge",
            "Share of all cores' time that was not idle, over the last five intervals.",
            "node_cpu_utilization_ratio",
            unit="ratio",
        ),
        Metric(
            "derived.health_score",
            "gauge",
            "Headroom of the node from 0 (saturated) to 10 (idle).",
            "node_health_score",
        ),
    ),
)
# One object for ever: another one would make every scrape render all labels again.
NODE_ENTITIES = (NODE,)
WORKING_SET = Metric(
    "derived.memory_working_set",
    "gauge",
    "Memory in use that cannot be dropped at once: usage less inactive page cache.",
    "container_memory_working_set_bytes",
    unit="bytes",
    plain="memory_working_set",
)
LAST_SEEN = Metric(
    "derived.last_seen",
    "gauge",
    "When the container was last sampled, as epoch seconds.",
    "container_last_seen",
)
STARTED = Metric(
    "derived.started",
    "gauge",
    "When the container's cgroup was made, as epoch seconds.",
    "container_start_time_seconds",
    unit="seconds",
)
CONTAINER_TABLE = Table(
    "derived.container", "container", ("container", "service"), (WORKING_SET, LAST_SEEN, STARTED)
)
LEVELS = "container_level"
USAGE = Metric(
    "derived.memory_usage",
    "gauge",
    "Memory in use, page cache included.",
    "container_memory_usage_bytes",
    unit="bytes",
)
LEVEL_TABLE = Table(
    "derived.level", LEVELS, ("pod", "device"), (USAGE, replace(WORKING_SET, plain=None), LAST_SEEN, STARTED)
)
# Usage and inactive page cache of v2, then of v1.
WORKING_SET_INPUTS = tuple(zip(list_raw_names("memory.current"), list_raw_names("memory.stat.inactive_file")))
LEVEL_INPUTS = ("memory.current", "memory.stat.inactive_file", "memory.stat.anon", "memory.stat.file")
GPU_COLUMN = "gpu.utilization"


def derive_edge(ring: Ring, latest: Mapping[str, Moment]) -> list[Block]:
    """The derived blocks of a tick."""
    newest = ring.newest()
    at_ns = newest.at_ns if newest else 0
    blocks = (derive_node(ring, latest), derive_containers(latest, at_ns), derive_levels(latest))
    return [block for block in blocks if block]


def derive_node(ring: Ring, latest: Mapping[str, Moment]) -> Block | None:
    newest = ring.newest()
    if newest is None:
        return None
    utilization = derive_cpu_utilization(ring, newest.mono_ns)
    score = derive_health_score(gather_health_inputs(latest, utilization))
    values = [np.nan if value is None else value for value in (utilization, score)]
    return Block(NODE_TABLE, NODE_ENTITIES, np.array([values]), newest.mono_ns)


def derive_cpu_utilization(ring: Ring, now_mono_ns: int) -> float | None:
    span_ns = round(UTILIZATION_INTERVALS * ring.interval_seconds * 1e9)
    taken = take_feature(NOT_IDLE, *ring.moments(NOT_IDLE.table, now_mono_ns - span_ns, now_mono_ns))
    return None if isinstance(taken, str) else taken.mean


def read_cell(latest: Mapping[str, Moment], table: str, column: str) -> float | None:
    """One number of the node's own row; None when it was not measured."""
    moment = latest.get(table)
    if moment is None or column not in moment.block.table.columns or not len(moment.block.values):
        return None
    value = float(moment.block.values[0, moment.block.table.columns[column]])
    return None if np.isnan(value) else value


def gather_health_inputs(latest: Mapping[str, Moment], utilization: float | None) -> HealthInputs:
    cores = latest["cpu.cpu"].block.entities if "cpu.cpu" in latest else ()
    load = read_cell(latest, "cpu", "cpu.load_1m")
    available = read_cell(latest, "memory", "memory.MemAvailable")
    total = read_cell(latest, "memory", "memory.MemTotal")
    return HealthInputs(
        cpu_utilization_ratio=utilization,
        load_per_core=load / len(cores) if load is not None and cores else None,
        cpu_pressure_percent=read_cell(latest, "pressure", "pressure.cpu.some.avg10"),
        memory_available_ratio=available / total if available is not None and total else None,
        memory_pressure_percent=read_cell(latest, "pressure", "pressure.memory.some.avg10"),
        gpu_utilization_ratio=mean_gpu_utilization(latest),
    )


def mean_gpu_utilization(latest: Mapping[str, Moment]) -> float | None:
    """Over the GPUs of all vendors that measured it; None where none did."""
    measured: list[float] = []
    for vendor in GPUS:
        moment = latest.get(vendor)
        if moment is not None and GPU_COLUMN in moment.block.table.columns:
            column = moment.block.values[:, moment.block.table.columns[GPU_COLUMN]]
            measured += column[~np.isnan(column)].tolist()
    return sum(measured) / len(measured) / 100 if measured else None


def derive_containers(latest: Mapping[str, Moment], at_ns: int) -> Block | None:
    """Working set, the moment of this sample and the start of each container."""
    main = latest.get("container")
    if main is None:
        return None
    block = main.block
    seen = np.full(len(block.entities), float(at_ns // 10**9))
    columns = (derive_working_set(latest, block), seen, read_starts(block.entities))
    return Block(CONTAINER_TABLE, block.entities, np.column_stack(columns), block.mono_ns)


def derive_levels(latest: Mapping[str, Moment]) -> Block | None:
    """The same of pods and slices. The root of v2 has no memory.current: it is what is in use by anybody."""
    moment = latest.get(LEVELS)
    if moment is None:
        return None
    block = moment.block
    used, idle, anonymous, cached = (pick_level(block, name) for name in LEVEL_INPUTS)
    missing = np.where(np.isnan(used), anonymous + cached, np.nan)
    working = np.maximum(np.where(np.isnan(used), missing, used) - idle, 0.0)
    seen = np.full(len(used), float(moment.at_ns // 10**9))
    columns = (missing, working, seen, read_starts(block.entities))
    return Block(LEVEL_TABLE, block.entities, np.column_stack(columns), block.mono_ns)


def pick_level(block: Block, v2_name: str) -> Values:
    """A number of either version of cgroups, by its name in v2."""
    result = np.full(len(block.entities), np.nan)
    for name in list_raw_names(v2_name):
        column = block.table.columns.get(name.replace("cgroup.", "level.", 1))
        if column is not None:
            result = np.where(np.isnan(result), block.values[:, column], result)
    return result


def read_starts(entities: tuple[Entity, ...]) -> Values:
    """They are text in the entity, as all that does not change."""
    starts = [entity.attribute("started") for entity in entities]
    return np.array([float(start) if start else np.nan for start in starts])


def derive_working_set(latest: Mapping[str, Moment], block: Block) -> Values:
    """Usage less inactive file pages, never below zero, as cAdvisor has it."""
    result = np.full(len(block.entities), np.nan)
    stat = latest.get("container.memory_stat")
    if stat is None:
        return result
    inactive = align_rows(stat.block, block.entities)
    for used_name, inactive_name in WORKING_SET_INPUTS:
        if used_name in block.table.columns and inactive_name in stat.block.table.columns:
            used = block.values[:, block.table.columns[used_name]]
            idle = inactive[:, stat.block.table.columns[inactive_name]]
            found = np.maximum(used - idle, 0.0)
            result = np.where(np.isnan(result), found, result)
    return result
