"""
What each study costs: an hour and a day at one sample a second.

    python -m bench.studies

The promise is 0.2 s for a day on one core, and growth no worse than linear.
Processor time of one core, the best of several runs: the machine's other work only ever adds.
"""

import time
from collections.abc import Callable

import numpy as np

from bench import studies_sets as sets
from nodescope.use.studies import STUDIES, Series, StudyAnswer, correlation

POINTS = (3_600, 86_400)
RUNS = 5
DAY_SECONDS_ALLOWED = 0.2
START_AT = 1_700_000_000.0

Ask = Callable[[Series], StudyAnswer]


def kinds(random: np.random.Generator, count: int) -> dict[str, np.ndarray[tuple[int], np.dtype[np.float64]]]:
    """The shapes a study may meet; the slowest is what counts."""
    index = np.arange(count)
    steps = random.standard_normal(count)
    steps[count // 3 :] += 2
    steps[count // 2 : count // 2 + count // 40] -= 4
    return {
        "white": random.standard_normal(count),
        "steps": steps,
        "sine": np.sin(index / 60 * 2 * np.pi) + random.standard_normal(count),
        "cron": sets.cron_spikes(random, count),
        "random walk": sets.random_walk(random, count),
        "leak": index / count * 20 + random.standard_normal(count),
    }


def asks() -> dict[str, Ask]:
    plain = {name: study.run for name, study in STUDIES.items() if name != correlation.NAME}
    return {**plain, correlation.NAME: with_one_other}


def with_one_other(series: Series) -> StudyAnswer:
    moved = Series(series.times_at, np.roll(series.values, 7), metric="other")
    return correlation.study(series, [moved])


def seconds_of(ask: Ask, series: Series) -> float:
    best = float("inf")
    for _ in range(RUNS):
        began = time.process_time()
        ask(series)
        best = min(best, time.process_time() - began)
    return best


def slowest(ask: Ask, count: int) -> tuple[float, str]:
    times_at = START_AT + np.arange(count, dtype=np.float64)
    shapes = kinds(np.random.default_rng(1), count)
    return max(
        (seconds_of(ask, Series(times_at, values, limit=100.0)), name) for name, values in shapes.items()
    )


def main() -> int:
    print(f"{'study':14} {'an hour':>10} {'a day':>10} {'day/hour':>9}  slowest on (24 is linear)")
    late = []
    for name, ask in asks().items():
        hour, _ = slowest(ask, POINTS[0])
        day, shape = slowest(ask, POINTS[1])
        print(f"{name:14} {1000 * hour:7.1f} ms {1000 * day:7.1f} ms {day / hour:9.1f}  {shape}")
        if day > DAY_SECONDS_ALLOWED:
            late.append(name)
    if late:
        print(f"over {DAY_SECONDS_ALLOWED} s for a day: {', '.join(late)}")
    return 1 if late else 0


if __name__ == "__main__":
    raise SystemExit(main())
