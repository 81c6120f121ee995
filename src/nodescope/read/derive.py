"""
From raw samples to what was asked: rates, shares, differences, chunk by chunk.

A chunk is the samples of one series in one stretch of time. What a form needs
from the chunk before (the last sample of a counter, the last known limit) is
carried, so that the border between two files is no border in the answer.
"""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from nodescope.base.metric import Metric
from nodescope.base.plain import Form
from nodescope.base.rates import derive_increase

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]
# A counter's growth over a longer hole is known, but not when it happened.
GAP_NS = 120_000_000_000


@dataclass(frozen=True, slots=True)
class Chunk:
    """Samples in order of the monotonic clock. An infinite value means unlimited."""

    time_ms: Integers
    mono_ns: Integers
    value: Floats


NOTHING = Chunk(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))


@dataclass(slots=True)
class Growth:
    """A counter's increase and the seconds it took, sample by sample."""

    metric: Metric
    _last: Chunk | None = None

    def take(self, chunk: Chunk) -> tuple[Floats, Floats]:
        """(increase, elapsed seconds) at every sample; NaN at the first, at resets and after holes."""
        if not len(chunk.value):
            return np.empty(0), np.empty(0)
        before = self._last
        value, mono = chunk.value, chunk.mono_ns
        if before is not None:
            value = np.concatenate([before.value, value])
            mono = np.concatenate([before.mono_ns, mono])
        self._last = Chunk(chunk.time_ms[-1:], chunk.mono_ns[-1:], chunk.value[-1:])
        with np.errstate(invalid="ignore"):
            increase = derive_increase(value, self.metric)
        elapsed_ns = np.diff(mono)
        good = (elapsed_ns > 0) & (elapsed_ns <= GAP_NS)
        elapsed = np.where(good, elapsed_ns / 1e9, np.nan)
        increase = np.where(good, increase, np.nan)
        if before is None:
            first = np.array([np.nan])
            return np.concatenate([first, increase]), np.concatenate([first, elapsed])
        return increase, elapsed


@dataclass(slots=True)
class Known:
    """The last known value of a slower input."""

    _last: float = np.nan

    def at(self, mono_ns: Integers, chunk: Chunk) -> Floats:
        """At each moment the newest value that was known then."""
        values = np.concatenate([[self._last], chunk.value])
        places = np.searchsorted(chunk.mono_ns, mono_ns, side="right")
        if len(chunk.value):
            self._last = float(chunk.value[-1])
        known: Floats = values[places]
        return known


@dataclass(slots=True)
class Deriver:
    """One form for one series."""

    form: Form
    metrics: tuple[Metric, ...]
    factor: float = 1.0
    _growth: list[Growth] = field(default_factory=list)
    _known: list[Known] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._growth = [Growth(metric) for metric in self.metrics]
        self._known = [Known() for _ in self.metrics]

    def take(self, chunks: tuple[Chunk, ...]) -> tuple[Integers, Floats]:
        """Times and values of the answer for one stretch."""
        first = chunks[0]
        scale = self.metrics[0].scale * self.factor
        with np.errstate(invalid="ignore", divide="ignore"):
            value = self._derive(chunks) * scale
        return first.time_ms, value

    def _derive(self, chunks: tuple[Chunk, ...]) -> Floats:
        first = chunks[0]
        if self.form == "value":
            return first.value
        if self.form == "rate":
            increase, elapsed = self._growth[0].take(first)
            return increase / elapsed
        if self.form == "left":
            other = self._known[1].at(first.mono_ns, chunks[1])
            return np.maximum(first.value - other, 0.0)
        if self.form == "share":
            limit = self._known[1].at(first.mono_ns, chunks[1])
            return self._of_limit(first.value, limit)
        if self.form == "rate_share":
            increase, elapsed = self._growth[0].take(first)
            quota = self._known[1].at(first.mono_ns, chunks[1])
            period = self._known[2].at(first.mono_ns, chunks[2])
            return self._of_limit(increase / elapsed, quota / period)
        part, _ = self._growth[0].take(first)
        whole, _ = self._growth[1].take(self._align(first, chunks[1]))
        return np.where(whole > 0, part / whole, np.nan)

    @staticmethod
    def _of_limit(value: Floats, limit: Floats) -> Floats:
        """Without a limit there is no share of it."""
        return np.where(np.isfinite(limit) & (limit > 0), value / limit, np.nan)

    @staticmethod
    def _align(first: Chunk, other: Chunk) -> Chunk:
        """The other counter at the first one's moments: both are read in one tick."""
        places = np.searchsorted(other.mono_ns, first.mono_ns)
        value = np.full(len(first.value), np.nan)
        inside = places < len(other.value)
        hit = inside.copy()
        hit[inside] = other.mono_ns[places[inside]] == first.mono_ns[inside]
        value[hit] = other.value[places[hit]]
        return Chunk(first.time_ms, first.mono_ns, value)
