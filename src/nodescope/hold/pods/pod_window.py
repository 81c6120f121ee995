"""
The last seconds of every pod of the node: mean, p95 and highest value of what an autoscaler asks for.

    cpu              cores, its containers added up tick by tick
    memory           bytes in use, added up likewise
    cpu_contention   share of time in which some task of a container waited for a CPU that
                     others had: pressure with throttling by its own quota taken out
    cpu_throttled    share of time in which its quota held a container back
    mem_pressure, io_pressure   as the kernel tells them
    gpu_util         mean over the GPUs that its processes use

Of shares the largest among a pod's containers counts. What was not measured
for a pod is not among its numbers: never 0.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from nodescope.base.block import Floats
from nodescope.base.cgroup_metrics import list_raw_names
from nodescope.hold.pods.contention import derive_contention, derive_throttled
from nodescope.hold.pods.gpu import take_gpu_values
from nodescope.hold.pods.grid import TableGrid, take_grid
from nodescope.hold.pods.identity import KnownRows, PodIdentity, PodRows
from nodescope.hold.pods.spread import WindowSpread, spread_columns
from nodescope.hold.ring import Ring

CPU, MEMORY = "cpu.stat.usage_usec", "memory.current"
THROTTLED, HELD = "cpu.stat.throttled_usec", "cpu.stat.nr_throttled"
WAITING = {
    "cpu_contention": "cpu.pressure.some.total",
    "mem_pressure": "memory.pressure.some.total",
    "io_pressure": "io.pressure.some.total",
}

# Adapters ask every few seconds, and containers change less often.
KNOWN = KnownRows()


@dataclass(slots=True)
class PodWindow:
    """One pod's numbers."""

    identity: PodIdentity
    metrics: dict[str, WindowSpread] = field(default_factory=dict)


@dataclass
class PodLook:
    """One look at the ring: each table is taken out once."""

    ring: Ring
    after_ns: int
    until_ns: int
    found: dict[str, PodWindow] = field(default_factory=dict)
    known: KnownRows = field(default_factory=lambda: KNOWN)
    _grids: dict[str, TableGrid | None] = field(default_factory=dict)

    @classmethod
    def back(cls, ring: Ring, seconds: float, now_mono_ns: int) -> "PodLook":
        return cls(ring, now_mono_ns - round(seconds * 1e9), now_mono_ns)

    def find(self, v2_name: str) -> tuple[TableGrid, int] | None:
        """The table that has a number of the cgroup, and its column."""
        for table in self.ring.tables("container"):
            for name in list_raw_names(v2_name):
                if name in table.columns and (grid := self.take(table.name)):
                    return grid, table.columns[name]
        return None

    def take(self, table: str) -> TableGrid | None:
        if table not in self._grids:
            self._grids[table] = take_grid(self.ring, table, self.after_ns, self.until_ns)
        return self._grids[table]

    def growth(self, v2_name: str) -> tuple[TableGrid, Floats] | None:
        """Of a counter, and the grid it is of; None where nothing was measured twice."""
        found = self.find(v2_name)
        if found is None or len(found[0].moments) < 2:
            return None
        grid, column = found
        return grid, grid.growth(column, grid.table.metrics[column])

    @cached_property
    def throttled(self) -> tuple[TableGrid, Floats] | None:
        """The share of each interval in which a container's quota held it back."""
        seconds, periods = self.growth(THROTTLED), self.growth(HELD)
        if seconds is None or periods is None or seconds[0] is not periods[0]:
            return None
        grid = seconds[0]
        return grid, derive_throttled(seconds[1], periods[1], grid.elapsed_seconds()[:, None])

    def rows(self, grid: TableGrid) -> PodRows:
        """Which rows are whose."""
        return self.known.find(grid.entities)

    def put(
        self, name: str, identities: Sequence[PodIdentity], values: Floats, weights: Floats | None = None
    ) -> None:
        self.put_all((name,), identities, values, weights)

    def put_all(
        self,
        names: Sequence[str],
        identities: Sequence[PodIdentity],
        values: Floats,
        weights: Floats | None = None,
    ) -> None:
        """Columns are the pods of the first name, then those of the second, and so on."""
        spreads = iter(spread_columns(values, weights))
        for name in names:
            for identity, spread in zip(identities, spreads):
                if spread is not None:
                    self._find_pod(identity).metrics[name] = spread

    def _find_pod(self, identity: PodIdentity) -> PodWindow:
        pod = self.found.get(identity.uid)
        if pod is None:
            pod = self.found[identity.uid] = PodWindow(identity)
        return pod


def take_pod_windows(look: PodLook) -> list[PodWindow]:
    """Every pod that has a container now, and something measured in the window."""
    add_cpu(look)
    add_memory(look)
    add_shares(look)
    for identity, values in take_gpu_values(look.ring, look.after_ns, look.until_ns):
        if identity.uid in look.found:
            look.put("gpu_util", (identity,), values[:, None])
    return list(look.found.values())


def add_cpu(look: PodLook) -> None:
    if used := look.growth(CPU):
        grid, grown = used
        rows, elapsed = look.rows(grid), grid.elapsed_seconds()
        was_there = grid.was_there()
        # A container that was not there used nothing; one that was and has no number makes the sum unknown.
        sums = rows.add(np.where(was_there, grown, 0.0))
        known = rows.largest(was_there.astype(np.float64)) > 0
        look.put("cpu", rows.pods, np.where(known, sums, np.nan) / elapsed[:, None], elapsed)


def add_memory(look: PodLook) -> None:
    if held := look.find(MEMORY):
        grid, column = held
        rows, there = look.rows(grid), grid.is_there()
        sums = rows.add(np.where(there, grid.values(column), 0.0))
        known = rows.largest(there.astype(np.float64)) > 0
        look.put("memory", rows.pods, np.where(known, sums, np.nan))


def add_shares(look: PodLook) -> None:
    """Shares of one table have the same intervals: their spreads are found in one go."""
    found: dict[int, dict[str, Floats]] = {}
    grids: dict[int, TableGrid] = {}
    for name, grid, shares in take_shares(look):
        grids[id(grid)] = grid
        found.setdefault(id(grid), {})[name] = look.rows(grid).largest(shares)
    for number, by_name in found.items():
        pods = look.rows(grids[number]).pods
        look.put_all(list(by_name), pods, np.hstack(list(by_name.values())))


def take_shares(look: PodLook) -> Iterator[tuple[str, TableGrid, Floats]]:
    """What each container waited for, by interval."""
    for name, column in WAITING.items():
        if waited := look.growth(column):
            grid, grown = waited
            shares = np.minimum(grown / grid.elapsed_seconds()[:, None], 1.0)
            if name == "cpu_contention":
                shares = derive_contention(shares, match_throttled(look.throttled, grid))
            yield name, grid, shares
    if look.throttled is not None:
        yield "cpu_throttled", *look.throttled


def match_throttled(throttled: tuple[TableGrid, Floats] | None, grid: TableGrid) -> Floats:
    """For the same intervals and rows; without a quota nothing is held back."""
    if throttled is None or throttled[0] is not grid:
        return np.zeros((len(grid.moments) - 1, len(grid.entities)))
    return np.nan_to_num(throttled[1])
