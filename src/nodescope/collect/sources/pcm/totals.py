"""
PCM's intervals added up into counters, and the tables they stand in.

Every pair of `columns` is two columns that only grow, so a window over
them is exact like any other: growth of the top by growth of the bottom. The
bottom of a rate is the seconds in which it was really counted, not the time
that went by. What was never measured is NaN, not 0.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from nodescope.base.block import Block, Table, Values
from nodescope.base.entity import Entity
from nodescope.base.metric import Metric
from nodescope.collect.sources.pcm import cell as pcm_cell
from nodescope.collect.sources.pcm import csv_stream as pcm_csv
from nodescope.collect.sources.pcm import interval as pcm_interval
from nodescope.collect.sources.pcm.columns import GAUGES, PAIRS, STATES, Numbers, Pairs

LINE_REASONS = (*pcm_csv.LINE_REASONS, *pcm_interval.REASONS)


@dataclass(frozen=True, slots=True)
class PairColumns:
    """How a pair is called in ring, archive and on /metrics."""

    top: str
    bottom: str
    published: str = ""
    """The top's published name behind the level's prefix; none keeps it in the ring."""
    help: str = ""
    published_bottom: str = ""
    unit: str = ""
    labels: tuple[tuple[str, str], ...] = ()


def _counted(name: str, published: str, sentence: str, unit: str = "") -> PairColumns:
    """What was counted, and the seconds in which it was."""
    return PairColumns(name, f"{name}.seconds", published, sentence, unit=unit)


def _state(name: str) -> PairColumns:
    return PairColumns(
        f"{name}.in_state",
        f"{name}.seconds",
        "cstate_seconds_total",
        "Time in a C-state, mean over cores, since the start of nodescope.",
        unit="seconds",
        labels=(("state", name.upper()),),
    )


COLUMNS = {
    "ipc": PairColumns("ipc.instructions", "ipc.cycles"),
    "work": PairColumns(
        "instructions",
        "cycles",
        "instructions_total",
        "{} since the start of nodescope, as pcm counts them.",
        "cycles_total",
    ),
    "cache": PairColumns("cache.missed", "cache.lookups"),
    "frequency": PairColumns("frequency.hertz_seconds", "frequency.seconds"),
    "memory": PairColumns("memory", "memory.seconds"),
    "memory_share": PairColumns("memory_share", "memory_share.capacity"),
    **{
        name: _counted(name, *rest)
        for name, *rest in (
            ("l3_misses", "l3_misses_total", "Misses of the L3 cache."),
            ("l2_misses", "l2_misses_total", "Misses of the L2 caches."),
            ("memory_read", "memory_read_bytes_total", "Bytes read from memory.", "bytes"),
            ("memory_written", "memory_written_bytes_total", "Bytes written to memory.", "bytes"),
            ("energy", "energy_joules_total", "Energy of the processors.", "joules"),
            ("dram_energy", "dram_energy_joules_total", "Energy of the memory.", "joules"),
        )
    },
    **{state: _state(state) for state in STATES},
}
GAUGE_COLUMNS = {
    "thermal_headroom": ("thermal_headroom_celsius", "celsius", "Degrees below the temperature limit."),
    "l3_occupancy": ("l3_occupancy_bytes", "bytes", "L3 cache in use."),
}
# The system's series carry no level in their names; the others do, so that a
# sum over one name never counts a thing twice.
PREFIXES = {"system": "pcm", "socket": "pcm_socket", "core": "pcm_core"}
TABLE_NAMES = {"system": "pcm", "socket": "pcm.socket", "core": "pcm.core"}


def _pair_metrics(prefix: str, published: str, columns: PairColumns) -> tuple[Metric, Metric]:
    def metric(word: str, name: str, sentence: str) -> Metric:
        return Metric(
            f"{prefix}.{word}",
            "counter",
            sentence or f"Sum of {word} for exact windows.",
            f"{published}_{name}" if name else None,
            unit=columns.unit,
            labels=columns.labels if name else (),
        )

    top_help = columns.help.format("Instructions retired")
    bottom_help = columns.help.format("Unhalted cycles") if columns.published_bottom else ""
    return (
        metric(columns.top, columns.published, top_help),
        metric(columns.bottom, columns.published_bottom, bottom_help),
    )


def _tallied(name: str, published: str, sentence: str, unit: str = "", **labels: str) -> Metric:
    fixed = tuple(labels.items())
    return Metric(f"pcm.{name}", "counter", sentence, f"pcm_{published}_total", unit=unit, labels=fixed)


# What could not be used, by reason: from the first row on, 0 included.
CELLS = "Cells of pcm that hold no measurement, by reason."
LINES = "Lines of pcm that were not used, by reason."
TALLIES = (
    _tallied("covered", "covered_seconds", "Time that the rows of pcm cover.", "seconds"),
    _tallied("rows", "rows", "Rows of pcm that were used."),
    _tallied("restarts", "restarts", "How often pcm was started again."),
    *(_tallied(f"cells.{word}", "cells_missing", CELLS, reason=word) for word in pcm_cell.REASONS),
    *(_tallied(f"lines.{word}", "lines_dropped", LINES, reason=word) for word in LINE_REASONS),
)


def _pairs_of(level: str) -> tuple[str, ...]:
    return (*PAIRS[level], "memory_share") if level == "system" else PAIRS[level]


def _make_table(level: str) -> Table:
    name, published = TABLE_NAMES[level], PREFIXES[level]
    metrics = [
        metric for pair in _pairs_of(level) for metric in _pair_metrics(name, published, COLUMNS[pair])
    ]
    if level != "system":
        metrics += [
            Metric(f"{name}.{gauge}", "gauge", sentence, f"{published}_{word}", unit=unit)
            for gauge, (word, unit, sentence) in GAUGE_COLUMNS.items()
        ]
    else:
        metrics += TALLIES
    return Table(name, "pcm", ("pcm",), tuple(metrics))


TABLES = {level: _make_table(level) for level in TABLE_NAMES}


def name_thing(level: str, name: str, socket: str) -> Entity:
    """A row's entity: the system, a socket or a core by the number Linux gives it."""
    if level == "system":
        return Entity("pcm", ("system",), (), (("level", "system"),))
    if level == "socket":
        return Entity("pcm", ("socket", name), (("socket", name),), (("level", "socket"),))
    return Entity("pcm", ("core", name), (("core", name), ("socket", socket)), (("level", "core"),))


@dataclass(slots=True)
class PairTotals:
    """One level: sums per thing and column, and which of them were ever measured."""

    level: str
    entities: tuple[Entity, ...] = ()
    sums: Values = field(default_factory=lambda: np.zeros((0, 0)))
    seen: np.ndarray = field(default_factory=lambda: np.zeros((0, 0), dtype=bool))
    gauges: dict[str, Numbers] = field(default_factory=dict)

    def arrange(self, entities: tuple[Entity, ...]) -> None:
        """Another set of things, as after a hotplug; who stays keeps its sums."""
        is_new = not self.sums.shape[1]
        if not is_new and [entity.key for entity in entities] == [entity.key for entity in self.entities]:
            return
        shape = (len(entities), 2 * len(_pairs_of(self.level)))
        sums, seen = np.zeros(shape), np.zeros(shape, dtype=bool)
        before = {entity.key: row for row, entity in enumerate(self.entities)}
        for row, entity in enumerate(entities):
            if entity.key in before:
                sums[row], seen[row] = self.sums[before[entity.key]], self.seen[before[entity.key]]
        self.entities, self.sums, self.seen, self.gauges = entities, sums, seen, {}

    def add(self, pairs: Pairs, *, is_counted: bool) -> None:
        """Both halves of each pair, or neither; an uncounted row only shows what is offered."""
        for number, name in enumerate(_pairs_of(self.level)):
            if name not in pairs:
                continue
            top, bottom = pairs[name]
            good = ~np.isnan(top) & ~np.isnan(bottom)
            for column, values in ((2 * number, top), (2 * number + 1, bottom)):
                self.seen[good, column] = True
                if is_counted:
                    self.sums[good, column] += values[good]

    def block(self, mono_ns: int, extra: Sequence[float] = ()) -> Block:
        table = TABLES[self.level]
        values = np.full((len(self.entities), len(table.metrics)), np.nan)
        width = self.sums.shape[1]
        values[:, :width] = np.where(self.seen, self.sums, np.nan)
        if self.level == "system":
            values[0, width:] = extra
        else:
            for number, gauge in enumerate(GAUGES):
                if gauge in self.gauges:
                    values[:, width + number] = self.gauges[gauge]
        return Block(table, self.entities, values, mono_ns)


@dataclass(slots=True)
class PcmTotals:
    """All levels, the tallies beside them, and the peak that bandwidth is held against."""

    peak_bytes_per_second: float | None = None
    """Configured; None takes the highest rate seen."""
    highest_bytes_per_second: float = 0.0
    covered_seconds: float = 0.0
    rows: int = 0
    restarts: int = 0
    missing: Counter[str] = field(default_factory=Counter)
    dropped: Counter[str] = field(default_factory=Counter)
    levels: dict[str, PairTotals] = field(
        default_factory=lambda: {level: PairTotals(level) for level in TABLES}
    )

    def arrange(self, things: dict[str, list[tuple[str, str]]]) -> None:
        """(name, socket) of the things of each level."""
        for level, names in things.items():
            self.levels[level].arrange(tuple(name_thing(level, name, socket) for name, socket in names))

    def add(self, pairs: dict[str, Pairs], seconds: float, *, is_counted: bool) -> None:
        pairs["system"]["memory_share"] = self._share(*pairs["system"]["memory"], is_counted=is_counted)
        for level, level_totals in self.levels.items():
            level_totals.add(pairs[level], is_counted=is_counted)
        if is_counted:
            self.covered_seconds += seconds
            self.rows += 1

    def _share(self, moved: Numbers, seconds: Numbers, *, is_counted: bool) -> tuple[Numbers, Numbers]:
        rate = float(moved[0] / seconds[0]) if is_counted and not np.isnan(moved[0]) else 0.0
        self.highest_bytes_per_second = max(self.highest_bytes_per_second, rate)
        peak = self.peak_bytes_per_second or self.highest_bytes_per_second
        return moved, seconds * peak

    def blocks(self, mono_ns: int) -> tuple[Block, ...]:
        extra = (
            self.covered_seconds,
            float(self.rows),
            float(self.restarts),
            *(float(self.missing[reason]) for reason in pcm_cell.REASONS),
            *(float(self.dropped[reason]) for reason in LINE_REASONS),
        )
        system = self.levels["system"].block(mono_ns, extra)
        others = [self.levels[level] for level in ("socket", "core")]
        return (system, *(level_totals.block(mono_ns) for level_totals in others if level_totals.entities))

    def describe_peak(self) -> str:
        """Which peak mem_bw_util is held against, for /status."""
        if self.peak_bytes_per_second:
            return f"mem_bw_util against the configured peak of {self.peak_bytes_per_second / 1e9:g} GB/s"
        if not self.highest_bytes_per_second:
            return ""
        return f"mem_bw_util against the highest seen, {self.highest_bytes_per_second / 1e9:.3g} GB/s"
