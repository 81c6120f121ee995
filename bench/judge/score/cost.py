"""CPU seconds and memory of each study on a day of seconds."""

import time
import tracemalloc
from dataclasses import dataclass

import numpy as np

from bench.judge.make.case import MIB, Case, FloatArray, Random
from bench.judge.make.noise import autoregressive, white
from bench.judge.make.shapes import cron, day_curve
from bench.judge.section import Outcomes, Section
from bench.judge.table import Row, number_row
from nodescope.use.studies import STUDIES, Series

COUNT = 86_400
PART = "A study on a day of seconds, the dearest of five kinds"
SECONDS, FORECAST_SECONDS, MEMORY_MIB = 0.2, 0.5, 64.0


@dataclass(frozen=True)
class Cost:
    cpu_seconds: float
    peak_mib: float


def days(random: Random) -> dict[str, Case]:
    """Four kinds of day, and the end of one: what is short may cost no more."""
    seconds = np.arange(COUNT, dtype=np.float64)
    leak = 300 + 100 * seconds / COUNT + 2 * autoregressive(random, COUNT, 0.9)
    season = leak + 20 * day_curve(random, seconds)
    jobs = 1 + 0.1 * white(random, COUNT) + cron(random, COUNT, 60, 5, 1.0, 1.0)
    wander = 10 + autoregressive(random, COUNT, 0.99)
    return {
        "leak": memory(leak),
        "season and leak": memory(season),
        "job every minute": Case(jobs),
        "slow wander": Case(wander),
        "leak, two hours": memory(300 + 5 * (leak[-7200:] - leak[-7200])),
    }


def memory(values: FloatArray) -> Case:
    return Case(values * MIB, limit=500 * MIB, unit="bytes", metric="memory_usage_bytes")


def judge(name: str, random: Random) -> Cost:
    study, _, kind = name.partition(", ")
    case = days(random)[kind]
    others = [Series(case.times_at, white(random, len(case.values)), metric="other")]
    small = Case(case.values[:600], limit=case.limit)
    small.ask(study, [Series(small.times_at, small.values[::-1].copy(), metric="other")])
    began = time.process_time()
    case.ask(study, others)
    spent = time.process_time() - began
    tracemalloc.start()
    case.ask(study, others)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return Cost(spent, peak / MIB)


def rows(outcomes: Outcomes) -> list[Row]:
    """Of each study the dearest kind of series, by the better of two runs."""
    result = []
    for study in STUDIES:
        kinds = {name: costs for name, costs in outcomes.items() if name.startswith(f"{study}, ") and costs}
        if not kinds:
            continue
        spent = {name: min(one.cpu_seconds for one in costs) for name, costs in kinds.items()}
        peaks = {name: max(one.peak_mib for one in costs) for name, costs in kinds.items()}
        most = FORECAST_SECONDS if study == "trend" else SECONDS
        slow, large = max(spent, key=lambda name: spent[name]), max(peaks, key=lambda name: peaks[name])
        result += [
            number_row(PART, f"CPU: {slow}", spent[slow], most, len(kinds), " s"),
            number_row(PART, f"memory: {large}", peaks[large], MEMORY_MIB, len(kinds), " MiB"),
        ]
    return result


def counts(size: int) -> dict[str, int]:
    """Twice each: the better of two is less disturbed by what else runs."""
    kinds = days(np.random.default_rng(0))
    return {f"{study}, {kind}": min(2, size) for study in STUDIES for kind in kinds}


SECTION = Section("cost", counts, judge, rows)
