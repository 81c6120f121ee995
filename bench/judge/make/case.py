"""What every generated case has: values at an even step, and how a study is asked about them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from nodescope.use.studies import Series, StudyAnswer, run_study

FloatArray = NDArray[np.float64]
Random = np.random.Generator

# A Monday, 00:00 UTC: weekdays and hours of a generated day are what they seem.
START_AT = 1_699_833_600.0
MIB = float(2**20)


@dataclass(frozen=True)
class Case:
    values: FloatArray
    moves: bool = False
    """Whether a person would see a step, a leak, a staircase or a cycle: "stable" is false then."""
    step_seconds: float = 1.0
    limit: float | None = None
    unit: str = "cores"
    metric: str = "cpu"

    @property
    def times_at(self) -> FloatArray:
        return START_AT + self.step_seconds * np.arange(len(self.values), dtype=np.float64)

    @property
    def end_at(self) -> float:
        return float(self.times_at[-1])

    def series(self) -> Series:
        return Series(self.times_at, self.values, unit=self.unit, limit=self.limit, metric=self.metric)

    def ask(self, study: str, others: Sequence[Series] = ()) -> StudyAnswer:
        series = self.series()
        return run_study(study, series, [series, *others])


def random_of(seed: int, section: str, name: str, index: int) -> Random:
    """One stream for each case, so that neither the order nor the number of cases changes a case."""
    return np.random.default_rng([seed, crc32(f"{section}/{name}".encode()), index])


def pick(random: Random, low: float, high: float) -> float:
    return float(random.uniform(low, high))


def pick_log(random: Random, low: float, high: float) -> float:
    return float(np.exp(random.uniform(np.log(low), np.log(high))))


Noise = Callable[[Random, int], FloatArray]
