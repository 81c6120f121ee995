"""
Scores the change points: false ones per class of noise, changes found, confidence against the measured share.

    python -m tools.eval_changes [--seed N] [--runs N] [--counts 1200,14400] [--fit] [TCPD-FOLDER]
"""

import argparse
import secrets
from collections.abc import Callable
from pathlib import Path

import numpy as np
from bench import change_sets as sets
from bench.studies_scores import covering, f1, read_labelled
from numpy.typing import NDArray

from nodescope.use.studies import Finding, Series, changepoint
from nodescope.use.studies.maths import confidence

FloatArray = NDArray[np.float64]
START_AT = 1_700_000_000.0

# What the guide advises to show.
SHOWN = 0.5


def main() -> int:
    parser = argparse.ArgumentParser(description="Score the change points.")
    parser.add_argument("folders", nargs="*", type=Path, metavar="FOLDER", help="laid out as TCPD")
    parser.add_argument("--seed", type=int, default=None, help="chosen at run time if left out")
    parser.add_argument("--runs", type=int, default=30, help="series of each class")
    parser.add_argument(
        "--fit", action="store_true", help="fit the confidence on the first family, print its figures"
    )
    parser.add_argument("--counts", default="1200,14400", help="samples a series")
    arguments = parser.parse_args()
    for folder in arguments.folders:
        print_labelled(folder)
    seed = secrets.randbelow(2**32) if arguments.seed is None else arguments.seed
    print(f"\nSeed {seed}")
    if arguments.fit:
        print_fit(np.random.default_rng(seed), arguments.runs)
        return 0
    for count in map(int, arguments.counts.split(",")):
        runs = arguments.runs if count <= 4000 else max(4, arguments.runs // 5)
        print_false(np.random.default_rng(seed), count, runs)
    print_found(np.random.default_rng(seed), 1200, arguments.runs)
    for family in sets.FAMILIES:
        print_calibration(np.random.default_rng(seed), family, arguments.runs // 3)
    return 0


def findings_of(values: FloatArray, least: float = 0.0) -> list[Finding]:
    times_at = START_AT + np.arange(len(values), dtype=np.float64)
    answer = changepoint.study(Series(times_at, values, metric="value"))
    return [one for one in answer.findings if one.confidence >= least]


def place_of(finding: Finding) -> int:
    return round((finding.at or START_AT) - START_AT)


def print_labelled(folder: Path) -> None:
    labelled = read_labelled(folder)
    for least in (0.0, SHOWN):
        rows = []
        for one in labelled:
            cuts = [place_of(found) for found in findings_of(one.values, least)]
            cuts = sorted(cut for cut in cuts if 1 <= cut < len(one.values) - 1)
            rows.append((f1(one.marks, cuts), covering(one.marks, cuts, len(one.values))))
        means = np.mean(rows, axis=0)
        print(f"{folder.name}: confidence >= {least}: F1 {means[0]:.3f}, covering {means[1]:.3f}")


def false_rates(random: np.random.Generator, maker: sets.Maker, count: int, runs: int) -> tuple[float, float]:
    """Per 1,000 samples: all findings, and those at the confidence that is shown."""
    found = [[one.confidence for one in findings_of(maker(random, count))] for _ in range(runs)]
    every = sum(map(len, found))
    shown = sum(one >= SHOWN for part in found for one in part)
    scale = 1000 / (runs * count)
    return every * scale, shown * scale


def print_false(random: np.random.Generator, count: int, runs: int) -> None:
    print(
        f"\nFalse change points per 1,000 samples, n={count}, {runs} series each: all, at confidence >= {SHOWN}"
    )
    for family, makers in sets.FAMILIES.items():
        for name, maker in makers.items():
            every, shown = false_rates(random, maker, count, runs)
            print(f"  {family:7} {name:26} {every:7.2f} {shown:7.2f}{'  over' if shown > 0.3 else ''}")


def print_found(random: np.random.Generator, count: int, runs: int) -> None:
    print(f"\nChanges found at confidence >= {SHOWN} (of all), other findings a series, n={count}")
    for name, maker in sets.TO_FIND.items():
        share, whole, beside = found_share(random, maker, count, runs)
        print(f"  {name:26} {share:5.2f} ({whole:.2f})  {beside:5.2f}")


def found_share(
    random: np.random.Generator,
    maker: Callable[[np.random.Generator, int], sets.Planted],
    count: int,
    runs: int,
) -> tuple[float, float, float]:
    shown = whole = beside = 0
    for _ in range(runs):
        case = maker(random, count)
        near = [(case.is_real(place_of(one)), one.confidence >= SHOWN) for one in findings_of(case.values)]
        whole += any(real for real, _ in near)
        shown += any(real and sure for real, sure in near)
        beside += sum(sure and not real for real, sure in near)
    return shown / runs, whole / runs, beside / runs


def calibration_rows(random: np.random.Generator, family: str, runs: int) -> list[tuple[Finding, bool, str]]:
    rows = []
    for name in list(sets.FAMILIES[family]) * runs:
        case = sets.planted_case(random, family, name)
        rows += [(one, case.is_real(place_of(one)), name) for one in findings_of(case.values)]
    return rows


def print_calibration(random: np.random.Generator, family: str, runs: int) -> None:
    rows = calibration_rows(random, family, runs)
    stated = np.array([one.confidence for one, _, _ in rows])
    real = np.array([is_real for _, is_real, _ in rows])
    print(f"\nConfidence, {family} family: stated, real ({len(rows)} findings)")
    for low, high in ((0, 0.2), (0.2, 0.4), (0.4, 0.6), (0.6, 0.8), (0.8, 0.9), (0.9, 1.01)):
        inside = (stated >= low) & (stated < high)
        if inside.any():
            print(f"  {stated[inside].mean():.2f}  {real[inside].mean():.2f}  ({int(inside.sum())})")


def print_fit(random: np.random.Generator, runs: int) -> None:
    """Offset and weight of a nat, by Newton's method, on findings that return at most once; the length's weight is held."""
    rows = [
        row
        for row in calibration_rows(random, "first", runs)
        if "recurrences" in row[0].evidence and number(row[0], "recurrences") <= 1
    ]
    nats = np.clip([number(one, "excess_nats") for one, _, _ in rows], *confidence.NATS)
    shorter = [min(number(one, "samples_before"), number(one, "samples_after")) for one, _, _ in rows]
    held = confidence.PER_LOG_SAMPLE * np.log(np.clip(shorter, *confidence.SAMPLES))
    real = np.array([is_real for _, is_real, _ in rows])
    columns = np.stack([np.ones(len(rows)), nats], axis=1)
    weights = np.zeros(2)
    for _ in range(200):
        chance = 1 / (1 + np.exp(-(columns @ weights + held)))
        curvature = (columns * (chance * (1 - chance))[:, None]).T @ columns + 0.01 * np.eye(2)
        weights += np.clip(np.linalg.solve(curvature, columns.T @ (real - chance)), -0.5, 0.5)
    print(f"OFFSET = {weights[0]:.2f}\nPER_NAT = {weights[1]:.2f}   ({len(rows)} findings)")


def number(finding: Finding, name: str) -> float:
    value = finding.evidence[name]
    return float(value) if isinstance(value, int | float) else 0.0


if __name__ == "__main__":
    raise SystemExit(main())
