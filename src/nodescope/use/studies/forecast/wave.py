"""
A season as a few harmonics of one frequency, fitted together with the growth.

A cycle that was seen twice cannot be taken out first: a line takes a part of
it, or it takes a part of the line. So its harmonics are columns beside those
of a shape of growth, and the evidence decides whether there is a season at all
(evidence.py).
"""

from dataclasses import dataclass
from functools import cache

import numpy as np

from nodescope.use.studies.series import FloatArray

# Blocks of the series on which a frequency is looked for, the most that its samples fill.
BLOCKS = (32, 64, 128, 256, 512)

# Turns within the span. Of less than one and a half, a cycle and a bend look alike; more than
# thirty are looked for as a fold (season.py).
FEWEST_TURNS, MOST_TURNS = 1.4, 30.0
TURNS_STEP = 0.05

# A strong overtone may hide its fundamental: these fractions of the strongest frequency are tried as well.
FRACTIONS = (1, 2, 3)
HARMONICS = (1, 2, 3, 5)

# Harmonics faster than this many turns are too short for the buckets of a forecast.
FASTEST = 48.0

# What a wave explains of what a line leaves, at least, to be worth a look.
LEAST_EXPLAINED = 0.15

# Steps of the search around a frequency, in turns.
REFINING = (0.1, 0.03, 0.01, 0.003)

# Of what a wave leaves: beyond this it is no noise around a season.
LONGEST_MEMORY = 0.98

# How likely a season is before anything was seen.
PRIOR = 0.3

# Moments of one cycle at which its crest is looked for.
CYCLE_MOMENTS = 48


@dataclass(frozen=True)
class Wave:
    """Turns within the span, how uncertain they are, and how many harmonics there are."""

    turns: float
    turns_error: float
    harmonics: int

    def at(self, places: FloatArray, bucket: float = 0.0) -> FloatArray:
        """Two columns a harmonic; a mean over a bucket is flatter than the wave itself."""
        return harmonic_columns(self.turns, self.harmonics, places, bucket)

    @property
    def log_prior(self) -> float:
        """That there is one, and has just this frequency among all that there might be."""
        room = self.turns * np.log(MOST_TURNS / FEWEST_TURNS)
        return float(np.log(PRIOR * min(1.0, 2.5 * self.turns_error / room)))

    def crests(self, swings: FloatArray) -> FloatArray:
        """The highest of one cycle, for each row of swings."""
        cycle = np.arange(CYCLE_MOMENTS) / CYCLE_MOMENTS / self.turns + 0.5
        return np.asarray((swings @ self.at(cycle).T).max(axis=1))

    def heights(self, swings: FloatArray, turns: FloatArray, places: FloatArray) -> FloatArray:
        """By row: its own swings, turns and places."""
        phases = 2 * np.pi * turns[:, None] * (places - 0.5)
        made = np.zeros_like(places)
        for harmonic in range(self.harmonics):
            sines, cosines = swings[:, 2 * harmonic, None], swings[:, 2 * harmonic + 1, None]
            angle = (harmonic + 1) * phases
            made += sines * np.sin(angle) + cosines * np.cos(angle)
        return made


def harmonic_columns(turns: float, harmonics: int, places: FloatArray, bucket: float = 0.0) -> FloatArray:
    """Around the middle of the span, so that an error of the turns does not look like one of the phase."""
    numbers = turns * np.arange(1, harmonics + 1)
    angles = 2 * np.pi * np.multiply.outer(places - 0.5, numbers)
    flatter = np.sinc(numbers * bucket)
    return np.stack((np.sin(angles) * flatter, np.cos(angles) * flatter), axis=-1).reshape(len(places), -1)


@dataclass(frozen=True)
class Fit:
    turns: float
    harmonics: int
    rest: FloatArray
    """What it leaves of the series."""

    @property
    def left(self) -> float:
        return float(self.rest @ self.rest)

    @property
    def memory(self) -> float:
        """How much of the rest is in the next block as well."""
        return min(max(float(self.rest[1:] @ self.rest[:-1]) / max(self.left, 1e-300), 0.0), LONGEST_MEMORY)


def find_wave(blocks: FloatArray) -> Wave | None:
    """The likeliest season of a series of even blocks; whether it is one is for the evidence to say."""
    explained = power(blocks)
    total = float(np.sum(without_line(blocks) ** 2))
    if total <= 0 or float(explained.max()) < LEAST_EXPLAINED * total:
        return None
    strongest = refine(blocks, float(frequencies(len(blocks))[int(np.argmax(explained))]), 1)
    fits = [
        fit(blocks, strongest.turns / fraction, harmonics)
        for fraction in FRACTIONS
        for harmonics in HARMONICS
        if strongest.turns / fraction >= FEWEST_TURNS and harmonics * strongest.turns / fraction <= FASTEST
    ]
    if not fits:
        return None
    best = likeliest(fits)
    return place_closely(blocks, refine(blocks, best.turns, best.harmonics))


def likeliest(fits: list[Fit]) -> Fit:
    """By the Bayesian information criterion; noise that remembers counts as fewer samples."""
    memory = min(fits, key=lambda one: one.left).memory
    count = len(fits[0].rest) * (1 - memory) / (1 + memory)
    return min(
        fits, key=lambda one: count * np.log(max(one.left, 1e-300)) + 4 * one.harmonics * np.log(count)
    )


def frequencies(count: int) -> FloatArray:
    """Four blocks a turn at least."""
    return np.arange(FEWEST_TURNS, min(MOST_TURNS, count / 4), TURNS_STEP)


@cache
def bases(count: int) -> FloatArray:
    """By frequency: two orthonormal columns beside a level and a line."""
    places = block_places(count)
    columns = np.stack([base_columns(turns, 1, places) for turns in frequencies(count)])
    return np.ascontiguousarray(np.linalg.qr(columns)[0][:, :, 2:].transpose(0, 2, 1)).astype(np.float32)


def block_places(count: int) -> FloatArray:
    return (np.arange(count) + 0.5) / count


def base_columns(turns: float, harmonics: int, places: FloatArray) -> FloatArray:
    """A level, a line, and the harmonics."""
    wave = harmonic_columns(turns, harmonics, places)
    return np.concatenate((np.stack((np.ones_like(places), places), axis=1), wave), axis=1)


def power(blocks: FloatArray) -> FloatArray:
    """What a sine explains beside a line, by frequency."""
    made = bases(len(blocks)) @ without_line(blocks).astype(np.float32)
    return np.asarray((made.astype(np.float64) ** 2).sum(axis=1))


def without_line(blocks: FloatArray) -> FloatArray:
    time = block_places(len(blocks)) - 0.5
    level = blocks - blocks.mean()
    return np.asarray(level - (time @ level) / (time @ time) * time)


def fit(blocks: FloatArray, turns: float, harmonics: int) -> Fit:
    columns = base_columns(turns, harmonics, block_places(len(blocks)))
    return Fit(turns, harmonics, remainder(columns, without_line(blocks)))


def remainder(columns: FloatArray, values: FloatArray) -> FloatArray:
    normal = columns.T @ columns
    normal[np.diag_indices_from(normal)] *= 1 + 1e-9
    return np.asarray(values - columns @ np.linalg.solve(normal, columns.T @ values))


def refine(blocks: FloatArray, turns: float, harmonics: int) -> Fit:
    """The turns that leave least."""
    best = fit(blocks, turns, harmonics)
    for step in REFINING:
        near = best.turns + step * np.array([-1.5, -1.0, -0.5, 0.5, 1.0, 1.5])
        best = min([best, *(fit(blocks, float(one), harmonics) for one in near)], key=lambda one: one.left)
    return best


def place_closely(blocks: FloatArray, best: Fit) -> Wave:
    """The turns by how the series would change with them, and how uncertain they are."""
    error = 0.0
    for _ in range(2):
        moved = change_with_turns(blocks, best)
        energy = max(float(moved @ moved), 1e-300)
        variance = best.left / len(blocks) * (1 + best.memory) / (1 - best.memory)
        error = float(np.sqrt(variance / energy))
        step = float(np.clip(moved @ best.rest / energy, -REFINING[-1], REFINING[-1]))
        best = min(best, fit(blocks, best.turns + step, best.harmonics), key=lambda one: one.left)
    return Wave(best.turns, error, best.harmonics)


def change_with_turns(blocks: FloatArray, best: Fit) -> FloatArray:
    """Of the fitted series, beside what its other columns could take."""
    places, step = block_places(len(blocks)), 1e-4
    columns = base_columns(best.turns, best.harmonics, places)
    fitted = without_line(blocks) - best.rest
    coefficients = np.linalg.lstsq(columns, fitted, rcond=None)[0]
    near = base_columns(best.turns + step, best.harmonics, places)
    return remainder(columns, (near @ coefficients - fitted) / step)
