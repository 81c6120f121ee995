"""
Memory bandwidth for each core of a workload, from what the whole node moved.

PCM counts the bytes of a socket, not of a pod. But which workloads are busy changes all
the time, and the node's bandwidth follows those that use it:

    bandwidth of the node  =  sum over workloads of  cores in use * GB/s for each core

The factors are the least-squares solution over the last hours, older samples counting less.
It begins at the node's own mean for each core: a workload that was never busy alone, or by
itself busier or calmer, is not told apart from the others.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from nodescope.base.block import Floats

# Half of a sample's weight is gone after six hours of samples every 20 s.
KEPT_RATIO = 0.5 ** (1 / 1080)
# How many samples of one core the node's mean counts for.
PRIOR = 6.0
# Samples of one core from which on a workload's own factor is told.
LEAST_SEEN = 30.0
ROUNDS = 4


@dataclass(slots=True)
class BandwidthSplit:
    """A row and a column for each workload; bounded by who calls."""

    _names: list[str] = field(default_factory=list)
    _products: Floats = field(default_factory=lambda: np.zeros((0, 0)))
    _moved: Floats = field(default_factory=lambda: np.zeros(0))
    _cores: float = 0.0
    _total: float = 0.0

    def observe(self, cores: Mapping[str, float], moved: float) -> None:
        """`cores` in use by workload, what belongs to none among them; GB/s of the node at the time."""
        for name in cores:
            if name not in self._names:
                self._grow(name)
        row = np.array([cores.get(name, 0.0) for name in self._names])
        self._products = self._products * KEPT_RATIO + np.outer(row, row)
        self._moved = self._moved * KEPT_RATIO + row * moved
        self._cores = self._cores * KEPT_RATIO + float(row.sum())
        self._total = self._total * KEPT_RATIO + moved

    def forget(self, name: str) -> None:
        if name in self._names:
            place = self._names.index(name)
            self._names.pop(place)
            self._products = np.delete(np.delete(self._products, place, 0), place, 1)
            self._moved = np.delete(self._moved, place)

    def solve(self) -> dict[str, float]:
        """GB/s for each core, of the workloads that were seen long enough; never below 0."""
        if self._cores <= 0:
            return {}
        mean = self._total / self._cores
        factors = self._fit(mean)
        seen = np.diagonal(self._products)
        return {
            name: float(factor)
            for name, factor, enough in zip(self._names, factors, seen >= LEAST_SEEN)
            if enough
        }

    def _fit(self, mean: float) -> Floats:
        """Whatever would be negative is 0, and the others are fitted without it."""
        used = np.ones(len(self._names), bool)
        factors = np.zeros(len(self._names))
        for _ in range(ROUNDS):
            products = self._products[np.ix_(used, used)] + PRIOR * np.eye(int(used.sum()))
            factors[:] = 0.0
            factors[used] = np.linalg.solve(products, self._moved[used] + PRIOR * mean)
            if (factors >= 0).all():
                break
            used &= factors > 0
        return np.maximum(factors, 0.0)

    def _grow(self, name: str) -> None:
        self._names.append(name)
        self._products = np.pad(self._products, (0, 1))
        self._moved = np.pad(self._moved, (0, 1))
