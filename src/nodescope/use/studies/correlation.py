"""
Which other series moved together with this one, by how many seconds earlier or later?

Autocorrelated series correlate by chance. So the significance is computed from
the effective number of independent samples (Bartlett), corrected for the number
of lags tried, and over many series at a false discovery rate of 5 % (Benjamini
and Hochberg).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import atanh, erfc, sqrt

import numpy as np

from nodescope.base.quantity import render_seconds
from nodescope.base.text import capitalise
from nodescope.base.time_range import render_time
from nodescope.use.studies.finding import Finding, StudyAnswer, found, not_enough
from nodescope.use.studies.maths.robust import block_means, is_flat, robust_deviation, without_line
from nodescope.use.studies.maths.stretch import Stretch, interpolated, split_stretches
from nodescope.use.studies.maths.tail_probability import adjust_p_values
from nodescope.use.studies.series import FloatArray, Series

NAME = "correlation"

FEWEST_SAMPLES = 30
FALSE_DISCOVERIES = 0.05

# A minute to both sides, and never more than a tenth of the samples: beyond
# that, one rarely causes the other.
MOST_LAG_SECONDS = 60.0
MOST_LAG_SHARE = 0.1

# Longer series are averaged to this many samples first: a day's lags are then
# precise to 10 s.
MOST_SAMPLES = 8640

# Findings at most; the surest first.
MOST_FINDINGS = 10

# Outliers are clipped at 5 robust deviations, so that one common spike is no proof.
CLIP_DEVIATIONS = 5.0


@dataclass(frozen=True)
class Match:
    other: Series
    correlation: float
    lag_seconds: float
    independent: float
    chance: float


def study(series: Series, others: Sequence[Series] = ()) -> StudyAnswer:
    """Which of the others moved with this series; lag is positive when the other moved first."""
    long = (stretch for stretch in split_stretches(series) if stretch.present >= FEWEST_SAMPLES)
    target = max(long, key=len, default=None)
    if target is None:
        return not_enough(NAME, series, f"a correlation needs at least {FEWEST_SAMPLES} samples in a row.")
    if not others:
        return not_enough(NAME, series, "there is no other series to compare with.")
    matches = [match for other in others if (match := match_of(target, other)) is not None]
    if not matches:
        return not_enough(NAME, series, "no other series has samples at the same time.")
    ranked = sorted(matches, key=lambda match: (match.chance, -abs(match.correlation)))
    adjusted = adjust_p_values([match.chance for match in ranked], len(ranked))
    kept = [match for match, rate in zip(ranked, adjusted) if rate <= FALSE_DISCOVERIES][:MOST_FINDINGS]
    findings = [build_finding(series, target, match, len(matches)) for match in kept]
    nothing = f"None of {len(matches)} other series moved with {series.name} beyond chance."
    return found(NAME, series, findings, nothing)


def match_of(target: Stretch, other: Series) -> Match | None:
    """None where the two share too few samples or one of them is constant."""
    left, right, interval_seconds = aligned(target, other)
    if len(left) < FEWEST_SAMPLES or is_flat(left) or is_flat(right):
        return None
    left, right = clipped(left), clipped(right)
    most = max(1, min(int(MOST_LAG_SECONDS / interval_seconds), int(MOST_LAG_SHARE * len(left))))
    correlations = lagged(left, right, most)
    place = int(np.argmax(np.abs(correlations)))
    value = float(np.clip(correlations[place], -0.999999, 0.999999))
    independent = independent_samples(left, right)
    lags_apart = max(1.0, (2 * most + 1) * independent / len(left))
    chance = min(1.0, erfc(abs(atanh(value)) * sqrt(max(independent - 3, 0.5)) / sqrt(2)) * lags_apart)
    return Match(other, value, (place - most) * interval_seconds, independent, chance)


def aligned(target: Stretch, other: Series) -> tuple[FloatArray, FloatArray, float]:
    """Both on the target's grid where both were measured, averaged to at most MOST_SAMPLES."""
    pieces = split_stretches(other)
    right = np.full(len(target), np.nan)
    for piece in pieces:
        inside = (target.times_at >= piece.times_at[0]) & (target.times_at <= piece.times_at[-1])
        right[inside] = np.interp(target.times_at[inside], piece.times_at, interpolated(piece.values))
    held = np.isfinite(right)
    if int(held.sum()) < FEWEST_SAMPLES:
        return np.empty(0), np.empty(0), target.interval_seconds
    first, last = int(np.argmax(held)), len(held) - int(np.argmax(held[::-1]))
    left, right = interpolated(target.values)[first:last], interpolated(right[first:last])
    size = -(-len(left) // MOST_SAMPLES)
    return block_means(left, size), block_means(right, size), target.interval_seconds * size


def clipped(values: FloatArray) -> FloatArray:
    """Less its straight line, outliers clipped, unit variance."""
    level = without_line(values)
    reach = CLIP_DEVIATIONS * robust_deviation(level)
    level = np.clip(level, -reach, reach) if reach > 0 else level
    level = level - level.mean()
    return np.asarray(level / max(float(level.std()), np.finfo(np.float64).tiny))


def lagged(left: FloatArray, right: FloatArray, most: int) -> FloatArray:
    """Correlation with right moved later by -most .. most samples, over the samples both have."""
    count = len(left)
    size = 1 << (2 * count - 1).bit_length()
    product = np.fft.irfft(np.fft.rfft(left, size) * np.conj(np.fft.rfft(right, size)), size)
    lags = np.arange(-most, most + 1)
    return np.asarray(product[lags] / (count - np.abs(lags)))


def independent_samples(left: FloatArray, right: FloatArray) -> float:
    """N over the sum of the products of both autocorrelations (Bartlett 1935)."""
    count = len(left)
    reach = count // 4
    product = autocorrelation(left, reach) * autocorrelation(right, reach)
    # Summed until it first falls to zero: what follows is noise.
    ended = np.flatnonzero(product < 0.01)
    total = 1 + 2 * float(np.sum(product[: ended[0] if len(ended) else reach]))
    return count / max(total, 1.0)


def autocorrelation(values: FloatArray, reach: int) -> FloatArray:
    """At lags 1 to reach."""
    size = 1 << (2 * len(values) - 1).bit_length()
    power = np.abs(np.fft.rfft(values, size)) ** 2
    product = np.fft.irfft(power, size)[: reach + 1]
    return np.asarray(product[1:] / max(float(product[0]), np.finfo(np.float64).tiny))


def build_finding(series: Series, target: Stretch, match: Match, compared: int) -> Finding:
    chance = min(1.0, match.chance * compared)
    return Finding(
        kind=NAME,
        start_at=float(target.times_at[0]),
        end_at=float(target.times_at[-1]),
        confidence=max(0.0, min(0.999, 1 - chance)),
        magnitude=abs(match.correlation),
        unit="",
        sentence=render_sentence(series, target, match),
        measures={
            "other": match.other.metric,
            "other_container": match.other.container,
            "correlation": match.correlation,
            "lag_seconds": match.lag_seconds,
        },
        evidence={
            "samples": target.present,
            "independent_samples": match.independent,
            "chance": match.chance,
            "series_compared": compared,
            "false_discoveries": FALSE_DISCOVERIES,
        },
    )


def name_series(one: Series, other: Series) -> str:
    """With whose it is, where the two are of different containers."""
    return (
        f'{one.name} of "{one.container}"' if one.container and one.container != other.container else one.name
    )


def render_sentence(series: Series, target: Stretch, match: Match) -> str:
    way = "with" if match.correlation > 0 else "against"
    if abs(match.lag_seconds) < target.interval_seconds:
        when = "at the same time"
    else:
        order = "earlier" if match.lag_seconds > 0 else "later"
        when = f"{render_seconds(abs(match.lag_seconds))} {order}"
    start, end = render_time(float(target.times_at[0])), render_time(float(target.times_at[-1]))
    return (
        f"{capitalise(name_series(match.other, series))} moved {way} {name_series(series, match.other)}, {when} "
        f"(correlation {match.correlation:.2f}, {start} to {end})."
    )
