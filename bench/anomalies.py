"""
How well the anomaly study keeps its promises: `python -m bench.anomalies [--seed N] [--size N] [NAB FOLDER]`.

False alarms on calm series, anomalies found by kind with how exactly they are placed, several
metrics together, the run time on a day of seconds, and NAB's score on generated metrics of
machines and on a folder of NAB.
"""

import argparse
import secrets
import time
import tracemalloc
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from bench import anomaly_sets as sets
from bench import cloud_sets, nab
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


def score_nab(
    labelled: Sequence[nab.LabelledSeries], detect: nab.Detector
) -> tuple[float, tuple[int, int, int]]:
    """The standard score; windows found, windows, false alarms."""
    scored = nab.score_folder(labelled, detect)
    return scored.score, nab.hits_of(labelled, scored)


def walked(series: Series) -> list[int]:
    """The samples at which one walk through the series raises its alarms."""
    told = [float(one.measures["told_at"] or 0) for one in anomaly.alarms(series)]
    return [int(place) for place in np.searchsorted(series.times_at, told)]


def asked_hourly(series: Series) -> list[int]:
    """
    The samples at which the study, asked every hour about all there is so far, tells something new.

    New is what overlaps nothing that was told before.
    """
    each = max(1, round(3600 / float(np.median(np.diff(series.times_at)))))
    known: list[tuple[float, float]] = []
    alarms = []
    for end in range(each, len(series.values) + 1, each):
        part = replace(series, times_at=series.times_at[:end], values=series.values[:end])
        for one in anomaly.study(part).findings:
            if not any(one.start_at <= last and first <= one.end_at for first, last in known):
                alarms.append(end - 1)
            known.append((one.start_at, one.end_at))
    return alarms


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


def print_score(title: str, labelled: Sequence[nab.LabelledSeries], detect: nab.Detector) -> None:
    score, (found, windows, false) = score_nab(labelled, detect)
    print(f"{title}, standard profile: {score:.1f}; {found} of {windows} windows, {false} false alarms")


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
    cloud = cloud_sets.labelled(random, arguments.size)
    print_score("Generated metrics of machines, one walk", cloud, walked)
    if arguments.folder:
        labelled = nab.read_folder(arguments.folder)
        print_score("NAB, one walk", labelled, walked)
        print_score("NAB, asked every hour", labelled, asked_hourly)
    print(f"False alarms by samples (stated {anomaly.FALSE_ALARMS:.0%})")
    for name, count, share in false_alarms(random, arguments.size):
        print(f"  {name:36} {count:6} {share:.3f}")
    print("Found, and the median error of the start in samples")
    for name, share, error in found_by_kind(random, arguments.size):
        print(f"  {name:36} {share:.2f} {error:6.0f}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
