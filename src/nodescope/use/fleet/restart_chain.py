"""
Containers of one workload on one node that replaced each other, as one series.

A container that starts when another of the same workload has ended replaces
it: memory before and after a new image is one series, though of two containers.
The pause between them is removed, so that the study sees a step and not a gap;
its findings get their real times back. A container that was never replaced is
a chain of its own, and its answer is that of the study on one node.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from nodescope.use.answers.findings import make_series
from nodescope.use.answers.timeseries import MeasuredSeries
from nodescope.use.fleet.workload import Owner
from nodescope.use.studies.series import FloatArray, Series

# Within this time an image is pulled and a container started; a later one is no replacement.
HANDOVER_MS = 300_000


@dataclass(slots=True)
class RestartChain:
    """Containers that replaced each other, in order of time."""

    lines: list[MeasuredSeries]
    owners: list[Owner]

    @property
    def end_ms(self) -> int:
        return int(self.lines[-1].points.time_ms[-1])


def link_restarts(lines: Sequence[tuple[Owner, MeasuredSeries]]) -> list[RestartChain]:
    """Each line continues the chain of its workload that ended last before the line starts."""
    chains: dict[str, list[RestartChain]] = {}
    for owner, line in sorted(lines, key=lambda one: int(one[1].points.time_ms[0])):
        start_ms = int(line.points.time_ms[0])
        open_chains = [
            chain
            for chain in chains.setdefault(owner.workload, [])
            if 0 < start_ms - chain.end_ms <= HANDOVER_MS and line.subject.label("l_container_id")
        ]
        if open_chains:
            chain = max(open_chains, key=lambda one: one.end_ms)
            chain.lines.append(line)
            chain.owners.append(owner)
        else:
            chains[owner.workload].append(RestartChain([line], [owner]))
    return [chain for group in chains.values() for chain in group]


@dataclass(frozen=True, slots=True)
class JoinedSeries:
    """A chain as one series without pauses, and the real times of its samples."""

    series: Series
    real_at: FloatArray

    def real_time(self, at: float) -> float:
        place = min(int(np.searchsorted(self.series.times_at, at)), len(self.real_at) - 1)
        return float(self.real_at[place])


def join_series(chain: RestartChain, metric: str, unit: str) -> JoinedSeries:
    parts = [line.points.time_ms / 1000.0 for line in chain.lines]
    values = np.concatenate([line.points.mean for line in chain.lines])
    real_at = np.concatenate(parts)
    steps = np.diff(real_at)
    usual = float(np.median(steps)) if len(steps) else 1.0
    closed = 0.0
    shifted: list[Any] = [parts[0]]
    for before, after in pairwise(parts):
        closed += max(0.0, float(after[0] - before[-1]) - usual)
        shifted.append(after - closed)
    last = make_series(chain.lines[-1], metric, unit, None)
    return JoinedSeries(replace(last, times_at=np.concatenate(shifted), values=values), real_at)
