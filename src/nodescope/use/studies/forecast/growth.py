"""
The shapes that growth may have: a line, a line that began within the span, and growth that gets slower.

Each shape is a few columns over the span (0 at its start, 1 at its end); how
much of each column there is follows from the data (evidence.py).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from nodescope.use.studies.forecast.wave import Wave
from nodescope.use.studies.series import FloatArray

Kind = Literal["flat", "line", "bend", "step", "slowing", "day"]
Column = Callable[[FloatArray], FloatArray]

# Where within the span growth may have begun or a level may have changed; closer together at its
# end, where the same part of the span is more of what grew.
BENDS = (*(place / 20 for place in range(3, 15)), *(place / 40 for place in range(29, 38)))

# Time constants of growth that ends, as shares of the span.
TIME_CONSTANTS = (0.1, 0.2, 0.4, 0.8, 1.6)

# The same beside a season, of which each costs more.
WAVE_BENDS = (0.25, 0.4, 0.55, 0.7)
WAVE_CONSTANTS = (0.2, 0.8)

HOUR_SECONDS, DAY_SECONDS = 3600.0, 86400.0

# How likely each kind is before anything was seen.
PRIOR = {"flat": 0.25, "line": 0.3, "bend": 0.12, "step": 0.1, "slowing": 0.18, "day": 0.05}


@dataclass(frozen=True)
class Growth:
    """One shape: its columns, at shares of the span that may lie beyond its end, and the season beside it."""

    kind: Kind
    columns: tuple[Column, ...]
    wave: Wave | None = None
    start: float = 0.0
    """Of a bend or a step."""

    def at(self, places: FloatArray) -> FloatArray:
        """Of the growth alone."""
        made = [np.ones_like(places), *(column(places) for column in self.columns)]
        return np.stack(made, axis=1)

    def in_buckets(self, places: FloatArray) -> FloatArray:
        """Growth and season, as means of buckets around the places."""
        if self.wave is None:
            return self.at(places)
        return np.concatenate((self.at(places), self.wave.at(places, 1.0 / len(places))), axis=1)

    @property
    def width(self) -> int:
        """Columns beside the level."""
        return len(self.columns) + (2 * self.wave.harmonics if self.wave else 0)


def steady_shapes() -> list[Growth]:
    made = [Growth("flat", ()), Growth("line", (line,))]
    made += [bent(start, rises_before) for rises_before in (True, False) for start in BENDS]
    made += [Growth("step", (step(start),)) for start in BENDS]
    made += [Growth("step", (line, step(start))) for start in BENDS]
    made += [Growth("slowing", (saturation(constant),)) for constant in TIME_CONSTANTS]
    return [*made, Growth("slowing", (np.sqrt,)), Growth("slowing", (logarithm,))]


def bent(start: float, rises_before: bool) -> Growth:
    return Growth("bend", (line, bend(start)) if rises_before else (bend(start),), start=start)


def day_shapes(span_seconds: float) -> list[Growth]:
    """A part of the day's course, while less than two days were seen. Of less than an hour of it, a line is left."""
    return [Growth("day", day(span_seconds))] if HOUR_SECONDS <= span_seconds < 2 * DAY_SECONDS else []


def few_shapes(latest: float) -> list[Growth]:
    """Of a path that is known at a few places only, up to the latest bend that they show."""
    slowing = [Growth("slowing", (saturation(constant),)) for constant in TIME_CONSTANTS]
    bends = [bent(start, rises_before=False) for start in BENDS[::3] if start <= latest]
    return [Growth("flat", ()), Growth("line", (line,)), *bends, *slowing]


def wave_shapes(wave: Wave) -> list[Growth]:
    """The shapes that a season may have beside it."""
    bends = [Growth("bend", (bend(start),), wave) for start in WAVE_BENDS]
    slowing = [Growth("slowing", (saturation(constant),), wave) for constant in WAVE_CONSTANTS]
    return [Growth("flat", (), wave), Growth("line", (line,), wave), *bends, *slowing]


def line(places: FloatArray) -> FloatArray:
    return places


def bend(start: float) -> Column:
    return lambda places: np.maximum(places - start, 0.0)


def step(start: float) -> Column:
    return lambda places: np.where(places > start, 1.0, 0.0)


def saturation(constant: float) -> Column:
    return lambda places: -np.expm1(-places / constant)


def logarithm(places: FloatArray) -> FloatArray:
    return np.log1p(10 * places)


def day(span_seconds: float) -> tuple[Column, ...]:
    turns = 2 * np.pi * span_seconds / DAY_SECONDS
    return (lambda places: np.sin(turns * places), lambda places: np.cos(turns * places))


def log_prior(shape: Growth) -> float:
    """A kind's share, divided among its shapes."""
    if shape.wave is not None:
        return float(np.log(PRIOR[shape.kind] / WAVE_COUNTS[shape.kind])) + shape.wave.log_prior
    return float(np.log(PRIOR[shape.kind] / COUNTS[shape.kind]))


WAVE_COUNTS = {"flat": 1, "line": 1, "bend": len(WAVE_BENDS), "slowing": len(WAVE_CONSTANTS)}
COUNTS = {kind: sum(shape.kind == kind for shape in steady_shapes()) for kind in PRIOR} | {"day": 1}
