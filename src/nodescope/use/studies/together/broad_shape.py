"""
The broad shape of a series: its slowest swings without its noise.

A hump of minutes has no onset, and the innovations hide it. What can be compared
is its place: of all shifts by which one series could be moved against the other,
the best one is near zero by chance only so often.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from nodescope.use.studies.series import FloatArray

ComplexArray = np.ndarray[tuple[int], np.dtype[np.complex128]]

# Six times the frequency below which half of the power is: everything of a
# normal curve, whose power ends there.
KEPT = 6.0

# The noise under the shape is as strong as just beyond what is kept; where it falls off there, as
# noise with a memory does, it is stronger below by as much once more.
NOISE_BANDS = (2.0, 4.0)

# A frequency whose power is less than three times the noise's says nothing of
# the shape; the others count by what is above (Wiener).
NOISE_WEIGHT = 3.0

# Tries with fresh noise, from which the spread of the best shift is taken.
TRIES = 60
SEED = 15


@dataclass(frozen=True)
class BroadShape:
    """Its spectrum, less mean and trend; how many frequencies are kept, and the noise in each."""

    spectrum: ComplexArray
    kept: int
    noise: float
    count: int

    def drawn(self, random: np.random.Generator | None = None) -> ComplexArray:
        """The kept part, with fresh noise where a generator is given."""
        part = self.spectrum[: self.kept]
        if random is not None:
            pair = random.standard_normal((2, self.kept)) * np.sqrt(self.noise / 2)
            part = part + pair[0] + 1j * pair[1]
        power = np.abs(part) ** 2
        above = np.maximum(0.0, power - NOISE_WEIGHT * self.noise)
        return np.asarray(part * above / np.maximum(power, np.finfo(np.float64).tiny))


def broad_shape(values: FloatArray, straighten: Callable[[FloatArray], FloatArray]) -> BroadShape:
    level = straighten(values)
    spectrum = np.fft.rfft(level)
    spectrum[0] = 0
    power = np.abs(spectrum) ** 2
    above = np.maximum(power - np.median(power[len(power) // 2 :]) / np.log(2), 0)
    middle = int(np.searchsorted(np.cumsum(above), 0.5 * float(np.sum(above)))) + 1
    kept = min(len(power), max(4, int(KEPT * middle)))
    return BroadShape(spectrum, kept, noise_under(power, kept), len(values))


def noise_under(power: FloatArray, kept: int) -> float:
    """From the two octaves above what is kept."""
    edges = [kept, max(kept + 4, int(NOISE_BANDS[0] * kept)), max(kept + 8, int(NOISE_BANDS[1] * kept))]
    near, far = (power[first:last] for first, last in pairwise(edges))
    if not len(near):
        return 0.0
    noise = float(np.mean(near))
    return (
        noise * max(1.0, noise / max(float(np.mean(far)), np.finfo(np.float64).tiny)) if len(far) else noise
    )


def tied(values: FloatArray) -> FloatArray:
    """
    Less the line from its first to its last samples.

    A random walk tied so looks alike from every place of the circle, and the
    best shift of two of them may be anywhere.
    """
    edge = max(1, len(values) // 50)
    first, last = float(values[:edge].mean()), float(values[-edge:].mean())
    return np.asarray(values - np.linspace(first, last, len(values)))


def without_cubic(values: FloatArray) -> FloatArray:
    """A trend that bends has its middle in the middle of every window: that is no place. It is taken away."""
    time = np.linspace(-1, 1, len(values))
    level = values - values.mean()
    for degree in (1, 2, 3):
        curve = np.polynomial.legendre.Legendre.basis(degree)(time)
        curve -= curve.mean()
        level = level - curve * float(np.sum(curve * level)) / float(np.sum(curve * curve))
    return np.asarray(level)


def products(left: BroadShape, right: BroadShape, random: np.random.Generator | None = None) -> FloatArray:
    """Sum of left[t + shift] * right[t] for shifts 0 .. n-1."""
    kept = min(left.kept, right.kept)
    spectrum = np.zeros(len(left.spectrum), dtype=np.complex128)
    spectrum[:kept] = left.drawn(random)[:kept] * np.conj(right.drawn(random)[:kept])
    return np.fft.irfft(spectrum, left.count)


def drawn_shifts(left: BroadShape, right: BroadShape, most: int, sign: float) -> FloatArray:
    """The best shifts within -most .. most when the noise is drawn anew."""
    random = np.random.default_rng(SEED)
    lags = np.arange(-most, most + 1)
    tries = [int(np.argmax(sign * products(left, right, random)[lags])) - most for _ in range(TRIES)]
    return np.sort(np.array(tries, dtype=np.float64))
