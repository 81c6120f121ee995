"""
The kinds of noise that a path may have around its growth, as covariances on an even grid of buckets.

A meter's noise forgets: it is white, or it returns to the path within a time
(Ornstein and Uhlenbeck). A path's own wandering does not return: it is a random
walk, or the sum of a pace that varies around its mean, as that of requests does.
Which it is decides how far ahead the future is known, so all of them compete
(evidence.py).

There are four grids only, so that each covariance is factorised once in a
process.
"""

from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import Literal

import numpy as np

from nodescope.use.studies.series import FloatArray

Kind = Literal["white", "returning", "wandering"]

# Buckets of a path, the most that its samples fill: 128 keep what a forecast needs.
GRIDS = (16, 32, 64, 128)

# How long a meter's noise remembers, as a share of the span, and the white noise beside it.
MEMORIES = (0.012, 0.025, 0.05, 0.09, 0.18, 0.36)
WHITE_BESIDE_MEMORY = (0.0, 0.5, 3.0)

# A level that is steered or smoothed returns as well, but on a smooth way. Without it such a way
# looked like a path that wanders, and hid a slow leak.
SMOOTH_MEMORIES = (0.008, 0.016, 0.03, 0.06, 0.1)
WHITE_BESIDE_SMOOTH = (0.0, 0.03)
METER_MEMORY = 0.1

# How long the pace of a wandering path remembers; 0 is a random walk. The white noise beside
# it is a share of how far the path wanders over the span (as a variance).
PACE_MEMORIES = (0.025, 0.05, 0.1, 0.3)
WHITE_BESIDE_PACE = (0.0, 1e-5, 1e-4, 1e-3, 1e-2, 0.1)
WHITE_BESIDE_WALK = (1e-4, 1e-3, 1e-2, 0.1)

# How likely each is before anything was seen.
WHITE, RETURNING, SMOOTH, WALK, PACE = 0.25, 0.3, 0.08, 0.17, 0.2


@dataclass(frozen=True, eq=False)
class Noise:
    """One kind of noise; whitening turns it into independent samples of one variance."""

    kind: Kind
    places: FloatArray
    memory: float
    """Of the noise where it returns, of the pace where it wanders, as a share of the span."""
    whitening: FloatArray
    log_determinant: float
    log_prior: float
    beside: float = 0.0
    """White noise beside it, as a variance."""
    smooth: bool = False

    @property
    def is_path(self) -> bool:
        """What returns within a tenth of the span is the meter's; the rest is where the path is."""
        return self.kind == "wandering" or self.memory > METER_MEMORY

    @property
    def is_grid(self) -> bool:
        """It is one of those that are made once."""
        return len(self.places) in GRIDS and self in noises(len(self.places))

    @property
    def white_variance(self) -> float:
        """The part that is no part of the path, where the whole has a variance of one."""
        if self.kind == "white":
            return 1.0
        return self.beside if self.is_path else 1.0 + self.beside

    @property
    def walks(self) -> bool:
        """So rough that it may touch a limit between two moments."""
        return self.kind == "wandering" and self.memory == 0


def grid(buckets: int) -> FloatArray:
    """The middles of the buckets, as shares of the span."""
    return (np.arange(buckets) + 0.5) / buckets


@cache
def noises(buckets: int) -> tuple[Noise, ...]:
    return noises_at(grid(buckets), 1.0 / buckets)


def noises_at(places: FloatArray, width: float = 0.0) -> tuple[Noise, ...]:
    """Of a path that is known at these shares of the span, or as means of so wide buckets around them."""
    made = [make_noise("white", places, np.eye(len(places)), WHITE)]
    for memory, beside in product(MEMORIES, WHITE_BESIDE_MEMORY):
        covariance = in_buckets(returning(places, places, memory), returning_drop(memory, width))
        share = RETURNING / len(MEMORIES) / len(WHITE_BESIDE_MEMORY)
        made.append(make_noise("returning", places, covariance, share, memory, beside))
    for memory, beside in product(SMOOTH_MEMORIES, WHITE_BESIDE_SMOOTH):
        covariance = returning_smoothly(places, places, memory)
        share = SMOOTH / len(SMOOTH_MEMORIES) / len(WHITE_BESIDE_SMOOTH)
        made.append(make_noise("returning", places, covariance, share, memory, beside, smooth=True))
    for beside in WHITE_BESIDE_WALK:
        # A bucket's mean of a random walk varies less by a sixth of the bucket than its middle does.
        covariance = in_buckets(wander(places, places, 0.0), width / 6)
        share = WALK / len(WHITE_BESIDE_WALK)
        made.append(make_noise("wandering", places, covariance, share, 0.0, beside))
    for memory, beside in product(PACE_MEMORIES, WHITE_BESIDE_PACE):
        covariance = wander(places, places, memory)
        share = PACE / len(PACE_MEMORIES) / len(WHITE_BESIDE_PACE)
        made.append(make_noise("wandering", places, covariance, share, memory, beside))
    return tuple(made)


def make_noise(
    kind: Kind,
    places: FloatArray,
    covariance: FloatArray,
    share: float,
    memory: float = 0.0,
    beside: float = 0.0,
    smooth: bool = False,
) -> Noise:
    buckets = len(covariance)
    covariance = covariance + beside * np.eye(buckets)
    factor = np.linalg.cholesky(covariance + 1e-9 * np.trace(covariance) / buckets * np.eye(buckets))
    return Noise(
        kind=kind,
        places=places,
        memory=memory,
        whitening=np.linalg.inv(factor),
        log_determinant=2 * float(np.log(np.diag(factor)).sum()),
        log_prior=float(np.log(share)),
        beside=beside,
        smooth=smooth,
    )


def in_buckets(covariance: FloatArray, drop: float) -> FloatArray:
    """
    Of means of buckets, from that of their middles: each varies by a little less.

    Without it a walk in buckets looks smooth, as noise that returns does.
    """
    return np.asarray(covariance - drop * np.eye(len(covariance)))


def returning_drop(memory: float, width: float) -> float:
    share = width / memory
    return 1.0 - 2.0 * (share - 1.0 + float(np.exp(-share))) / share**2 if share > 0 else 0.0


def returning(left: FloatArray, right: FloatArray, memory: float) -> FloatArray:
    """Covariance of noise of variance 1 that returns to the path."""
    return np.asarray(np.exp(-np.abs(np.subtract.outer(left, right)) / memory))


def returning_smoothly(left: FloatArray, right: FloatArray, memory: float) -> FloatArray:
    """The same for a path with a slope at every moment (Matern, 3/2)."""
    apart = np.sqrt(3.0) * np.abs(np.subtract.outer(left, right)) / memory
    return np.asarray((1.0 + apart) * np.exp(-apart))


def wander(left: FloatArray, right: FloatArray, pace_memory: float) -> FloatArray:
    """Covariance of a path that starts at 0 and has variance 1 after one span."""
    if pace_memory == 0:
        return np.minimum.outer(left, right)
    made = integrated_pace(left, right, pace_memory)
    return made / float(integrated_pace(np.ones(1), np.ones(1), pace_memory)[0, 0])


def integrated_pace(left: FloatArray, right: FloatArray, memory: float) -> FloatArray:
    """Of the sum over time of a pace that returns to its mean within the memory."""
    shorter = np.minimum.outer(left, right) / memory
    apart = np.abs(np.subtract.outer(left, right)) / memory
    ends = np.add.outer(np.exp(-left / memory), np.exp(-right / memory))
    return np.asarray(2 * shorter - 1 + ends - np.exp(-apart))


@dataclass(frozen=True, eq=False)
class Outlook:
    """What a wandering path's past says of its future at given moments, for a noise of variance one."""

    gain: FloatArray
    """Expected future = (whitened past) @ gain."""
    root: FloatArray
    """The rest varies as (standard normal) @ root.T."""


def outlook_of(noise: Noise, moments: tuple[float, ...]) -> Outlook:
    """Kept for the grids, which come again."""
    return grid_outlook(noise, moments) if noise.is_grid else make_outlook(noise, moments)


@cache
def grid_outlook(noise: Noise, moments: tuple[float, ...]) -> Outlook:
    return make_outlook(noise, moments)


def make_outlook(noise: Noise, moments: tuple[float, ...]) -> Outlook:
    future = np.array(moments)
    covariance = wander if noise.kind == "wandering" else returning
    gain = noise.whitening @ covariance(noise.places, future, noise.memory)
    values, vectors = np.linalg.eigh(covariance(future, future, noise.memory) - gain.T @ gain)
    return Outlook(gain, vectors * np.sqrt(np.maximum(values, 0.0)))
