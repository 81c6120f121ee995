"""
Views of a series: one figure for each of its pieces, at several lengths of piece.

An anomaly is short or long, a shift, a vanished noise or a stopped cycle; each is
plain in one of these views and hidden in others:

    surprise   what a sample differs from its prediction (prediction.py)
    mean       of the piece: shifts and slow waves
    floor      a quarter of the samples is below it: a rise beside short pulses, which do not move it
    ceiling    a quarter is above it: a fall beside short pulses
    highest    pulses that stop; lowest likewise
    spread     standard deviation: a cycle that stops
    roughness  mean size of the surprises: noise that vanishes or grows

Pieces overlap and begin at the first sample, so that a piece never changes once its
last sample is there.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from nodescope.use.studies.series import BoolArray, FloatArray, IntArray

UP, DOWN = 1.0, -1.0
Measure = Callable[[FloatArray, int, int], FloatArray]


@dataclass(frozen=True)
class ViewKind:
    """One way to look: what is measured of a piece, of which lengths, and which side of it is judged."""

    name: str
    lengths: tuple[int, ...]
    sides: tuple[tuple[float, int], ...]
    """Up or down, each with the least number of earlier figures that it can be judged by."""
    overlap: int
    """Pieces that begin within one length."""
    measure: Measure
    is_ratio: bool = False
    """Figures are compared by their ratio; below a thousandth of what is usual they are as good as none."""


LEAST_SHARE = 1e-3


@dataclass(frozen=True)
class PieceView:
    """figures[i] is about the samples [i * step, i * step + length)."""

    kind: ViewKind
    length: int
    figures: FloatArray

    @property
    def step(self) -> int:
        return max(1, self.length // self.kind.overlap)

    def ends(self) -> IntArray:
        return np.arange(len(self.figures)) * self.step + self.length

    def scaled(self, known: BoolArray, rounding: float) -> FloatArray:
        """The figures as they are compared: ratios by their logarithm, with a floor that the known ones set."""
        if not self.kind.is_ratio:
            return self.figures
        usual = float(np.median(self.figures[known])) or float(np.mean(self.figures[known]))
        return np.asarray(np.log(np.maximum(self.figures, max(LEAST_SHARE * usual, rounding))))

    def spoiled(self, counted: IntArray) -> BoolArray:
        """The pieces of which more than a quarter of the samples is marked; counted[i] of the first i are."""
        count, step = len(self.figures), self.step
        marked = counted[self.length :: step][:count] - counted[::step][:count]
        return np.asarray(marked * 4 > self.length)


def piece_means(values: FloatArray, length: int, step: int) -> FloatArray:
    total = np.concatenate(([0.0], np.cumsum(values)))
    starts = np.arange(0, len(values) - length + 1, step)
    return np.asarray((total[starts + length] - total[starts]) / length)


def piece_spreads(values: FloatArray, length: int, step: int) -> FloatArray:
    centred = values - values.mean()
    means = piece_means(centred, length, step)
    variance = piece_means(centred * centred, length, step) - means * means
    return np.sqrt(np.maximum(variance, 0.0))


def piece_sizes(values: FloatArray, length: int, step: int) -> FloatArray:
    return piece_means(np.abs(values), length, step)


def piece_ranks(share: float) -> Measure:
    """The value that this share of the piece is below."""

    def measure(values: FloatArray, length: int, step: int) -> FloatArray:
        rank = min(length - 1, int(share * length))
        return np.asarray(np.partition(sliding_window_view(values, length)[::step], rank, axis=1)[:, rank])

    return measure


def piece_maxima(values: FloatArray, length: int, step: int) -> FloatArray:
    return np.asarray(sliding_window_view(values, length)[::step].max(axis=1))


def piece_minima(values: FloatArray, length: int, step: int) -> FloatArray:
    return np.asarray(sliding_window_view(values, length)[::step].min(axis=1))


def same(values: FloatArray, length: int, step: int) -> FloatArray:
    del length, step
    return values


# A mean is normal enough to be judged by few others; what only falls short (a cycle that stops)
# has no tail. Everything else needs enough others to know its tail.
FEW, SOME, ENOUGH = 10, 16, 40

# Each piece is four times as long as the one before.
OF_VALUES = (
    ViewKind("mean", (4, 16, 64, 256, 1024, 4096), ((UP, FEW), (DOWN, FEW)), 2, piece_means),
    ViewKind("floor", (16, 64, 256, 1024), ((UP, ENOUGH),), 4, piece_ranks(0.25)),
    ViewKind("ceiling", (16, 64, 256, 1024), ((DOWN, ENOUGH),), 4, piece_ranks(0.75)),
    ViewKind("highest", (64, 256, 1024), ((DOWN, SOME),), 2, piece_maxima),
    ViewKind("lowest", (64, 256, 1024), ((UP, SOME),), 2, piece_minima),
    ViewKind("spread", (64, 256, 1024, 4096), ((UP, ENOUGH), (DOWN, SOME)), 2, piece_spreads, is_ratio=True),
)
OF_SURPRISES = (
    ViewKind("surprise", (1,), ((UP, ENOUGH), (DOWN, ENOUGH)), 1, same),
    ViewKind("roughness", (16, 64, 256, 1024), ((UP, ENOUGH), (DOWN, ENOUGH)), 2, piece_sizes, is_ratio=True),
)


def views_of(values: FloatArray, kinds: tuple[ViewKind, ...], longest: int) -> Iterator[PieceView]:
    """In pieces of at most longest samples."""
    for kind in kinds:
        for length in kind.lengths:
            if length <= min(longest, len(values)):
                yield PieceView(kind, length, kind.measure(values, length, max(1, length // kind.overlap)))
