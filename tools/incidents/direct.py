"""A generated node as the table that is made of its archive, without writing one."""

from collections.abc import Mapping

import numpy as np
from tools.incidents.archive import END_MS, GPU, NODE, describe
from tools.incidents.machine import Floats, Wish
from tools.incidents.stories import Generated

from nodescope.keep.label_columns import describe_entity
from nodescope.use.answers.containers import Life, make_life
from nodescope.use.answers.incidents.happened import Kill
from nodescope.use.answers.incidents.signal import LACKED, TAKEN, Signal
from nodescope.use.answers.incidents.table import NodeTable, WorkloadRow

NAMES = {"disk_operations": "ios", "disk": "disk"}


def make_table(node: Generated) -> tuple[NodeTable, list[Kill]]:
    step_ms = round(node.step_seconds * 1000)
    start_ms = END_MS - node.steps * step_ms
    rows: dict[str, list[tuple[Wish, Life]]] = {}
    kills = []
    for place, wish in enumerate(node.wishes):
        subject = describe_entity(describe(wish, place), NODE, start_ms + wish.first * step_ms)
        subject.last_ms = start_ms + (wish.last - 1) * step_ms
        rows.setdefault(f"shop/{wish.workload}", []).append((wish, make_life(subject, NODE)))
    ordered = sorted(rows.items())
    table = NodeTable(
        NODE,
        [WorkloadRow(name, [life for _, life in many]) for name, many in ordered],
        start_ms,
        step_ms,
        node.lead,
        {},
    )
    for signal in (*TAKEN, *LACKED):
        values = [join(signal, [wish for wish, _ in many], node) for _, many in ordered]
        found = np.stack(values)
        if np.isfinite(found).any():
            table.signals[signal.name] = found
    table.cores, table.memory_bytes = node.machine.cores, node.machine.memory_bytes
    table.available = np.asarray(node.curves["available"])
    table.io_wait = None if node.has_pressure else np.asarray(node.curves["io_wait"])
    table.run_queue = None if node.has_pressure else np.asarray(node.curves["run_queue"])
    users = {
        place for place, (_, many) in enumerate(ordered) if any(wish.gpu is not None for wish, _ in many)
    }
    table.gpus = dict.fromkeys(users, frozenset({GPU}))
    table.bandwidth = np.asarray(node.curves["memory_bandwidth"])
    for place, (_, many) in enumerate(ordered):
        for wish, life in many:
            if wish.ends_in_oom:
                kills.append(Kill(place, start_ms + wish.last * step_ms, life, wish.limit_bytes))
    return table, kills


def join(signal: Signal, wishes: list[Wish], node: Generated) -> Floats:
    total = np.full(node.steps, np.nan)
    for wish in wishes:
        values = curve_of(signal, wish.got, node)
        if values is None:
            continue
        here = total[wish.first : wish.last]
        known = np.isfinite(here)
        joined = np.maximum(here, values) if signal.join == "max" or signal.form == "part" else here + values
        total[wish.first : wish.last] = np.where(known, joined, values)
    return total


def curve_of(signal: Signal, got: Mapping[str, Floats], node: Generated) -> Floats | None:
    if signal.name.startswith("pressure_") and not node.has_pressure:
        return None
    if signal.name in ("instructions_per_cycle", "cache_misses") and not node.has_counters:
        return None
    if signal.name == "instructions_per_cycle":
        return got["instructions"] / np.maximum(got["cycles"], 1.0)
    return got.get(NAMES.get(signal.name, signal.name))
