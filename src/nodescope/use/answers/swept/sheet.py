"""
Plain metrics of every life of a node in equal steps: one sweep for all of them.

Counters have their exact mean rate in each step, gauges one look a step;
NaN is nothing measured. Steps of a minute or more are read from rollups.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from nodescope.base.metric_names import PERIODS, THROTTLED, USAGE
from nodescope.base.time_range import TimeRange
from nodescope.use.answers.containers import Life
from nodescope.use.answers.incidents.signal import MIB, Signal
from nodescope.use.answers.incidents.table import Floats, NodeTable, WorkloadRow, count_steps, read_signals
from nodescope.use.answers.ranked.recorded import SAMPLE_MS
from nodescope.use.answers.refusal import bad_request
from nodescope.use.answers.snapshots import ServedNode, View

# The names are those of panels. `rest` is the least change that means anything: below it is the
# noise of an idle container.
SWEPT = (
    Signal("cpu", "CPU", "cores", "rate", (USAGE,), 0.05),
    Signal("memory", "memory", "bytes", "value", ("memory.current",), 16 * MIB),
    Signal("pressure_cpu", "CPU pressure", "ratio", "rate", ("cpu.pressure.some.total",), 0.02, join="max"),
    Signal(
        "pressure_memory",
        "memory pressure",
        "ratio",
        "rate",
        ("memory.pressure.some.total",),
        0.02,
        join="max",
    ),
    Signal("pressure_io", "I/O pressure", "ratio", "rate", ("io.pressure.some.total",), 0.02, join="max"),
    Signal("cpu_throttled", "throttled periods", "ratio", "part", (THROTTLED, PERIODS), 0.04, join="max"),
    Signal("disk_read", "disk reads", "bytes/s", "rate", ("io.stat.rbytes",), 2 * MIB),
    Signal("disk_write", "disk writes", "bytes/s", "rate", ("io.stat.wbytes",), 2 * MIB),
    Signal(
        "network_receive",
        "network receipt",
        "bytes/s",
        "rate",
        ("pod.network.receive_bytes",),
        2 * MIB,
        scope="pod",
    ),
    Signal(
        "network_transmit",
        "network sending",
        "bytes/s",
        "rate",
        ("pod.network.transmit_bytes",),
        2 * MIB,
        scope="pod",
    ),
    Signal("threads", "threads", "count", "value", ("pids.current",), 10.0),
)
BY_NAME: Mapping[str, Signal] = {one.name: one for one in SWEPT}
# A shorter step has no second sample to take a rate from.
STEP_LEAST_MS = 2_000
MINUTE_MS = 60_000


def choose_signal(metric: str) -> Signal:
    found = BY_NAME.get(metric)
    if found is None:
        raise bad_request(f"{metric} is not read for all containers at once; accepted: {', '.join(BY_NAME)}")
    return found


def choose_step(span: TimeRange, points: int) -> int:
    """So long that there are at most so many; from a minute on whole minutes, which rollups have."""
    step_ms = max(STEP_LEAST_MS, -(-(span.to_ms - span.from_ms) // max(1, points)))
    unit_ms = 1000 if step_ms <= MINUTE_MS else MINUTE_MS
    return -(-step_ms // unit_ms) * unit_ms


def cover_steps(span: TimeRange, step_ms: int) -> TimeRange:
    """Whole steps since the epoch: the curves of several nodes have the same times."""
    start_ms = span.from_ms - span.from_ms % step_ms
    return TimeRange(start_ms, start_ms - (start_ms - span.to_ms) // step_ms * step_ms)


@dataclass(frozen=True, slots=True)
class LifeSheet:
    """Every life of a node in equal steps: by metric a row for each life, and how much of each step it was there."""

    node: str
    lives: Sequence[Life]
    start_ms: int
    step_ms: int
    steps: int
    curves: Mapping[str, Floats]
    """Lives x steps; a metric that nobody measured is not here."""
    presence: Floats
    """Lives x steps, from 0 to 1."""

    def add_up(self, signal: Signal, rows: Sequence[int]) -> Floats:
        """
        These lives together, step by step.

        A life counts by the part of the step in which it was there: of a crash
        loop several lives are in one step. Shares of time are not added: the largest counts.
        """
        mine = self.curves[signal.name][rows]
        known = np.isfinite(mine)
        if signal.join == "max":
            found = np.where(known, mine, -np.inf).max(axis=0, initial=-np.inf)
        else:
            # A pod's counters go on while its containers are replaced.
            weight = self.presence[rows] if signal.scope == "container" else 1.0
            found = (np.where(known, mine, 0.0) * weight).sum(axis=0)
        together: Floats = np.where(known.any(axis=0), found, np.nan)
        return together

    def add_up_to(self, steps: int, signal: Signal, rows: Sequence[int]) -> Floats:
        """The same, for an axis of so many steps."""
        found = self.add_up(signal, rows)[:steps]
        return np.pad(found, (0, steps - len(found)), constant_values=np.nan)


def sweep_lives(
    view: View,
    node: ServedNode,
    span: TimeRange,
    step_ms: int,
    lives: Sequence[Life],
    signals: Sequence[Signal],
) -> LifeSheet:
    """The rate up to the first sample of the span needs the one before it: a step more is read."""
    reach = TimeRange(span.from_ms - step_ms, span.to_ms)
    there = [life for life in lives if life.node == node.name and life.is_within(reach)]
    table = NodeTable(
        node.name, [WorkloadRow(life.id, [life]) for life in there], reach.from_ms, step_ms, 1, {}
    )
    read_signals(table, view, node, reach, signals)
    curves = {name: values[:, 1:] for name, values in table.signals.items()}
    steps = count_steps(reach, step_ms) - 1
    presence = measure_presence(there, span.from_ms, step_ms, steps)
    return LifeSheet(node.name, there, span.from_ms, step_ms, steps, curves, presence)


def measure_presence(lives: Sequence[Life], start_ms: int, step_ms: int, steps: int) -> Floats:
    begins = start_ms + step_ms * np.arange(steps, dtype=np.float64)
    first = np.array([[life.first_ms] for life in lives], np.float64).reshape(-1, 1)
    last = np.array([[life.last_ms + SAMPLE_MS] for life in lives], np.float64).reshape(-1, 1)
    there = np.minimum(begins + step_ms, last) - np.maximum(begins, first)
    share: Floats = np.clip(there / step_ms, 0.0, 1.0)
    return share
