"""
What PCM's columns say, as pairs that may be added up.

PCM reports each interval by itself: counts of the interval, and ratios that
cannot be averaged. A pair is (top, bottom) such that over any set of
intervals sum(top) / sum(bottom) is the answer: instructions and cycles,
misses and the seconds in which they were counted. A pair of which one half is
missing is not added at all, so a lost cell makes a window shorter, not wrong.

    work         instructions / cycles, as counted
    ipc          instructions / cycles; where PCM prints neither, IPC weighted by FREQ
    cache        (1 - L3HIT) weighted by L2MISS, which are the lookups of the L3
    frequency    CFREQ, or AFREQ times the time stamp counter, weighted by time
    memory       READ and WRITE, each and together
    c0 ... c7    share of the interval in a state, in seconds
"""

import re
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from nodescope.collect.sources.pcm.csv_stream import Cells, PcmHeader

Numbers = NDArray[np.float64]
Pairs = dict[str, tuple[Numbers, Numbers]]

LEVELS = ("system", "socket", "core")
STATES = ("c0", "c1", "c3", "c6", "c7")
# Which pairs a level has. Memory and energy are not counted per core.
CORE_PAIRS = ("work", "ipc", "cache", "l3_misses", "l2_misses", "frequency", *STATES)
SOCKET_PAIRS = (
    *CORE_PAIRS,
    "memory_read",
    "memory_written",
    "memory",
    "energy",
    "dram_energy",
)
PAIRS = {"system": SOCKET_PAIRS, "socket": SOCKET_PAIRS, "core": CORE_PAIRS}
# Pairs whose bottom is the interval itself, whatever is added up.
RATES = frozenset(
    {"l3_misses", "l2_misses", "memory_read", "memory_written", "memory", "energy", "dram_energy"}
)
# Pairs that are a mean over things, not a sum.
MEANS = frozenset({"frequency", *STATES})
GAUGES = ("thermal_headroom", "l3_occupancy")
# A printed 0.00 stands for anything below half of the last digit.
HALF_STEP = 0.005e6

_CORE = re.compile(r"Core(\d+) \(Socket\s*(-?\d+)\)")
_SOCKET = re.compile(r"Socket (\d+)")
_STATE_GROUP = re.compile(r"(System Core C-States|SKT(\d+) Core C-State)")
_SIDEWAYS = {"Proc Energy (Joules)": "PROC", "DRAM Energy (Joules)": "DRAM"}
_METRICS = (
    "INST",
    "ACYC",
    "IPC",
    "FREQ",
    "AFREQ",
    "CFREQ",
    "TIME(ticks)",
    "L3MISS",
    "L2MISS",
    "L3HIT",
    "READ",
    "WRITE",
    "PROC",
    "DRAM",
    "TEMP",
    "L3OCC",
    "Read",
    "Write",
    *(f"{state.upper()}res%" for state in STATES),
)


@dataclass(slots=True)
class PcmLevel:
    """The things of one level and, per metric, the place of each one's column; -1 for none."""

    names: list[str] = field(default_factory=list)
    sockets: dict[str, str] = field(default_factory=dict)
    """A core's socket."""
    places: dict[tuple[str, str], int] = field(default_factory=dict)

    def add(self, name: str, metric: str, place: int) -> None:
        if name not in self.names:
            self.names.append(name)
        self.places.setdefault((name, metric), place)

    def matrix(self) -> dict[str, NDArray[np.intp]]:
        return {
            metric: np.array([self.places.get((name, metric), -1) for name in self.names], dtype=np.intp)
            for metric in _METRICS
        }


@dataclass(eq=False)
class ColumnPlan:
    """Where a header has what; made once per header."""

    header: PcmHeader
    levels: dict[str, PcmLevel] = field(default_factory=dict)

    @cached_property
    def matrices(self) -> dict[str, dict[str, NDArray[np.intp]]]:
        return {name: level.matrix() for name, level in self.levels.items()}

    @cached_property
    def ticks_at(self) -> int:
        """Any TIME(ticks): every level has the same, for they cover the same time."""
        return next(
            (place for (_, metric), place in self.header.places.items() if metric == "TIME(ticks)"), -1
        )


def build_plan(header: PcmHeader) -> ColumnPlan:
    """Sort the columns by level and thing."""
    plan = ColumnPlan(header, {name: PcmLevel() for name in LEVELS})
    for (group, metric), place in header.places.items():
        _place_column(plan.levels, group, metric, place)
    for level in ("socket", "core"):
        plan.levels[level].names.sort(key=int)
    return plan


def _place_column(levels: dict[str, PcmLevel], group: str, metric: str, place: int) -> None:
    state = _STATE_GROUP.fullmatch(group)
    core = _CORE.fullmatch(group)
    socket = _SOCKET.fullmatch(group)
    if state:
        level, name = ("socket", state[2]) if state[2] else ("system", "system")
        levels[level].add(name, metric, place)
    elif core:
        levels["core"].add(core[1], metric, place)
        # -1 is a core that PCM could not pin itself to: its socket is not known.
        levels["core"].sockets.setdefault(core[1], "" if core[2] == "-1" else core[2])
    elif socket:
        levels["socket"].add(socket[1], metric, place)
    elif group in _SIDEWAYS and metric.startswith("SKT"):
        levels["socket"].add(metric.removeprefix("SKT"), _SIDEWAYS[group], place)
    elif group in ("System", "") and metric not in ("Date", "Time"):
        levels["system"].add("system", _SIDEWAYS.get(metric, metric), place)


def derive_pairs(plan: ColumnPlan, cells: Cells, seconds: float) -> dict[str, Pairs]:
    """Every level's pairs of one interval, in base units."""
    # The place -1 of a column that is not there finds this NaN.
    known = np.append(cells, np.nan)
    found = {
        level: _derive_level(matrix, known, seconds, PAIRS[level]) for level, matrix in plan.matrices.items()
    }
    found["system"] = _complete_system(plan, found, seconds)
    return found


def derive_gauges(plan: ColumnPlan, cells: Cells) -> dict[str, dict[str, Numbers]]:
    known = np.append(cells, np.nan)
    return {
        level: {"thermal_headroom": known[matrix["TEMP"]], "l3_occupancy": known[matrix["L3OCC"]] * 1024.0}
        for level, matrix in plan.matrices.items()
    }


def _derive_level(
    matrix: dict[str, NDArray[np.intp]], known: Cells, seconds: float, wanted: tuple[str, ...]
) -> Pairs:
    cell = {metric: known[places] for metric, places in matrix.items()}
    time = np.full(len(cell["IPC"]), seconds)
    ticks = cell["TIME(ticks)"] * 1e6
    l2_misses = cell["L2MISS"] * 1e6
    lookups = np.where(np.isnan(l2_misses), time, np.maximum(l2_misses, HALF_STEP))
    frequency = np.where(np.isnan(cell["CFREQ"]), cell["AFREQ"] * ticks, cell["CFREQ"] * 1e9 * seconds)
    # pcm writes gigabytes of the interval, pcm-memory megabytes per second.
    read = np.where(np.isnan(cell["READ"]), cell["Read"] * 1e6 * seconds, cell["READ"] * 1e9)
    written = np.where(np.isnan(cell["WRITE"]), cell["Write"] * 1e6 * seconds, cell["WRITE"] * 1e9)
    pairs: Pairs = {
        "work": (cell["INST"] * 1e6, cell["ACYC"] * 1e6),
        "ipc": _derive_ipc(matrix, cell, time),
        "cache": ((1 - np.minimum(cell["L3HIT"], 1.0)) * lookups, lookups),
        "l3_misses": (cell["L3MISS"] * 1e6, time),
        "l2_misses": (l2_misses, time),
        "frequency": (frequency, time),
        "memory_read": (read, time),
        "memory_written": (written, time),
        "memory": (read + written, time),
        "energy": (cell["PROC"], time),
        "dram_energy": (cell["DRAM"], time),
    }
    for state in STATES:
        pairs[state] = (cell[f"{state.upper()}res%"] / 100 * seconds, time)
    return {name: pairs[name] for name in wanted}


def _derive_ipc(
    matrix: dict[str, NDArray[np.intp]], cell: dict[str, Numbers], time: Numbers
) -> tuple[Numbers, Numbers]:
    """Counts; where a generation printed none for cores, what its ratios imply: FREQ is cycles by ticks."""
    has_counts = (matrix["INST"] >= 0) & (matrix["ACYC"] >= 0)
    cycles = cell["FREQ"] * cell["TIME(ticks)"] * 1e6
    weight = np.where(np.isnan(cycles), time, cycles)
    top = np.where(has_counts, cell["INST"] * 1e6, cell["IPC"] * weight)
    return top, np.where(has_counts, cell["ACYC"] * 1e6, weight)


def _complete_system(plan: ColumnPlan, found: dict[str, Pairs], seconds: float) -> Pairs:
    """The system's pairs; what was left out on the command line is added up from below."""
    if len(plan.levels["system"].names) and not any(
        np.isnan(top).all() for top, _ in found["system"].values()
    ):
        return found["system"]
    pairs: Pairs = {}
    for name in PAIRS["system"]:
        top, bottom = found["system"][name]
        if not len(top):
            top, bottom = np.array([np.nan]), np.array([np.nan])
        if not _has_column(plan, "system", name):
            top, bottom = _add_up(plan, found, name, seconds) or (top, bottom)
        pairs[name] = (top, bottom)
    return pairs


_NEEDS = {
    "work": ("INST",),
    "ipc": ("INST", "IPC"),
    "cache": ("L3HIT",),
    "l3_misses": ("L3MISS",),
    "l2_misses": ("L2MISS",),
    "frequency": ("CFREQ", "AFREQ"),
    "memory_read": ("READ", "Read"),
    "memory_written": ("WRITE", "Write"),
    "memory": ("READ", "Read"),
    "energy": ("PROC",),
    "dram_energy": ("DRAM",),
    **{state: (f"{state.upper()}res%",) for state in STATES},
}


def _has_column(plan: ColumnPlan, level: str, pair: str) -> bool:
    """Whether the level could have had it: a missing cell is not a missing column."""
    return any(
        (name, metric) in plan.levels[level].places
        for metric in _NEEDS[pair]
        for name in plan.levels[level].names
    )


def _add_up(
    plan: ColumnPlan, found: dict[str, Pairs], name: str, seconds: float
) -> tuple[Numbers, Numbers] | None:
    for level in ("socket", "core"):
        names = plan.levels[level].names
        # Chosen cores (-yc 7) do not speak for the whole system.
        is_whole = level == "socket" or [int(one) for one in names] == list(range(len(names)))
        if names and is_whole and name in found[level] and _has_column(plan, level, name):
            top, bottom = found[level][name]
            if name in MEANS:
                return np.array([top.mean()]), np.array([bottom.mean()])
            return np.array([top.sum()]), np.array([seconds]) if name in RATES else np.array([bottom.sum()])
    return None
