"""
The shapes that growth may have: a line, a line that began within the span, and growth that gets slower.

Each shape is a few columns over the span (0 at its start, 1 at its end); how
much of each column there is follows from the data (evidence.py).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from nodescope.use.studies.series import FloatArray

Kind = Literal["flat", "line", "bend", "step", "slowing", "day"]
Column = Callable[[FloatArray], FloatArray]

# Where within the span growth may have begun or a level may have changed; closer together at its
# end, where the same part of the span is more of what grew.
BENDS = (*(place / 20 for place in range(3, 15)), *(place / 40 for place in range(29, 38)))

# Time constants of growth that ends, as shares of the span.
TIME_CONSTANTS = (0.1, 0.2, 0.4, 0.8, 1.6)

HOUR_SECONDS, DAY_SECONDS = 3600.0, 86400.0

# How likely each kind is before anything was seen.
PRIOR = {"flat": 0.25, "line": 0.3, "bend": 0.12, "step": 0.1, "slowing": 0.18, "day": 0.05}


@dataclass(frozen=True)
class Growth:
    """One shape: its columns, at shares of the span that may lie beyond its end."""

    kind: Kind
    columns: tuple[Column, ...]

    def at(self, places: FloatArray) -> FloatArray:
        made = [np.ones_like(places), *(column(places) for column in self.columns)]
        return np.stack(made, axis=1)


def steady_shapes() -> list[Growth]:
    made = [Growth("flat", ()), Growth("line", (line,))]
    made += [Growth("bend", (line, bend(start))) for start in BENDS]
    made += [Growth("bend", (bend(start),)) for start in BENDS]
    made += [Growth("step", (step(start),)) for start in BENDS]
    made += [Growth("step", (line, step(start))) for start in BENDS]
    made += [Growth("slowing", (saturation(constant),)) for constant in TIME_CONSTANTS]
    return [*made, Growth("slowing", (np.sqrt,)), Growth("slowing", (logarithm,))]


def day_shapes(span_seconds: float) -> list[Growth]:
    """A part of the day's course, while less than two days were seen. Of less than an hour of it, a line is left."""
    return [Growth("day", day(span_seconds))] if HOUR_SECONDS <= span_seconds < 2 * DAY_SECONDS else []


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
    return float(np.log(PRIOR[shape.kind] / COUNTS[shape.kind]))


COUNTS = {kind: sum(shape.kind == kind for shape in steady_shapes()) for kind in PRIOR} | {"day": 1}
