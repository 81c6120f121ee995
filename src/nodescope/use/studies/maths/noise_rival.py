"""
How much better a change explains a series than noise with memory does.

A random walk has steps enough for any model whose noise is independent. So
every change competes with the best noise, without the change, of four families:
white, returning (AR(1)) with white on top, fractional from pink to a random
walk, and a smooth wander. What is left is the change's own evidence, in nats.

All of it happens in the sine transform of the first differences, in which the
covariance of a random walk under white noise is exactly diagonal, and that of
the others nearly so. There a step is one sine, a bend is a sum of them, and a
kind of noise is a row of variances: the likelihood of sixty kinds costs one
weighted sum each.
"""

import numpy as np

from nodescope.use.studies.series import BoolArray, FloatArray

# Correlation of neighbours, and the white noise on top in units of the shocks' variance.
MEMORIES = (0.4, 0.7, 0.9, 0.97, 0.99, 1.0)
WHITE_SHARES = (0.0, 0.5, 2.0, 8.0, 30.0, 100.0, 300.0, 1000.0)

# Of this memory on, a noise wanders over hundreds of values.
WANDERS = 0.99

# Fractional noise: the power of the frequency, 0.5 is pink, 1 a random walk.
FRACTIONS = (0.25, 0.5, 0.75)
FRACTION_SHARES = (0.0, 4.0)

# A smooth wander (a twice summed noise) under white noise, by the number of
# its turns within the series.
TURNS = (0.7, 1.5, 3.0, 6.0)

# A change joins the others when it adds so many nats; the best is taken first.
JOINS = 4.0

# How much of a change's worth beside all others counts.
IN_THE_END = 0.25

# Fewer values have no spectrum.
FEWEST_VALUES = 8

# More than so many changes are not weighed; the first ones by evidence are.
MOST_WEIGHED = 16

# A matrix product of more than about 64^3 starts a thread per core; products of
# this many columns at a time stay in one.
CHUNK = 128


def variances_of(count: int) -> FloatArray:
    """One row for each kind of noise: the variances of its differences' sine transform."""
    angle = np.pi * np.arange(1, count + 1) / (count + 1)
    differenced = 2 - 2 * np.cos(angle)
    rows = [differenced]
    for memory in MEMORIES:
        returning = 1 / (1 - 2 * memory * np.cos(angle) + memory * memory)
        rows += [differenced * (returning + share) for share in WHITE_SHARES]
    for power in FRACTIONS:
        rows += [differenced * (differenced**-power + share) for share in FRACTION_SHARES]
    for turns in TURNS:
        knee = 2 - 2 * np.cos(np.pi * turns * 2 / (count + 1))
        rows.append(differenced * ((knee / differenced) ** 2 + 1))
    return np.stack(rows)


def kinds_that_wander() -> BoolArray:
    """Which rows of variances_of hardly ever return to a level: such noise bends by itself."""
    returning = [memory >= WANDERS for memory in MEMORIES for _ in WHITE_SHARES]
    return np.array(
        [False, *returning, *[False] * len(FRACTIONS) * len(FRACTION_SHARES), *[True] * len(TURNS)]
    )


def sine_transform(rows: FloatArray) -> FloatArray:
    """Orthonormal, of the first kind, along the last axis."""
    count = rows.shape[-1]
    padded = np.zeros((*rows.shape[:-1], 2 * (count + 1)))
    padded[..., 1 : count + 1] = rows
    return np.asarray(-np.fft.rfft(padded).imag[..., 1 : count + 1] * np.sqrt(2 / (count + 1)))


def design_of(count: int, changes: list[int]) -> FloatArray:
    """In differences: the drift of the whole, then a step and a bend for each change."""
    rows = np.zeros((1 + 2 * len(changes), count))
    rows[0] = 1.0
    for place, change in enumerate(changes):
        rows[1 + 2 * place, change - 1] = 1.0
        rows[2 + 2 * place, change:] = 1.0
    return rows


def products_of(rows: FloatArray, variances: FloatArray) -> FloatArray:
    """For each kind of noise, all products of two rows, weighted by its precision."""
    chunks = -(-rows.shape[1] // CHUNK)
    missing = chunks * CHUNK - rows.shape[1]
    parts = np.pad(rows, ((0, 0), (0, missing))).reshape(len(rows), chunks, CHUNK).transpose(1, 0, 2)
    precisions = np.pad(1 / variances, ((0, 0), (0, missing))).reshape(-1, chunks, 1, CHUNK)
    turned = parts.transpose(0, 2, 1)
    return np.stack([np.matmul(parts * one, turned).sum(axis=0) for one in precisions])


class Weighing:
    """The likelihood of every kind of noise, with any set of changes; kept up to date as changes join."""

    def __init__(self, values: FloatArray, changes: list[int]) -> None:
        moves = np.diff(values)
        variances = variances_of(len(moves))
        rows = sine_transform(np.vstack((design_of(len(moves), changes), moves)))
        self.count = len(moves)
        self.constants = -0.5 * np.log(variances).sum(axis=1)
        self.products = products_of(rows, variances)
        self.sweep((0,))

    def sweep(self, places: tuple[int, ...]) -> None:
        """Gauss-Jordan over the given rows: what is left elsewhere is what they do not explain."""
        for place in places:
            a = self.products
            pivot = np.maximum(a[:, place, place], 1e-12)[:, None, None]
            row, column = a[:, place : place + 1, :] / pivot, a[:, :, place : place + 1]
            swept = a - column * row
            swept[:, place : place + 1, :] = row
            swept[:, :, place : place + 1] = -column / pivot
            swept[:, place, place] = 1 / pivot[:, 0, 0]
            self.products = swept

    def likelihood(self, removed: FloatArray | float = 0.0) -> float:
        left = np.maximum(self.products[:, -1, -1] - removed, 1e-12)
        return float(np.max(self.constants - self.count / 2 * np.log(left)))

    def explained(self, change: int) -> FloatArray:
        """For each kind of noise: what the step and the bend of a change would explain, or, once joined, do explain."""
        places = [1 + 2 * change, 2 + 2 * change]
        block = self.products[:, places][:, :, places]
        toward = self.products[:, places, -1]
        a, b, c = block[:, 0, 0], block[:, 0, 1], block[:, 1, 1]
        first, second = toward[:, 0], toward[:, 1]
        determinant = np.maximum(a * c - b * b, 1e-9 * np.abs(a * c) + 1e-30)
        return np.asarray((c * first**2 - 2 * b * first * second + a * second**2) / determinant)

    def join(self, change: int) -> None:
        self.sweep((1 + 2 * change, 2 + 2 * change))


def rival_gains(values: FloatArray, changes: list[int]) -> FloatArray:
    """
    Nats by which each change is better than the best noise without it.

    The best change joins first. What it is worth then, before the later ones
    join, is too little for one of two that belong together (a spell); what it is
    worth in the end is too much where all of them follow a wander. It counts
    for a quarter.
    """
    gains = np.zeros(len(changes))
    if not changes or len(values) < FEWEST_VALUES:
        return gains
    weighing = Weighing(values, changes)
    waiting = set(range(len(changes)))
    while waiting:
        base = weighing.likelihood()
        entering = {one: weighing.likelihood(weighing.explained(one)) - base for one in waiting}
        best = max(entering, key=lambda one: entering[one])
        for one, gain in entering.items():
            gains[one] = gain
        if entering[best] < JOINS:
            break
        weighing.join(best)
        waiting.discard(best)
    whole = weighing.likelihood()
    for one in set(range(len(changes))) - waiting:
        in_the_end = whole - weighing.likelihood(-weighing.explained(one))
        gains[one] += IN_THE_END * (in_the_end - gains[one])
    return gains
