"""
Every way in which a series repeats: trains of pulses and edges, and waves of the spectrum.

Pulses are found by the times of their events and are taken out; the spectrum is
searched in what remains, over the whole series and over parts of it. A wave that
loses its phase is a cycle without a clock, and is told as "roughly every".
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from nodescope.use.studies.maths.confidence import train_confidence, wave_confidence
from nodescope.use.studies.maths.local_period import LocalPeriod, extent_of, find_local_periods
from nodescope.use.studies.maths.period_search import Period, explains_more, find_periods, standardised
from nodescope.use.studies.maths.phase_profile import mean_cycle
from nodescope.use.studies.maths.phase_stability import phase_stability
from nodescope.use.studies.maths.pulse_search import PulseTrain, covered_by, find_pulse_trains, is_edge
from nodescope.use.studies.maths.stretch import interpolated
from nodescope.use.studies.series import FloatArray

CycleKind = Literal["pulse", "dip", "jump", "fall", "wave"]

# The least share of a wave's power that keeps one phase: 0.9 up to thirty cycles, towards
# 0.72 for many. On generated series: waves 0.9 and more (0.8 where they hold in a
# part of the series), stochastic cycles 0.8 and less from thirty cycles on.
LEAST_PHASE_SHARE = 0.72
FEW_CYCLES_MORE = 0.18
FEW_CYCLES = 30.0

# Of a wave that holds in a part, the cycles elsewhere that are half as strong count, too.
STRONG_SHARE = 0.5

# Two waves whose periods differ by less than a quarter are one cycle without a clock.
BESIDE = 0.25

# A train that begins or ends within the series does so at least three periods, and a
# twentieth of the series, from its ends: fewer events may be missing by chance.
EDGE_PERIODS = 3.0
EDGE_SHARE = 0.05

# What keeps more than half of its height after a pulse is no pulse: a staircase, or a job that goes on
# for as long as it rests. Its level is that of so many samples at most beside it.
STAYING_SHARE = 0.5
MOST_BESIDE = 10

# Waves within 4 % of a train's period, or one cycle more or less over their part, are that train; at
# up to the tenth part of its period, within 2 %, and at every part, within one and a
# half spectral bins, they are what is left of its pulses.
SAME_PERIOD = 0.04
HARMONICS = 10
HARMONIC_SHARE = 0.02
HARMONIC_BINS = 1.5


@dataclass(frozen=True)
class Cycle:
    """
    A repetition in the samples [start, end); period, width and jitter are in samples.

    swing      by how much it rises, falls or swings, in the unit of the series
    strength   share of the variance that it explains
    stability  how alike its cycles are (waves), or the share of its slots with an event (trains)
    """

    kind: CycleKind
    period: float
    width: float | None
    jitter: float | None
    start: int
    end: int
    swing: float
    strength: float
    stability: float
    is_rough: bool
    confidence: float
    evidence: Mapping[str, float]


def find_cycles(values: FloatArray) -> list[Cycle]:
    """Trains and waves of an evenly sampled series; NaN where a sample is missing."""
    trains = find_pulse_trains(values)
    rest = np.where(covered_by(trains, len(values)), np.nan, values)
    waves = waves_of(rest, [train.period_seconds for train in trains])
    trains = tuple(train for train in trains if not is_part_of_wave(train, waves, rest))
    waves = [wave for wave in waves if not any(is_left_of(wave, train) for train in trains)]
    return [train_cycle(values, train) for train in trains] + wave_cycles(rest, waves)


def waves_of(values: FloatArray, known: list[float]) -> list[LocalPeriod]:
    periods = without_artefacts(values, find_periods(values))
    whole = [extent_of(period, len(values)) for period in periods]
    return whole + find_local_periods(values, known + [period.length for period in periods])


def without_artefacts(values: FloatArray, periods: list[Period]) -> list[Period]:
    """Without the second period where the first has no phase: its mean cycle was none, and took nothing away."""
    if len(periods) < 2:
        return periods
    first = extent_of(periods[0], len(values))
    return periods[:1] if loses_phase(kept_phase(values, first), first) else periods


def cycles_of(wave: LocalPeriod) -> float:
    return (wave.end - wave.start) / wave.period.length


def loses_phase(kept: float, wave: LocalPeriod) -> bool:
    return kept < LEAST_PHASE_SHARE + FEW_CYCLES_MORE * min(1.0, FEW_CYCLES / cycles_of(wave))


def kept_phase(values: FloatArray, wave: LocalPeriod) -> float:
    """In the part in which the wave holds, and over all of its strong cycles; the lower of both."""
    part, whole = standardised(values[wave.start : wave.end]), standardised(values)
    if part is None or whole is None:
        return 1.0
    length = wave.period.length
    return min(phase_stability(part, length), phase_stability(whole, length, STRONG_SHARE))


def is_beside(wave: LocalPeriod, other: LocalPeriod) -> bool:
    apart = abs(wave.period.length - other.period.length)
    overlap = min(wave.end, other.end) - max(wave.start, other.start)
    return overlap > 0 and apart <= BESIDE * max(wave.period.length, other.period.length)


def wave_cycles(values: FloatArray, waves: list[LocalPeriod]) -> list[Cycle]:
    """Of waves beside each other the strongest alone, as rough."""
    ranked = sorted(waves, key=lambda wave: -wave.period.fit.strength)
    kept: list[LocalPeriod] = []
    for wave in ranked:
        if not any(is_beside(wave, other) for other in kept):
            kept.append(wave)
    return [wave_cycle(values, wave, [other for other in waves if other is not wave]) for wave in kept]


def is_part_of_wave(train: PulseTrain, waves: list[LocalPeriod], values: FloatArray) -> bool:
    """A train of edges at a multiple of a wave's period that explains no more: edges that noise has not hidden."""
    if not is_edge(train):
        return False
    shorter = [wave.period for wave in waves if is_multiple(train.period_seconds, wave.period.length)]
    return any(not explains_more(values, period, train.period_seconds) for period in shorter)


def is_multiple(period: float, other: float) -> bool:
    ratio = period / other
    return round(ratio) >= 2 and abs(ratio - round(ratio)) <= SAME_PERIOD * ratio


def is_left_of(wave: LocalPeriod, train: PulseTrain) -> bool:
    """The same period as the train's, or one of its harmonics."""
    period = wave.period.length
    apart = abs(period - train.period_seconds)
    if apart <= max(SAME_PERIOD, period / (wave.end - wave.start)) * train.period_seconds:
        return True
    turns = train.period_seconds / period
    near = max(HARMONIC_SHARE * turns if turns <= HARMONICS else 0.0, HARMONIC_BINS * turns / cycles_of(wave))
    return turns > 1.5 and abs(turns - round(turns)) <= near


def span_of(train: PulseTrain, count: int) -> tuple[int, int]:
    """From the first event to a period after the last; from or to the series' own end where that is near."""
    near = max(EDGE_PERIODS * train.period_seconds, EDGE_SHARE * count)
    start, end = int(train.starts[0]), round(float(train.starts[-1]) + train.period_seconds)
    return 0 if start <= near else start, count if end >= count - near else end


def train_cycle(values: FloatArray, train: PulseTrain) -> Cycle:
    start, end = span_of(train, len(values))
    left = 0.0 if is_edge(train) else level_left(values, train)
    stays = left > STAYING_SHARE * abs(train.height)
    kind: CycleKind = ("jump" if train.kind == "pulse" else "fall") if stays else train.kind
    return Cycle(
        kind=kind,
        period=train.period_seconds,
        width=None if is_edge(train) or stays else train.width_seconds,
        jitter=train.jitter_seconds,
        start=start,
        end=end,
        swing=left if stays else train.height,
        strength=train_strength(values, train),
        stability=train.share,
        is_rough=not train.is_exact,
        confidence=train_confidence(train.false_alarm),
        evidence={"events": len(train.starts), "false_alarm": train.false_alarm},
    )


def level_left(values: FloatArray, train: PulseTrain) -> float:
    """By how much the usual pulse leaves the series higher than it found it (a dip: lower)."""
    width = max(1, round(train.width_seconds))
    beside = int(np.clip((train.period_seconds - width) / 4, 1, MOST_BESIDE))
    moved = [
        float(np.nanmedian(after) - np.nanmedian(before))
        for begin in train.starts.astype(np.int64)
        if np.isfinite(before := values[max(0, begin - beside) : begin]).any()
        and np.isfinite(after := values[begin + width : begin + width + beside]).any()
    ]
    return float(np.median(moved)) * (1.0 if train.kind == "pulse" else -1.0) if moved else 0.0


def train_strength(values: FloatArray, train: PulseTrain) -> float:
    """The share of the squared deviations from the median that is in the pulses; of a sawtooth, in the teeth."""
    even = interpolated(values)
    away = (even - np.median(even)) ** 2
    total = float(away.sum())
    if total <= 0:
        return 0.0
    if is_edge(train):
        return min(1.0, len(values) * train.height**2 / 12 / total)
    return float(away[covered_by([train], len(values))].sum()) / total


def wave_cycle(values: FloatArray, wave: LocalPeriod, others: list[LocalPeriod]) -> Cycle:
    fit = wave.period.fit
    part = values[wave.start : wave.end]
    standard = standardised(part)
    kept = kept_phase(values, wave)
    correlations = fit.correlations[np.isfinite(fit.correlations)]
    return Cycle(
        kind="wave",
        period=fit.period,
        width=None,
        jitter=None,
        start=wave.start,
        end=min(len(values), wave.end),
        swing=0.0 if standard is None else swing_of(part, fit.period),
        strength=min(max(fit.strength, 0.0), 1.0),
        stability=float(np.clip(np.median(correlations), 0.0, 1.0)),
        is_rough=loses_phase(kept, wave) or any(is_beside(wave, other) for other in others),
        confidence=wave_confidence(fit.t_value),
        evidence={
            "peak_over_noise": wave.period.ratio,
            "agreement_t": fit.t_value,
            "kept_phase_share": kept,
        },
    )


def swing_of(part: FloatArray, period: float) -> float:
    """Highest minus lowest point of the mean cycle, in the metric's unit."""
    measured = np.isfinite(part)
    cycle = mean_cycle(np.where(measured, part, np.nanmedian(part)), measured, period)
    return float(cycle.max() - cycle.min())
