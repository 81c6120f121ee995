"""
How well the anomaly study keeps its promises: `python -m bench.anomalies [--seed N] [--size N] [NAB FOLDER]`.

False alarms on calm series, anomalies found by kind with how exactly they are placed, several
metrics together, the run time on a day of seconds, and the score on a folder of NAB.
"""

import argparse
import secrets
import time
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from bench import anomaly_sets as sets
from bench import nab
from bench.studies_sets import FloatArray
from nodescope.use.studies import Finding, Series, anomaly

START_AT = 1_700_000_000.0
CALM_SAMPLES = (600, 1200, 3600)


def ask(values: FloatArray) -> tuple[Finding, ...]:
    times_at = START_AT + np.arange(len(values), dtype=np.float64)
    return anomaly.study(Series(times_at, values, metric="value")).findings


def false_alarms(random: np.random.Generator, size: int) -> Iterator[tuple[str, int, float]]:
    """By kind of calm noise and number of samples: the share of questions that raised an alarm."""
    for name, make in sets.CALM.items():
        for count in CALM_SAMPLES:
            raised = sum(bool(ask(make(random, count))) for _ in range(size))
            yield name, count, raised / size


def found_by_kind(random: np.random.Generator, size: int) -> Iterator[tuple[str, float, float]]:
    """By kind of anomaly: the share that was found, and the median error of its start in samples."""
    for name in sets.KINDS:
        cases = [sets.unusual_case(random, name) for _ in range(size)]
        errors = [error for case in cases if (error := start_error(case)) is not None]
        yield name, len(errors) / size, float(np.median(errors)) if errors else float("nan")


def start_error(case: sets.UnusualCase) -> float | None:
    """Of the finding that overlaps it and begins nearest; None where none does."""
    spans = [(one.start_at - START_AT, one.end_at - START_AT + 1) for one in ask(case.values)]
    errors = [abs(start - case.start) for start, end in spans if start < case.end and end > case.start]
    return min(errors, default=None)


def score_nab(folder: Path) -> tuple[float, tuple[int, int, int]]:
    """The standard score of a watch that asks every hour; windows found, windows, false alarms."""
    labelled = nab.read_folder(folder)
    scored = nab.score_folder(labelled, alarm_samples)
    return scored.score, nab.hits_of(labelled, scored)


def alarm_samples(series: Series) -> list[int]:
    told = [float(one.measures["told_at"] or 0) for one in anomaly.alarms(series)]
    return [int(place) for place in np.searchsorted(series.times_at, told)]


def measure_day(random: np.random.Generator) -> tuple[float, float]:
    """CPU seconds and MiB for a day of seconds."""
    values = sets.CALM["cron 300 s"](random, 86_400)
    began = time.process_time()
    ask(values)
    spent = time.process_time() - began
    tracemalloc.start()
    ask(values)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return spent, peak / 2**20


def main() -> int:
    parser = argparse.ArgumentParser(description="Measure the anomaly study.")
    parser.add_argument("folder", nargs="?", type=Path, help="of NAB: windows.json and the series it names")
    parser.add_argument("--seed", type=int, default=None, help="chosen at run time if left out")
    parser.add_argument("--size", type=int, default=20, help="series of each kind")
    arguments = parser.parse_args()
    seed = secrets.randbelow(2**32) if arguments.seed is None else arguments.seed
    random = np.random.default_rng(seed)
    print(f"Seed {seed}, {arguments.size} series of each kind")
    spent, mebibytes = measure_day(random)
    print(f"A day of seconds: {spent:.3f} s of CPU, {mebibytes:.0f} MiB")
    if arguments.folder:
        score, (found, windows, false) = score_nab(arguments.folder)
        print(f"NAB, standard profile: {score:.1f}; {found} of {windows} windows, {false} false alarms")
    print(f"False alarms by samples (stated {anomaly.FALSE_ALARMS:.0%})")
    for name, count, share in false_alarms(random, arguments.size):
        print(f"  {name:36} {count:6} {share:.3f}")
    print("Found, and the median error of the start in samples")
    for name, share, error in found_by_kind(random, arguments.size):
        print(f"  {name:36} {share:.2f} {error:6.0f}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
