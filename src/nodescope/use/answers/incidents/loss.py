"""Who took what, and who lacked what: departures of every workload from its level, with their sizes."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from nodescope.use.answers.incidents.shift import Shift, average_steps, find_shifts
from nodescope.use.answers.incidents.signal import BY_NAME, LACKED, TAKEN, Signal
from nodescope.use.answers.incidents.table import Floats, NodeTable

# Who was there for less of the time has no level to depart from.
THERE_SHARE = 0.25
# Departures alike before and after: so many are its habit.
HABIT = 2
# What lost this share of its rate lacks the network, or the GPU; and the least that it lost.
FALLEN_SHARE = 0.3
NETWORK_REST = 2 * 2.0**20
GPU_REST = 0.05
# Where the kernel does not tell who waits (cgroup v1), less use is the sign of it.
SUBSTITUTES = {"pressure_cpu": "cpu", "pressure_io": "disk"}
# Of a workload that was asked about, this part of the least change counts: who asks has a reason to.
ASKED_REST = 0.4
# A departure that began so long before the span belongs to it: the span is where people looked.
EARLY_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Departure:
    """One workload's departure in one signal."""

    signal: str
    shift: Shift
    loss: float
    """Of what it lacks: 0 to 1. Of what it takes: the share of the node, where its size is known."""

    @property
    def row(self) -> int:
        return self.shift.row

    @property
    def news(self) -> float:
        """1: it never did so outside; a half for each time that it did."""
        return 0.5**self.shift.alike


def find_lacks(table: NodeTable) -> list[Departure]:
    """What workloads lack, largest first; habits are left out."""
    found = [one for signal in LACKED for one in find_lack(table, signal)]
    found += find_fallen(table, "network", NETWORK_REST)
    found += find_fallen(table, "gpu", GPU_REST)
    for pressure, taken in SUBSTITUTES.items():
        if pressure not in table.signals:
            found += find_fallen(table, taken, BY_NAME[taken].rest)
    return sorted(found, key=lambda one: -one.loss)


def find_slight(table: NodeTable, row: int) -> list[Departure]:
    """What one workload lacks, slight losses as well."""
    found = []
    for signal in LACKED:
        values = table.signals.get(signal.name)
        if values is not None:
            alone = np.where(np.arange(len(values))[:, None] == row, values, np.nan)
            found += find_lack(table, replace(signal, rest=ASKED_REST * signal.rest), alone)
    return found


def find_lack(table: NodeTable, signal: Signal, values: Floats | None = None) -> list[Departure]:
    values = table.signals.get(signal.name) if values is None else values
    if values is None:
        return []
    shifts = find_shifts(
        present(values), signal.rest, table.step_seconds, earliest(table), falls=signal.falls
    )
    return [
        Departure(signal.name, one, size_of(signal, one))
        for one in shifts
        if one.alike < HABIT and (not signal.falls or abs(one.size) >= 0.1 * abs(one.before))
    ]


def size_of(signal: Signal, shift: Shift) -> float:
    """As a share: of time, of what was there, or of what counts as everything."""
    size = abs(shift.size)
    if signal.falls:
        size = size / max(abs(shift.before), 1e-12)
    return min(1.0, size / signal.whole)


def earliest(table: NodeTable) -> int:
    return max(0, table.begin - round(EARLY_SECONDS / table.step_seconds))


def present(values: Floats) -> Floats:
    """Rows that were there long enough; the others as if never measured."""
    enough = np.isfinite(values).mean(axis=1) >= THERE_SHARE
    return np.where(enough[:, None], values, np.nan)


def find_fallen(table: NodeTable, signal: str, rest: float) -> list[Departure]:
    """What fell, wanted as before or not: only together with one that rose it means anything."""
    values = table.signals.get(signal)
    if values is None:
        return []
    shifts = find_shifts(present(values), rest, table.step_seconds, earliest(table), falls=True)
    return [
        Departure(signal, one, min(1.0, abs(one.size) / one.before))
        for one in shifts
        if one.before > 0 and abs(one.size) >= FALLEN_SHARE * one.before and one.alike < HABIT
    ]


def find_takers(table: NodeTable) -> list[Departure]:
    """Who took more than before; a workload that is not there takes nothing."""
    found = []
    for signal in TAKEN:
        if signal.name in table.signals:
            values = table.taken(signal.name)
            shifts = find_shifts(values, signal.rest, table.step_seconds, earliest(table))
            found += [Departure(signal.name, one, share_of(table, signal, one)) for one in shifts]
    return found


def share_of(table: NodeTable, signal: Signal, shift: Shift) -> float:
    whole = {"cpu": table.cores, "memory_anon": table.memory_bytes}.get(signal.name)
    return min(1.0, shift.size / whole) if whole else 0.0


def rises(table: NodeTable, signal: str, first: int, last: int) -> Floats:
    """How much more each workload took from `first` to `last` than in the minutes before."""
    values = table.taken(signal)
    back = max(6, min(120, last - first))
    before, after = values[:, max(0, first - back) : max(1, first - 1)], values[:, first:last]
    rise = average_steps(after, after.shape[1]) - average_steps(before, before.shape[1])
    return np.nan_to_num(rise[:, 0])


def unit_of(signal: str) -> str:
    return BY_NAME[signal].unit


def of_row(departures: Sequence[Departure], row: int, *signals: str) -> list[Departure]:
    return [one for one in departures if one.row == row and (not signals or one.signal in signals)]
