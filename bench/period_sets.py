"""
Generated series whose periods are known, by class; and the score of the periodicity study on them.

    python -m bench.period_sets [--seed N] [--size SERIES_PER_CLASS] [--only CLASS] [--fit]

The classes are what a container's metrics show: cron jobs with jitter, short
spikes, jobs within jobs, the sawtooth of a garbage collector, waves in noise, a
job of one hour in a day, cycles without a clock; and what does not repeat. Heights are in
units of the noise. A report is right within 3 % (or a sample) of a planted
period; harmonics and multiples are wrong.
"""

import argparse
import secrets
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from bench.studies_sets import APERIODIC as STUDIES_APERIODIC
from bench.studies_sets import (
    IMPAIRMENTS,
    aperiodic_case,
    autoregressive,
    periodic_case,
    pink,
    random_walk,
)
from nodescope.use.studies import Series, StudyAnswer, periodicity
from nodescope.use.studies.finding import Finding

FloatArray = NDArray[np.float64]
START_AT = 1_700_000_000.0


@dataclass(frozen=True)
class Planted:
    """A series; the periods that are in it; whether it is only roughly periodic."""

    values: FloatArray
    periods: tuple[float, ...]
    roughly: bool = False


Make = Callable[[np.random.Generator], Planted]


def log_uniform(random: np.random.Generator, low: float, high: float) -> float:
    return float(np.exp(random.uniform(np.log(low), np.log(high))))


def background(random: np.random.Generator, count: int) -> FloatArray:
    """Noise of unit deviation: normal, lognormal, of heavy tails or with a short memory."""
    kind = random.integers(4)
    if kind == 3:
        return np.asarray(random.standard_t(4, count) / np.sqrt(2))
    if kind == 0:
        return random.standard_normal(count)
    if kind == 1:
        raw = np.exp(0.3 * random.standard_normal(count))
        return np.asarray((raw - raw.mean()) / raw.std())
    return autoregressive(random, count, float(random.uniform(0.2, 0.7)))


def pulse_times(
    random: np.random.Generator, count: int, period: float, jitter: float, *, adds_up: bool = False
) -> FloatArray:
    """Starts of pulses; the jitter is each one's own (cron) or adds up (a loop with a sleep)."""
    slots = np.arange(int(count / period) + 2)
    offset = float(random.uniform(0, period))
    shifts = random.normal(0, jitter, len(slots)) if jitter else np.zeros(len(slots))
    return np.asarray(offset + slots * period + (np.cumsum(shifts) if adds_up else shifts))


def pulses(
    random: np.random.Generator, count: int, starts: FloatArray, width: float, height: float
) -> FloatArray:
    """Work of width seconds from each start; the part of a second at both ends is partly full."""
    fine = np.zeros(count + 1)
    for start in starts:
        low, high = max(0.0, start), min(float(count), start + width * random.uniform(0.9, 1.1))
        if high <= low:
            continue
        first, last = int(low), int(high)
        if first == last:
            fine[first] += high - low
            continue
        fine[first] += first + 1 - low
        fine[first + 1 : last] += 1
        fine[last] += high - last
    return np.asarray(height * np.minimum(fine[:count], 1.0))


def cron_with_jitter(random: np.random.Generator) -> Planted:
    """Each start early or late by up to 5 %, delayed by up to 15 %, or after a sleep that varies by 3 %."""
    count = int(random.integers(1200, 7201))
    period = float(min(random.choice([20, 30, 60, 90, 120, 300]), count // 10))
    kind = int(random.integers(3))
    if kind == 0:
        starts = pulse_times(random, count, period, float(random.uniform(0.01, 0.05) * period))
    elif kind == 1:
        starts = pulse_times(random, count, period, 0.0)
        starts = starts + random.uniform(0, random.uniform(0.02, 0.15) * period, len(starts))
    else:
        starts = pulse_times(random, count, period, float(random.uniform(0.005, 0.03) * period), adds_up=True)
        period = float(np.diff(starts[starts < count]).mean())
    width = log_uniform(random, 1.5, 0.2 * period)
    height = max(4.0, 7.0 / np.sqrt(width)) * log_uniform(random, 1, 4)
    return Planted(background(random, count) + pulses(random, count, starts, width, height), (period,))


def spikes(random: np.random.Generator) -> Planted:
    """One second every minute."""
    count = int(random.integers(1200, 7201))
    work = np.zeros(count)
    work[int(random.integers(60)) :: 60] = log_uniform(random, 5, 20)
    return Planted(background(random, count) + work, (60.0,))


def sparse_pulses(random: np.random.Generator) -> Planted:
    """A duty of 0.3 to 3 %."""
    count = int(random.integers(3600, 14_401))
    period = log_uniform(random, 60, count / 6)
    width = max(1.0, period * log_uniform(random, 0.003, 0.03))
    starts = pulse_times(random, count, period, 0.0)
    return Planted(
        background(random, count) + pulses(random, count, starts, width, random.uniform(6, 20)), (period,)
    )


def nested_pulses(random: np.random.Generator) -> Planted:
    """A short job often, and a longer or larger one at a multiple of its period (60 and 600 s)."""
    short = float(random.choice([20, 30, 60]))
    long = short * float(random.choice([5, 6, 10]))
    count = int(long * random.integers(6, 14))
    height = random.uniform(6, 15)
    offset = float(random.uniform(0, short))
    width = random.uniform(1.5, 0.15 * short)
    starts = offset + short * np.arange(count // short + 1)
    later = 0.0 if random.random() < 0.5 else float(random.uniform(0.2, 0.6) * short)
    longer = offset + later + long * np.arange(count // long + 1)
    work = pulses(random, count, starts, width, height)
    work += pulses(random, count, longer, width * random.uniform(1.5, 4), height * random.uniform(0.8, 2))
    return Planted(background(random, count) + work, (short, long))


def collector_sawtooth(random: np.random.Generator) -> Planted:
    """A heap that fills and is collected: each cycle a little longer or shorter."""
    count = int(random.integers(1200, 7201))
    period = log_uniform(random, 20, count / 8)
    lengths = period * (1 + random.uniform(0.0, 0.1) * random.standard_normal(int(count / period) * 2 + 4))
    edges = np.cumsum(np.maximum(lengths, 0.5 * period)) - random.uniform(0, period)
    edges = np.concatenate(([edges[0] - period], edges))
    cycle = np.clip(np.searchsorted(edges, np.arange(count), side="right") - 1, 0, len(edges) - 2)
    filled = (np.arange(count) - edges[cycle]) / (edges[cycle + 1] - edges[cycle])
    seen = np.diff(edges)[: cycle[-1] + 1]
    return Planted(random.uniform(4, 20) * filled + background(random, count), (float(seen.mean()),))


def one_hour_of_a_day(random: np.random.Generator) -> Planted:
    """A job of 4 s every minute, in one hour of a day."""
    count = 86_400
    start = int(random.integers(0, count - 3600))
    work = np.zeros(count)
    starts = pulse_times(random, 3600, 60.0, float(random.uniform(0, 1)))
    work[start : start + 3600] = pulses(random, 3600, starts, 4.0, random.uniform(4, 15))
    return Planted(random.standard_normal(count) + work, (60.0,))


def wave(random: np.random.Generator, shape: str) -> Planted:
    count = int(random.integers(600, 7201))
    period = log_uniform(random, 5, count / 8)
    phase = np.arange(count) / period + random.random()
    signal = np.sin(2 * np.pi * phase) if shape == "sine" else np.where(phase % 1 < 0.5, 0.7, -0.7)
    noise = (
        random.standard_normal(count)
        if random.random() < 0.5
        else autoregressive(random, count, float(random.uniform(0.5, 0.9)))
    )
    return Planted(signal * random.uniform(1, 3) + noise, (period,))


def long_period(random: np.random.Generator) -> Planted:
    """A busy container whose load swings slowly, with the noise of every second on top."""
    count, period = ((3600, 420.0), (21_600, 1500.0))[int(random.integers(2))]
    phase = np.arange(count) / period + random.random()
    shape = int(random.integers(3))
    load = (np.sin(2 * np.pi * phase), np.where(phase % 1 < 0.4, 1.0, 0.0), np.abs(phase % 1 - 0.5) * 2)[
        shape
    ]
    noise = 0.5 * random.standard_normal(count) + 0.4 * autoregressive(random, count, 0.8)
    chatter = 0.3 * np.sin(2 * np.pi * np.arange(count) / random.uniform(2, 4) + random.random())
    grain = np.exp(0.2 * random.standard_normal(count))
    return Planted((2 + random.uniform(0.6, 1.5) * load) * grain + 0.3 * (noise + chatter), (period,))


def with_trend(random: np.random.Generator) -> Planted:
    """A wave or pulses on a slow, large trend."""
    made = wave(random, "sine") if random.random() < 0.5 else cron_with_jitter(random)
    at = np.linspace(0, 1, len(made.values))
    slow = random.choice(3)
    size = random.uniform(10, 60) * random.choice([-1, 1])
    trend = size * (at, at * at, np.sin(np.pi * at * 0.9))[slow]
    return Planted(made.values + trend, made.periods)


def with_missing(random: np.random.Generator) -> Planted:
    made = wave(random, "square") if random.random() < 0.5 else cron_with_jitter(random)
    values = made.values.copy()
    values[random.random(len(values)) < random.uniform(0.02, 0.15)] = np.nan
    return Planted(values, made.periods)


def begins_midway(random: np.random.Generator) -> Planted:
    """A cron job that exists since the middle of the window."""
    count = int(random.integers(3600, 10_801))
    period = float(random.choice([30, 60, 120]))
    starts = pulse_times(random, count, period, 0.5)
    starts = starts[starts > count * random.uniform(0.3, 0.7)]
    work = pulses(random, count, starts, log_uniform(random, 2, 0.2 * period), random.uniform(5, 15))
    return Planted(background(random, count) + work, (period,))


def stochastic_cycle(random: np.random.Generator) -> Planted:
    """AR(2) with complex roots: it swings, and forgets its phase within a few cycles."""
    count = int(random.integers(1200, 7201))
    period = log_uniform(random, 8, count / 15)
    damping = float(np.exp(-1 / (period * random.uniform(1.0, 5.0))))
    a, b = 2 * damping * np.cos(2 * np.pi / period), -damping * damping
    shocks = random.standard_normal(count + 2000)
    values = np.zeros(count + 2000)
    for place in range(2, len(values)):
        values[place] = a * values[place - 1] + b * values[place - 2] + shocks[place]
    kept = values[2000:] / values[2000:].std()
    return Planted(kept + 0.2 * random.standard_normal(count), (period,), roughly=True)


PERIODIC: dict[str, Make] = {
    "cron with jitter": cron_with_jitter,
    "1 s every 60 s": spikes,
    "duty below 3 %": sparse_pulses,
    "nested pulses": nested_pulses,
    "collector sawtooth": collector_sawtooth,
    "one hour of a day": one_hour_of_a_day,
    "sine": lambda random: wave(random, "sine"),
    "square wave": lambda random: wave(random, "square"),
    "long in a busy container": long_period,
    "slow large trend": with_trend,
    "missing samples": with_missing,
    "begins midway": begins_midway,
}

ROUGH: dict[str, Make] = {"stochastic cycle": stochastic_cycle}


def some(random: np.random.Generator) -> int:
    return int(random.integers(600, 7201))


def poisson_events(random: np.random.Generator) -> FloatArray:
    """Jobs of a fixed length at random times."""
    count = some(random)
    starts = np.sort(random.uniform(0, count, random.poisson(count / log_uniform(random, 20, 200))))
    work = pulses(random, count, starts, log_uniform(random, 1.5, 12), random.uniform(5, 20))
    return background(random, count) + work


def on_off(random: np.random.Generator) -> FloatArray:
    """Busy and idle for exponential times."""
    count = some(random)
    busy, idle = log_uniform(random, 3, 60), log_uniform(random, 10, 200)
    times = random.exponential(1, 2 * (count // 10 + 20)) * np.tile([idle, busy], count // 10 + 20)
    state = np.searchsorted(np.cumsum(times), np.arange(count)) % 2
    return random.uniform(3, 15) * state + background(random, count)


def pareto(random: np.random.Generator) -> FloatArray:
    return random.pareto(random.uniform(1.2, 3), some(random))


def steps(random: np.random.Generator) -> FloatArray:
    count = some(random)
    values = background(random, count)
    for at in random.integers(0, count, random.integers(2, 14)):
        values[at:] += random.normal(0, 5)
    return values


def quantised(random: np.random.Generator) -> FloatArray:
    """A value that is nearly always the same, and a few others at random."""
    count = some(random)
    return np.where(random.random(count) < random.uniform(0.003, 0.1), random.integers(1, 4, count), 0) * 1.0


APERIODIC: dict[str, Callable[[np.random.Generator], FloatArray]] = {
    "white": lambda random: random.standard_normal(some(random)),
    "AR(0.5)": lambda random: autoregressive(random, some(random), 0.5),
    "AR(0.9)": lambda random: autoregressive(random, some(random), 0.9),
    "AR(0.99)": lambda random: autoregressive(random, some(random), 0.99),
    "pink": lambda random: pink(random, some(random)),
    "random walk": lambda random: random_walk(random, some(random)),
    "Poisson events": poisson_events,
    "on/off bursts": on_off,
    "Pareto": pareto,
    "steps": steps,
    "quantised": quantised,
}


@dataclass
class ClassScore:
    """Of one class: planted periods and those found, reports and wrong ones, series with any report, findings' confidence."""

    series: int = 0
    planted: int = 0
    found: int = 0
    reports: int = 0
    right: int = 0
    reported_on: int = 0
    rough: int = 0
    confidence: list[tuple[float, bool]] = field(default_factory=list)

    @property
    def recall(self) -> float:
        return self.found / self.planted if self.planted else float("nan")

    @property
    def precision(self) -> float:
        return self.right / self.reports if self.reports else 1.0


Ask = Callable[[FloatArray], StudyAnswer]


def ask_study(values: FloatArray) -> StudyAnswer:
    times_at = START_AT + np.arange(len(values), dtype=np.float64)
    return periodicity.study(Series(times_at, values, metric="value"))


def score_periods(
    seed: int, size: int, ask: Ask = ask_study, only: str | None = None
) -> dict[str, ClassScore]:
    """Every class, size series each: what a table may print. A report said to be rough is no period."""
    makers: dict[str, Make] = {**PERIODIC, **ROUGH}
    for name, make in APERIODIC.items():
        makers[name] = lambda random, make=make: Planted(make(random), ())  # type: ignore[misc]
    scores: dict[str, ClassScore] = {}
    for name, maker in makers.items():
        if only is None or only in name:
            random = np.random.default_rng([seed, sum(map(ord, name))])
            scores[name] = ClassScore()
            for _ in range(size):
                count_in(scores[name], maker(random), ask)
    return scores


def count_in(score: ClassScore, made: Planted, ask: Ask) -> None:
    findings = ask(made.values).findings
    told = [period_of(finding) for finding in findings if not is_rough(finding)]
    roughly = [period_of(finding) for finding in findings if is_rough(finding)]
    score.series += 1
    score.rough += len(roughly)
    if made.roughly:
        score.planted += 1
        score.found += any(abs(one / made.periods[0] - 1) <= 0.25 for one in roughly)
        right = [False] * len(told)
    else:
        score.planted += len(made.periods)
        score.found += sum(any(is_right(one, true) for one in told) for true in made.periods)
        right = [any(is_right(one, true) for true in made.periods) for one in told]
    score.reports += len(told)
    score.right += sum(right)
    score.reported_on += bool(told)
    sure = [finding.confidence for finding in findings if not is_rough(finding)]
    score.confidence += list(zip(sure, right))


def is_rough(finding: Finding) -> bool:
    return finding.measures.get("regularity") == "rough"


def is_right(period: float, true: float) -> bool:
    return abs(period - true) <= max(1.0, 0.03 * true)


@dataclass(frozen=True)
class Judged:
    """A finding told as a period: what kind, its evidence, its confidence, and whether it was planted."""

    is_train: bool
    evidence: float
    confidence: float
    is_right: bool


def judged_here(seed: int, size: int) -> list[Judged]:
    """The findings on the classes of this file, a day's aside (one in twenty of the cost each)."""
    random = np.random.default_rng(seed)
    made = [
        make(random) for name, make in (PERIODIC | ROUGH).items() for _ in range(size) if "day" not in name
    ]
    noise = [Planted(make(random), ()) for make in APERIODIC.values() for _ in range(size)]
    return [one for case in made + noise for one in judged_in(case)]


def judged_elsewhere(seed: int, size: int) -> list[Judged]:
    """The findings on the other family (bench/studies_sets.py), which no constant was fitted to."""
    random = np.random.default_rng(seed)
    periodic = [periodic_case(random, kind) for kind in IMPAIRMENTS for _ in range(size)]
    noise = [aperiodic_case(random, kind) for kind in STUDIES_APERIODIC for _ in range(size)]
    return [one for case in periodic + noise for one in judged_in(Planted(case.values, case.periods))]


def judged_in(made: Planted) -> list[Judged]:
    return [
        Judged(
            "events" in finding.evidence,
            evidence_of(finding),
            finding.confidence,
            not made.roughly and any(is_right(period_of(finding), true) for true in made.periods),
        )
        for finding in ask_study(made.values).findings
        if not is_rough(finding)
    ]


def evidence_of(finding: Finding) -> float:
    """Nats against chance, of a train; the t value of its cycles, of a wave."""
    if "events" in finding.evidence:
        return -float(np.log(max(float(finding.evidence["false_alarm"] or 0), 1e-300)))
    return float(finding.evidence["agreement_t"] or 0)


def period_of(finding: Finding) -> float:
    return float(finding.measures["period_seconds"] or 0)


def print_fit(seed: int, size: int) -> None:
    """The constants of use/studies/maths/confidence.py, fitted here, and the shares that they state on the other family."""
    here, elsewhere = judged_here(seed, size), judged_elsewhere(seed, size)
    for name, is_train in (("TRAIN", True), ("WAVE", False)):
        fitted = [one for one in here if one.is_train == is_train]
        offset, slope = logistic_over_log([one.evidence for one in fitted], [one.is_right for one in fitted])
        wrong = sum(not one.is_right for one in fitted)
        print(
            f"  {name}_OFFSET = {offset:.2f}   {name}_PER_LOG = {slope:.2f}   ({len(fitted)}, {wrong} wrong)"
        )
    for name, found in (("here", here), ("on the other family", elsewhere)):
        for low, high in ((0.0, 0.8), (0.8, 0.95), (0.95, 1.01)):
            inside = [one for one in found if low <= one.confidence < high]
            if inside:
                stated = np.mean([one.confidence for one in inside])
                print(
                    f"  {name:20} stated {stated:.3f}   real {np.mean([one.is_right for one in inside]):.3f}   ({len(inside)})"
                )


def logistic_over_log(evidence: list[float], right: list[bool]) -> tuple[float, float]:
    """Newton's method, drawn a little towards 0: nearly all of the findings are right."""
    columns = np.stack([np.ones(len(right)), np.log(np.maximum(evidence, 1e-3))], axis=1)
    truth, weights = np.array(right, dtype=np.float64), np.zeros(2)
    for _ in range(60):
        chance = 1 / (1 + np.exp(-columns @ weights))
        curvature = (columns * (chance * (1 - chance))[:, None]).T @ columns + 0.02 * np.eye(2)
        weights += np.linalg.solve(curvature, columns.T @ (truth - chance) - 0.02 * weights)
    return float(weights[0]), float(weights[1])


def main() -> int:
    parser = argparse.ArgumentParser(description="Score the periodicity study by class.")
    parser.add_argument("--fit", action="store_true", help="fit the confidence anew and print its constants")
    parser.add_argument("--seed", type=int, default=None, help="chosen at run time if left out")
    parser.add_argument("--size", type=int, default=60, help="series per class")
    parser.add_argument("--only", help="classes whose name contains this")
    arguments = parser.parse_args()
    seed = secrets.randbelow(2**32) if arguments.seed is None else arguments.seed
    if arguments.fit:
        print_fit(seed, arguments.size)
        return 0
    print(f"Periodicity by class, seed {seed}, {arguments.size} series each")
    scores = score_periods(seed, arguments.size, only=arguments.only)
    print_scores(scores)
    return 0


def print_scores(scores: dict[str, ClassScore]) -> None:
    print(f"  {'class':28} recall  precision  roughly  series with a report")
    for name, score in scores.items():
        print(
            f"  {name:28} {score.recall:6.2f} {score.precision:10.2f} {score.rough / score.series:8.2f}"
            f" {score.reported_on / score.series:10.3f}"
        )
    periodic = [score for name, score in scores.items() if name in PERIODIC]
    noise = [score for name, score in scores.items() if name in APERIODIC]
    if periodic:
        reports = sum(score.reports for score in periodic + noise)
        print(
            f"  recall {sum(one.found for one in periodic) / sum(one.planted for one in periodic):.3f}",
            end="",
        )
        print(f"   precision {sum(score.right for score in periodic) / max(reports, 1):.3f}")
    if noise:
        print(f"  false {sum(one.reported_on for one in noise) / sum(one.series for one in noise):.4f}")


if __name__ == "__main__":
    raise SystemExit(main())
