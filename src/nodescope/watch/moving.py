"""Means that forget: one of the last minute beside one of the last half hour."""

from dataclasses import dataclass
from math import exp, isnan, nan


@dataclass(slots=True)
class MovingMean:
    """An exponentially weighted mean over about so many seconds; NaN before the first value."""

    seconds: float
    value: float = nan

    def add(self, value: float, elapsed_seconds: float) -> float:
        """A value that was not measured changes nothing."""
        if isnan(value):
            return self.value
        if isnan(self.value):
            self.value = value
        else:
            weight = 1.0 - exp(-max(0.0, elapsed_seconds) / self.seconds)
            self.value += weight * (value - self.value)
        return self.value


@dataclass(slots=True)
class Held:
    """Since when a condition is true, with two thresholds: what hovers around one does not flap."""

    on: float
    off: float
    since: float | None = None

    def add(self, value: float, at: float) -> float | None:
        """Since when it holds; None while it does not."""
        if self.since is None and value >= self.on:
            self.since = at
        elif self.since is not None and value < self.off:
            self.since = None
        return self.since
