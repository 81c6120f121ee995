"""
The studies beside libraries that could do a part of them: `python -m bench.study_libraries [--seed N] [--size N]`.

    statsmodels   a local level with drift by maximum likelihood, futures simulated, for a time to the limit
    ruptures      kernel change points (its compiled search), penalty 3 ln n, noise of deviation 1
    stumpy        the matrix profile, for an unusual newest tenth
    scipy         periodogram with Fisher's test, for a period

The libraries are no dependencies: install them into a folder and put that on PYTHONPATH. One that is
missing is named and left out. Both sides see the same generated series; the seconds are of CPU, for one series.
"""

import argparse
import secrets
import time
import warnings
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

import numpy as np
from tools.eval_forecasts import Told, ask

from bench import anomaly_sets, change_sets, growth_sets, period_sets
from bench.anomalies import ask as ask_anomaly
from bench.studies_sets import FloatArray
from nodescope.use.studies import Series, changepoint

# What statsmodels sees of a path, and how many futures it draws.
BUCKETS, FUTURES = 128, 200

LEAKS = ("white", "AR(0.99)", "random-walk drift", "load-driven", "starts in the span", "collector by time")
NO_CHANGES = ("white", "AR 0.9", "random walk", "cron 60 s, jitter", "on/off bursts")
CHANGES = ("step 1 sd", "step 4 sd, AR 0.9", "slope +3 sd", "noise x2", "spikes begin")
CALM = ("white", "AR(0.99)", "heavy tails", "bursts")
UNUSUAL = ("+5 sd for 60 s, white", "+5 sd for 60 s, cron 300 s", "frozen, white", "sine stops")
PERIODIC = ("cron with jitter", "1 s every 60 s", "nested pulses", "collector sawtooth", "sine")
APERIODIC = ("white", "AR(0.9)", "random walk", "Poisson events", "steps")

# Samples of a piece of the matrix profile.
PIECE = 60
FISHER = 0.01
SHOWN = 0.5

Interval = tuple[float, float]


class Clock:
    """Counts the CPU time of what it calls."""

    def __init__(self) -> None:
        self.spent, self.calls = 0.0, 0

    def run(self, function: Callable[[Any], Any], given: object) -> Any:
        began = time.process_time()
        made = function(given)
        self.spent, self.calls = self.spent + time.process_time() - began, self.calls + 1
        return made

    def __str__(self) -> str:
        return f"{self.spent / max(self.calls, 1):.3f} s"


# -- statsmodels: when memory touches its limit -------------------------------------------


def state_space(case: growth_sets.GrowthCase) -> Interval:
    """In samples: of futures from a local level with drift, fitted to means of buckets."""
    structural = import_module("statsmodels.tsa.statespace.structural")
    width = len(case.values) // BUCKETS
    heights = case.values[len(case.values) - BUCKETS * width :].reshape(BUCKETS, width).mean(axis=1)
    size = float(np.ptp(heights)) or 1.0
    model = structural.UnobservedComponents((heights - heights[0]) / size, "lldtrend")
    fitted = model.fit(disp=False)
    steps = growth_sets.SPANS * BUCKETS
    random = np.random.default_rng(1)
    state = fitted.filtered_state[:, -1]
    spread = np.linalg.cholesky(fitted.filtered_state_cov[:, :, -1] + 1e-12 * np.eye(len(state)))
    # The first parameter is the variance of the meter, which is no part of the path.
    level = max(float(fitted.params[1]), 0.0)
    starts = state + random.standard_normal((FUTURES, len(state))) @ spread.T
    moves = starts[:, 1:2] + np.sqrt(level) * random.standard_normal((FUTURES, steps))
    paths = starts[:, :1] + np.cumsum(moves, axis=1)
    moments: FloatArray = np.asarray(width * (np.arange(steps) + 0.5), dtype=np.float64)
    limit = (case.limit - heights[0]) / size
    times = growth_sets.first_passages(moments, paths, limit)
    low, high = np.quantile(times, [0.05, 0.95], method="nearest")
    return float(low), float(high)


def told_interval(case: growth_sets.GrowthCase) -> Interval:
    told = Told(case, ask(case))
    return told.bounds if told.is_timed else (np.nan, np.nan)


def forecasts(random: np.random.Generator, size: int) -> Iterator[str]:
    ours, theirs = Clock(), Clock()
    yield "class                        inside: ours  statsmodels   width over oracle: ours  statsmodels"
    for kind in LEAKS:
        cases = [growth_sets.growth_case(random, kind) for _ in range(size)]
        rows = [
            (case, clock.run(function, case))
            for clock, function in ((ours, told_interval), (theirs, state_space))
            for case in cases
        ]
        (inside, width), (their_inside, their_width) = (scored(rows[:size]), scored(rows[size:]))
        yield f"  {kind:26} {inside:12.2f} {their_inside:12.2f} {width:24.2f} {their_width:12.2f}"
    yield f"  CPU: ours {ours}, statsmodels {theirs}"


def scored(rows: list[tuple[growth_sets.GrowthCase, Interval]]) -> tuple[float, float]:
    """Of those with an interval: the share that holds, and the median width over the oracle's."""
    told = [(case, low, high) for case, (low, high) in rows if not np.isnan(low)]
    inside = [low <= case.samples_to_limit <= high for case, low, high in told]
    ratios = [(high - low) / max(case.oracle_high - case.oracle_low, 1.0) for case, low, high in told]
    return float(np.mean(inside)), float(np.median(ratios))


# -- ruptures: change points ---------------------------------------------------------------


def kernel_changes(kernel: str) -> Callable[[FloatArray], list[int]]:
    def find(values: FloatArray) -> list[int]:
        scaled = (values - values.mean()) / (values.std() or 1.0)
        search = import_module("ruptures").KernelCPD(kernel=kernel, min_size=5).fit(scaled)
        return [int(place) for place in search.predict(pen=3 * np.log(len(values)))[:-1]]

    return find


def our_changes(values: FloatArray) -> list[int]:
    series = Series(np.arange(len(values), dtype=np.float64), values, metric="value")
    return [round(one.at or 0.0) for one in changepoint.study(series).findings if one.confidence >= SHOWN]


def changes(random: np.random.Generator, size: int) -> Iterator[str]:
    finders = {
        "ours": our_changes,
        "linear kernel": kernel_changes("linear"),
        "rbf kernel": kernel_changes("rbf"),
    }
    clocks = {name: Clock() for name in finders}
    yield "class, n = 1,200          " + "".join(f"{name:>16}" for name in finders)
    for kind in NO_CHANGES:
        made = [change_sets.FIRST[kind](random, 1200).astype(np.float64) for _ in range(size)]
        false = {
            name: sum(len(clocks[name].run(find, values)) for values in made)
            for name, find in finders.items()
        }
        yield f"  {kind:24}" + "".join(
            f"{1000 * count / size / 1200:11.2f} false" for count in false.values()
        )
    for kind in CHANGES:
        cases = [change_sets.TO_FIND[kind](random, 1200) for _ in range(size)]
        right = {
            name: np.mean([any(map(case.is_real, clocks[name].run(find, case.values))) for case in cases])
            for name, find in finders.items()
        }
        yield f"  {kind:24}" + "".join(f"{share:11.2f} found" for share in right.values())
    yield "  CPU: " + ", ".join(f"{name} {clock}" for name, clock in clocks.items())


# -- stumpy: the newest tenth ---------------------------------------------------------------


def is_discord(values: FloatArray) -> bool:
    """The farthest piece of the newest tenth is farther from its nearest neighbour than every piece before."""
    profile = import_module("stumpy").stump(values, PIECE)[:, 0].astype(np.float64)
    newest = len(values) - len(values) // 10 - PIECE
    return bool(profile[newest:].max() > profile[:newest].max())


def anomalies(random: np.random.Generator, size: int) -> Iterator[str]:
    ours, theirs = Clock(), Clock()
    is_discord(random.standard_normal(600))  # numba compiles at the first call
    yield "class                             alarms: ours   stumpy"
    for kind in (*CALM, *UNUSUAL):
        made = [
            anomaly_sets.CALM[kind](random, 3600)
            if kind in CALM
            else anomaly_sets.unusual_case(random, kind).values
            for _ in range(size)
        ]
        told = [bool(ours.run(ask_anomaly, values)) for values in made]
        discords = [theirs.run(is_discord, values) for values in made]
        yield f"  {kind:32} {np.mean(told):12.2f} {np.mean(discords):8.2f}"
    yield f"  CPU: ours {ours}, stumpy {theirs}"


# -- scipy: periods -------------------------------------------------------------------------


def fisher_period(values: FloatArray) -> list[float]:
    """The highest line of the periodogram where Fisher's test says that noise without memory has none such."""
    known = np.where(np.isfinite(values), values, np.nanmean(values))
    frequencies, power = import_module("scipy.signal").periodogram(known, detrend="linear")
    frequencies, power = frequencies[1:], power[1:]
    chance = len(power) * (1 - power.max() / power.sum()) ** (len(power) - 1)
    return [1 / float(frequencies[int(np.argmax(power))])] if chance < FISHER else []


def our_periods(values: FloatArray) -> list[float]:
    findings = period_sets.ask_study(values).findings
    return [period_sets.period_of(one) for one in findings if not period_sets.is_rough(one)]


def periods(random: np.random.Generator, size: int) -> Iterator[str]:
    ours, theirs = Clock(), Clock()
    yield "class                        ours    scipy"
    for kind in PERIODIC:
        cases = [period_sets.PERIODIC[kind](random) for _ in range(size)]
        found = [
            np.mean([has_first(clock.run(function, case.values), case) for case in cases])
            for clock, function in ((ours, our_periods), (theirs, fisher_period))
        ]
        yield f"  {kind:24} {found[0]:7.2f} {found[1]:8.2f}  found"
    for kind in APERIODIC:
        made = [period_sets.APERIODIC[kind](random) for _ in range(size)]
        told = [
            np.mean([bool(clock.run(function, values)) for values in made])
            for clock, function in ((ours, our_periods), (theirs, fisher_period))
        ]
        yield f"  {kind:24} {told[0]:7.2f} {told[1]:8.2f}  false"
    yield f"  CPU: ours {ours}, scipy {theirs}"


def has_first(told: list[float], case: period_sets.Planted) -> bool:
    return any(period_sets.is_right(one, case.periods[0]) for one in told)


PARTS = {"statsmodels": forecasts, "ruptures": changes, "stumpy": anomalies, "scipy": periods}


def main() -> int:
    parser = argparse.ArgumentParser(description="Compare the studies with libraries.")
    parser.add_argument("--seed", type=int, default=None, help="chosen at run time if left out")
    parser.add_argument("--size", type=int, default=20, help="series of each class")
    parser.add_argument("--only", default=",".join(PARTS), help="libraries, separated by commas")
    arguments = parser.parse_args()
    seed = secrets.randbelow(2**32) if arguments.seed is None else arguments.seed
    print(f"Seed {seed}, {arguments.size} series of each class")
    for library, part in PARTS.items():
        if library in arguments.only.split(","):
            print_part(library, part, np.random.default_rng(seed), arguments.size)
    return 0


def print_part(
    library: str,
    part: Callable[[np.random.Generator, int], Iterator[str]],
    random: np.random.Generator,
    size: int,
) -> None:
    try:
        import_module(library)
    except ImportError:
        print(f"\n{library} is not installed")
        return
    print(f"\n{library} {import_module('importlib.metadata').version(library)}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for line in part(random, size):
            print(line, flush=True)


if __name__ == "__main__":
    raise SystemExit(main())
