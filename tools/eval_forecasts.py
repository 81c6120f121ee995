"""
Scores the forecasts of `trend` on generated memory, class by class.

    python -m tools.eval_forecasts [--seed N] [--size N]

Of leaks: how many are found, how often the path touches the limit within the 90 % interval,
and how wide the interval is. Of what is no leak: how often a leak with a time is told, and
whether the answer says that the growth may end.
"""

import argparse
import secrets
import sys

import numpy as np
from bench import growth_sets as sets

from nodescope.use.studies import STUDIES, Series
from nodescope.use.studies.finding import Finding

START_AT = 1_700_000_000.0
MIB = 2.0**20


def main() -> int:
    parser = argparse.ArgumentParser(description="Score the forecasts of trend on generated memory.")
    parser.add_argument("--seed", type=int, default=None, help="chosen at run time if left out")
    parser.add_argument("--size", type=int, default=100, help="cases of each class")
    arguments = parser.parse_args()
    seed = secrets.randbelow(2**32) if arguments.seed is None else arguments.seed
    print(f"Generated memory, seed {seed}")
    print_forecasts(np.random.default_rng(seed), arguments.size)
    return 0


def print_forecasts(random: np.random.Generator, size: int) -> None:
    shares: list[tuple[float, bool]] = []
    print(
        f"\nForecasts, {size} of each class: found, inside the 90 % interval, median width over the time to the limit"
    )
    for kind in sets.LEAKS:
        print(f"  {kind:22} {score_leaks(random, kind, size, shares)}", flush=True)
    print("\nNo leaks: told as a leak with a time; of these without a word that it may end")
    for kind in sets.NO_LEAKS:
        print(f"  {kind:22} {score_others(random, kind, size, shares)}", flush=True)
    print_confidence(shares)


def ask(case: sets.GrowthCase) -> Finding | None:
    times_at = START_AT + np.arange(len(case.values), dtype=np.float64)
    series = Series(times_at, case.values * MIB, limit=case.limit * MIB, unit="bytes", metric="memory")
    findings = STUDIES["trend"].run(series).findings
    return findings[0] if findings else None


def number(finding: Finding, name: str) -> float:
    value = finding.measures[name]
    return float(value) if isinstance(value, (int, float)) else np.inf


def score_leaks(random: np.random.Generator, kind: str, size: int, shares: list[tuple[float, bool]]) -> str:
    found = inside = forecasts = 0
    widths = []
    for _ in range(size):
        case = sets.growth_case(random, kind)
        finding = ask(case)
        if finding is None or finding.measures["verdict"] != "leak":
            continue
        found += 1
        shares.append((finding.confidence, True))
        if finding.measures["time_to_limit_seconds"] is None:
            continue
        low, high = number(finding, "low"), number(finding, "high")
        forecasts += 1
        inside += low <= case.samples_to_limit <= high
        widths.append((high - low) / case.samples_to_limit)
    held = inside / forecasts if forecasts else 0.0
    return f"{found / size:5.2f}  {held:5.2f}  {float(np.median(widths)) if widths else np.nan:7.3f}"


def score_others(random: np.random.Generator, kind: str, size: int, shares: list[tuple[float, bool]]) -> str:
    told = unsaid = 0
    for _ in range(size):
        finding = ask(sets.growth_case(random, kind))
        if finding is None or finding.measures["verdict"] != "leak":
            continue
        shares.append((finding.confidence, False))
        timed = finding.measures["time_to_limit_seconds"] is not None
        told += timed
        unsaid += timed and "level off" not in str(finding.measures["caution"])
    return f"{told / size:5.2f}  {unsaid / size:5.2f}"


def print_confidence(shares: list[tuple[float, bool]]) -> None:
    table = np.array(shares, dtype=np.float64)
    print("\nConfidence of a leak, and the share that leaks")
    for low, high in ((0.0, 0.6), (0.6, 0.7), (0.7, 0.8), (0.8, 0.9), (0.9, 0.97), (0.97, 1.01)):
        inside = (table[:, 0] >= low) & (table[:, 0] < high)
        if inside.any():
            print(
                f"  {low:.2f} to {min(high, 1.0):.2f}   {table[inside, 1].mean():.2f}   ({int(inside.sum())})"
            )


if __name__ == "__main__":
    sys.exit(main())
