"""Location, deviation and smoothing that a few outliers cannot move."""

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from nodescope.use.studies.series import BoolArray, FloatArray

# The median absolute deviation of a normal distribution times this is its
# standard deviation: 1 / 0.6745.
NORMAL_MAD = 1.4826

# Below this share of the largest magnitude a difference is rounding, not
# measurement: float64 keeps about 16 digits and sums lose a few.
ROUNDING_SHARE = 1e-9


def median_of(values: FloatArray) -> float:
    """As numpy's, for finite values in one row, at a third of its time."""
    half = len(values) // 2
    if len(values) % 2:
        return float(np.partition(values, half)[half])
    lower, upper = np.partition(values, (half - 1, half))[half - 1 : half + 1]
    return float(0.5 * (lower + upper))


def robust_deviation(values: FloatArray) -> float:
    """
    Standard deviation, estimated from the median absolute deviation.

    Where more than half of the samples are equal that is 0, and the mean
    absolute deviation is used instead (times 1.2533, as for a normal distribution).
    """
    middle = mad_deviation(values)
    return middle if middle > 0 else float(np.mean(np.abs(values - np.median(values)))) * 1.2533


def mad_deviation(values: FloatArray) -> float:
    """From the median absolute deviation alone: 0 where more than half of the samples are equal."""
    return float(np.median(np.abs(values - np.median(values)))) * NORMAL_MAD


def is_flat(values: FloatArray) -> bool:
    """The values differ by rounding only."""
    low, high = float(np.min(values)), float(np.max(values))
    return high - low <= ROUNDING_SHARE * max(abs(low), abs(high))


def without_spikes(values: FloatArray, longest: int = 2) -> FloatArray:
    """
    Outliers in runs of at most longest samples, set to their local median.

    An outlier is 4 deviations away from the running median of seven, which a
    run of three cannot move.
    """
    if len(values) < 9:
        return values
    local = np.median(sliding_window_view(np.pad(values, 3, mode="edge"), 7), axis=1)
    away = values - local
    # Where most samples equal their local median the median deviation is 0;
    # then twice the mean absolute deviation is used.
    scale = float(np.median(np.abs(away))) * NORMAL_MAD or 2 * float(np.mean(np.abs(away)))
    lone = short_runs(np.abs(away) > 4 * scale, longest)
    return np.where(lone, local, values)


def without_line(values: FloatArray) -> FloatArray:
    """The series less its mean and its least-squares slope."""
    time = np.arange(len(values)) - (len(values) - 1) / 2
    # Sums, because a matrix product would start a thread per core.
    slope = float(np.sum(time * values)) / max(float(np.sum(time * time)), 1.0)
    return np.asarray(values - values.mean() - slope * time)


def robust_slope(values: FloatArray) -> float:
    """Per sample: the median rise from the first half's samples to the second's."""
    half = len(values) // 2
    return float(np.median(values[half : 2 * half] - values[:half])) / half if half else 0.0


def short_runs(marked: BoolArray, longest: int) -> BoolArray:
    """Of the marked samples, those in runs of at most longest."""
    edges = np.diff(np.concatenate(([0], marked.astype(np.int8), [0])))
    starts, ends = np.flatnonzero(edges == 1), np.flatnonzero(edges == -1)
    short = ends - starts <= longest
    kept = np.zeros(len(marked) + 1, dtype=np.int64)
    kept[starts[short]] += 1
    kept[ends[short]] -= 1
    return np.asarray(np.cumsum(kept[:-1]) > 0)


def block_means(values: FloatArray, size: int) -> FloatArray:
    """Of whole blocks of size samples; of all samples where they are fewer."""
    count = max(1, len(values) // size)
    return np.asarray(values[: count * size].reshape(count, -1).mean(axis=1))


def trimmed_blocks(values: FloatArray, size: int) -> FloatArray:
    """Means of blocks of size samples, each without its lowest and highest tenth."""
    if size <= 1:
        return values
    count = len(values) // size
    blocks = np.sort(values[: count * size].reshape(count, size), axis=1)
    cut = size // 10
    return np.asarray(blocks[:, cut : size - cut].mean(axis=1))


def block_medians(values: FloatArray, size: int) -> FloatArray:
    """Medians of blocks of size samples; missing ones are ignored, an empty block is NaN."""
    count = -(-len(values) // size)
    padded = np.full(count * size, np.nan)
    padded[: len(values)] = values
    blocks = np.sort(padded.reshape(count, size), axis=1)
    present = np.isfinite(blocks).sum(axis=1)
    row = np.arange(count)
    low, high = np.maximum(present - 1, 0) // 2, present // 2
    middle = (blocks[row, low] + blocks[row, np.minimum(high, size - 1)]) / 2
    return np.where(present > 0, middle, np.nan)


def decorrelation_samples(values: FloatArray, longest: int) -> int:
    """
    How many samples apart two samples are uncorrelated, at most longest.

    The typical squared difference of two samples grows with their distance
    until they are independent; the first doubling of the distance that adds
    less than 15 % ends the search. Medians are used, so that steps do not count.
    """
    distance, seen = 1, typical_difference(values, 1)
    while distance < longest and 2 * distance < len(values) // 4:
        further = typical_difference(values, 2 * distance)
        if seen > 0 and further < 1.15 * seen:
            break
        distance, seen = 2 * distance, further
    return min(distance, longest)


def typical_difference(values: FloatArray, distance: int) -> float:
    return float(np.median(np.abs(values[distance:] - values[:-distance]))) ** 2
