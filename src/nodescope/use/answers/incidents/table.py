"""
The node as a table: for every signal one row per workload and one column per step of some seconds.

What a workload takes is the sum over its containers; 0 while it has none and the
node was recorded (`taken`). What it lacks is that of its worst container. NaN is
nothing measured.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from nodescope.base.time_range import TimeRange
from nodescope.read.query.file_sweep import Sought, Thinned
from nodescope.read.query.sweep import Names, sweep_metrics, sweep_node
from nodescope.use.answers.containers import Life
from nodescope.use.answers.incidents.signal import LACKED, NODE_BANDWIDTH, TAKEN, Signal
from nodescope.use.answers.snapshots import ServedNode, View

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]
MEMORY = ("memory.MemAvailable", "memory.MemTotal")
IO_WAIT, RUN_QUEUE = "cpu.iowait", "schedstat.waiting"
# A counter that was not read for longer, or for two steps where these are longer, has no rate between.
GAP_SECONDS = 60.0
# So many are put into the table at once: some MiB, whatever the node and the span.
BLOCK_SAMPLES = 65_536


@dataclass(slots=True)
class WorkloadRow:
    """One workload of the table."""

    name: str
    lives: list[Life]


@dataclass(slots=True)
class NodeTable:
    """Everything that was measured, from some time before the span to its end."""

    node: str
    rows: list[WorkloadRow]
    start_ms: int
    step_ms: int
    begin: int
    """The step at which the span begins; before it is history."""
    signals: dict[str, Floats]
    """By name: workloads x steps. A signal that nobody measured is not here."""
    cores: float | None = None
    memory_bytes: float | None = None
    bandwidth: Floats | None = None
    """Bytes per second between caches and memory, of the node."""
    available: Floats | None = None
    """Share of the node's memory that is available."""
    io_wait: Floats | None = None
    """Share of the cores' time in which a task of theirs waited for a disk; read where no pressure tells more."""
    run_queue: Floats | None = None
    """Tasks that waited for a core, on each core; read where no pressure tells which containers waited."""
    gpus: dict[int, frozenset[str]] = field(default_factory=dict)
    """By row: the GPUs on which its processes ran."""

    @property
    def steps(self) -> int:
        return next(iter(self.signals.values())).shape[1] if self.signals else 0

    @property
    def step_seconds(self) -> float:
        return self.step_ms / 1000

    def time_of(self, step: int) -> int:
        return self.start_ms + step * self.step_ms

    def is_recorded(self) -> Flags:
        """Of each step whether anything was measured; nothing while the agent was away, or its file is lost."""
        recorded = np.zeros(self.steps, np.bool_)
        for values in self.signals.values():
            recorded |= np.isfinite(values).any(axis=0)
        for whole in (self.bandwidth, self.available, self.io_wait, self.run_queue):
            if whole is not None:
                recorded |= np.isfinite(whole)
        return recorded

    def taken(self, signal: str) -> Floats:
        """A workload that is not there takes nothing; what it took while nothing was recorded is not known."""
        return np.where(self.is_recorded(), np.nan_to_num(self.signals[signal]), np.nan)


def group_rows(lives: Sequence[Life], key: Callable[[Life], str]) -> list[WorkloadRow]:
    rows: dict[str, list[Life]] = {}
    for life in sorted(lives, key=lambda one: one.first_ms):
        rows.setdefault(key(life), []).append(life)
    return [WorkloadRow(name, mine) for name, mine in sorted(rows.items())]


def read_table(
    view: View, node: ServedNode, span: TimeRange, begin_ms: int, step_ms: int, rows: list[WorkloadRow]
) -> NodeTable:
    """The span begins at `begin_ms`; what is before it is history."""
    table = NodeTable(node.name, rows, span.from_ms, step_ms, (begin_ms - span.from_ms) // step_ms, {})
    steps = count_steps(span, step_ms)
    read_signals(table, view, node, span, (*TAKEN, *LACKED))
    table.bandwidth = read_bandwidth(view, node, span, step_ms, steps)
    table.available = read_available(view, node, span, step_ms, steps)
    if "pressure_io" not in table.signals:
        table.io_wait = read_cores(view, node, IO_WAIT, span, step_ms, steps)
    if "pressure_cpu" not in table.signals:
        table.run_queue = read_cores(view, node, RUN_QUEUE, span, step_ms, steps)
    return table


def count_steps(span: TimeRange, step_ms: int) -> int:
    return max(1, -(-(span.to_ms - span.from_ms) // step_ms))


def read_signals(
    table: NodeTable, view: View, node: ServedNode, span: TimeRange, signals: Sequence[Signal]
) -> None:
    """Fills the table, which begins and ends with the span."""
    rows, step_ms, steps = table.rows, table.step_ms, count_steps(span, table.step_ms)
    places = {
        life.subject.label("l_container_id") or life.id: place
        for place, row in enumerate(rows)
        for life in row.lives
    }
    scopes = {"container": places, "pod": place_by(rows, "l_pod_uid"), "service": place_by(rows, "l_service")}
    for scope, where in scopes.items():
        # Services have the files of containers.
        wanted = [one for one in signals if one.scope == ("container" if scope == "service" else scope)]
        inputs = {one.name: choose_names(node, one) for one in wanted}
        names = list(dict.fromkeys(name for mine in inputs.values() for name in mine))
        if where and names:
            sought = Sought(names, scope, span, step_ms)
            fill_table(table, view, node, sought, ScopeSignals(wanted, inputs, where, steps))


def place_by(rows: Sequence[WorkloadRow], label: str) -> dict[str, int]:
    labelled = ((life.subject.label(label), place) for place, row in enumerate(rows) for life in row.lives)
    return {word: place for word, place in labelled if word}


def choose_names(node: ServedNode, signal: Signal) -> tuple[str, ...]:
    """The raw names of its inputs that this node has; nothing where one is lacking."""
    found = [next((name for name in names if name in node.metrics), "") for names in signal.raw_names()]
    if signal.form == "part" and not all(found):
        return ()
    return tuple(name for name in found if name)


@dataclass(frozen=True, slots=True)
class ScopeSignals:
    """What is read of one scope, and where it goes."""

    signals: Sequence[Signal]
    inputs: Mapping[str, tuple[str, ...]]
    """By a signal's name: the raw names that this node has of it."""
    where: Mapping[str, int]
    """By the name of a series: the row of its workload."""
    steps: int


def fill_table(table: NodeTable, view: View, node: ServedNode, sought: Sought, scope: ScopeSignals) -> None:
    """Metric by metric: the samples of all of them together would be several times the table."""
    size = (len(table.rows), scope.steps)
    curves: dict[tuple[str, str], Floats] = {}
    series = Names()
    for name, samples in sweep_metrics(view.engine, node.catalog, node.tail, sought, series):
        rows = np.array([scope.where.get(word, -1) for word in series.words], np.int64)
        for signal in scope.signals:
            if samples is not None and name in scope.inputs[signal.name]:
                curves[signal.name, name] = make_curves(
                    table, signal, samples, rows, size, node.metrics[name].scale
                )
        # Not beside those of the next metric.
        del samples
    for signal in scope.signals:
        keys = ((signal.name, name) for name in scope.inputs[signal.name])
        mine = [curves.pop(key) for key in keys if key in curves]
        # A part of something that has no sample here is not known.
        if mine and (signal.form != "part" or len(mine) == len(signal.inputs)):
            found = combine(signal, mine)
            known = table.signals.get(signal.name)
            table.signals[signal.name] = found if known is None else merge(known, found)


def make_curves(
    table: NodeTable, signal: Signal, samples: Thinned, rows: Integers, size: tuple[int, int], scale: float
) -> Floats:
    """One input of a signal, workload by workload; block by block, for of a day each array of all samples is large."""
    is_sum = signal.join == "sum" or signal.form == "part"
    put = np.add.at if is_sum else np.maximum.at
    found = np.full(size[0] * size[1], 0.0 if is_sum else -np.inf)
    is_measured = np.zeros(len(found), bool)
    for block in cut_blocks(samples, is_rate=signal.form != "value"):
        series, time_ms, value = block if signal.form == "value" else derive_rates(block, table.step_seconds)
        row = rows[series]
        step = (time_ms - table.start_ms) // table.step_ms
        # A minute that begins in the last step may end behind it: added to that step it would count twice.
        there = (row >= 0) & (step < size[1]) & np.isfinite(value)
        place = row[there] * size[1] + step[there]
        put(found, place, value[there] * scale)
        is_measured[place] = True
    found[~is_measured] = np.nan
    curves: Floats = found.reshape(size)
    return spread_back(curves, round(signal.pace_seconds * 1000 / table.step_ms))


def cut_blocks(samples: Thinned, *, is_rate: bool) -> Iterator[Thinned]:
    """Of a rate each begins with the last sample of the one before."""
    for first in range(0, len(samples.time_ms), BLOCK_SAMPLES):
        rows = slice(max(0, first - is_rate), first + BLOCK_SAMPLES)
        yield Thinned(samples.series[rows], samples.time_ms[rows], samples.value[rows])


def spread_back(curves: Floats, steps: int) -> Floats:
    """What is read seldom holds for the steps since the reading before, `steps` of them at the most."""
    for _ in range(steps - 1):
        later = np.column_stack([curves[:, 1:], np.full(len(curves), np.nan)])
        curves = np.where(np.isnan(curves), later, curves)
    return curves


def derive_rates(samples: Thinned, step_seconds: float) -> Thinned:
    """Of counters: the increase per second up to each sample that has one before it."""
    series, time_ms, value = samples
    longest = max(GAP_SECONDS, 2 * step_seconds)
    elapsed, grown = np.diff(time_ms) / 1000, np.diff(value)
    good = (series[1:] == series[:-1]) & (elapsed > 0) & (elapsed <= longest) & (grown >= 0)
    return Thinned(series[1:][good], time_ms[1:][good], grown[good] / elapsed[good])


def combine(signal: Signal, curves: Sequence[Floats]) -> Floats:
    if signal.form == "part":
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.where(curves[1] > 0, curves[0] / curves[1], np.nan)
    found = curves[0]
    for other in curves[1:]:
        found = np.where(np.isnan(found), other, np.where(np.isnan(other), found, found + other))
    return found


def merge(known: Floats, found: Floats) -> Floats:
    return np.where(np.isnan(known), found, known)


def read_available(view: View, node: ServedNode, span: TimeRange, step_ms: int, steps: int) -> Floats | None:
    names = [name for name in MEMORY if name in node.metrics]
    if len(names) < len(MEMORY):
        return None
    sweep = sweep_node(view.engine, node.catalog, node.tail, Sought(names, "node", span, step_ms))
    if any(name not in sweep.samples for name in names):
        return None
    left, total = (sweep.samples[name] for name in MEMORY)
    found = np.full(steps, np.nan)
    step = np.minimum((left.time_ms - span.from_ms) // step_ms, steps - 1)
    found[step] = left.value / float(np.median(total.value))
    return found


def read_cores(
    view: View, node: ServedNode, metric: str, span: TimeRange, step_ms: int, steps: int
) -> Floats | None:
    """A counter's mean rate over the cores; one that dips, as I/O wait may, has no rate there."""
    if metric not in node.metrics:
        return None
    sweep = sweep_node(view.engine, node.catalog, node.tail, Sought([metric], "cpu", span, step_ms))
    if metric not in sweep.samples:
        return None
    series, time_ms, rate = derive_rates(sweep.samples[metric], step_ms / 1000)
    step = np.minimum((time_ms - span.from_ms) // step_ms, steps - 1)
    total = np.bincount(step, rate * node.metrics[metric].scale, steps)
    count = np.bincount(step, minlength=steps)
    return np.divide(total, count, out=np.full(steps, np.nan), where=count > 0) if len(series) else None


def read_bandwidth(view: View, node: ServedNode, span: TimeRange, step_ms: int, steps: int) -> Floats | None:
    """Of the whole node, as pcm counts it."""
    if not all(name in node.metrics for name in NODE_BANDWIDTH):
        return None
    scope = next(iter(node.scopes.get(NODE_BANDWIDTH[0], ("pcm",))))
    sweep = sweep_node(view.engine, node.catalog, node.tail, Sought(NODE_BANDWIDTH, scope, span, step_ms))
    bytes_, seconds = (sweep.samples.get(name) for name in NODE_BANDWIDTH)
    if bytes_ is None or seconds is None or len(bytes_.value) != len(seconds.value):
        return None
    moved, covered = np.diff(bytes_.value), np.diff(seconds.value)
    good = (covered > 0) & (moved >= 0)
    found = np.full(steps, np.nan)
    step = np.minimum((bytes_.time_ms[1:][good] - span.from_ms) // step_ms, steps - 1)
    found[step] = moved[good] / covered[good] * node.metrics[NODE_BANDWIDTH[0]].scale
    return found
