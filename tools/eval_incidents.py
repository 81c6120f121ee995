"""
How often the cause of an incident is named, on generated nodes of 100 containers whose cause is known.

    python -m tools.eval_incidents --seeds 0-20           the table
    python -m tools.eval_incidents --seeds 100-140 --fit  the constants of confidence.py
    python -m tools.eval_incidents --seeds 0-2 --hours 10 a night: minutes first, then seconds

The confidence was fitted on other seeds (100 and up) than those of the table (below 100). A node has an
hour of history and an hour that is asked about, a cause of one of nine classes or none, and noise.
"""

import argparse
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from tools.incidents.direct import make_table
from tools.incidents.long_nodes import explain_night
from tools.incidents.stories import CLASSES, KINDS, Generated, Planted, generate

from nodescope.use.answers.incidents.explain import find_incidents
from nodescope.use.answers.incidents.incident import Incident

# A longer span is looked at in minutes first.
LONG_HOURS = 3.0


@dataclass(frozen=True, slots=True)
class Trial:
    """One node: what was true, and what was told."""

    seed: int
    truth: Planted
    told: tuple[Incident, ...]

    @property
    def named(self) -> list[str]:
        return [one.cause.workload.removeprefix("shop/") if one.cause else "" for one in self.told]


def main() -> int:
    parser = argparse.ArgumentParser(description="Score the causes of incidents on generated nodes.")
    parser.add_argument("--seeds", default="0-5", help="from-to; the last is left out")
    parser.add_argument("--fit", action="store_true", help="print the constants of the confidence")
    parser.add_argument("--hours", type=float, default=1.0, help="of the span that is asked about")
    parser.add_argument("--misses", action="store_true", help="print what was told instead")
    arguments = parser.parse_args()
    first, last = map(int, arguments.seeds.split("-"))
    trials = list(run_trials(first, last, arguments.hours))
    if arguments.fit:
        print_fit(trials)
        return 0
    print_table(trials)
    print_calibration(trials)
    if arguments.misses:
        print_misses(trials)
    return 0


def run_trials(first: int, last: int, hours: float) -> Iterator[Trial]:
    for seed in range(first, last):
        for kind in KINDS:
            # As many quiet hours as there are causes, so that one in fifty can be seen.
            for number, cause in enumerate((*CLASSES, *[""] * len(CLASSES))):
                node = generate(seed * 100 + number, kind, cause, hours=hours)
                told = explain_night(node) if hours > LONG_HOURS else explain_hours(node)
                yield Trial(seed, node.truth, tuple(told))


def explain_hours(node: Generated) -> list[Incident]:
    table, kills = make_table(node)
    return find_incidents(table, kills, lambda row, signal: None)[0]  # noqa: ARG005 - no history


def print_table(trials: list[Trial]) -> None:
    planted = [one for one in trials if one.truth.cause]
    print(f"{'cause':12} {'nodes':>6} {'first':>7} {'of three':>9}")
    for cause in (*CLASSES, "all"):
        mine = [one for one in planted if cause in (one.truth.cause, "all")]
        first = np.mean([one.named[:1] == [one.truth.workload] for one in mine])
        among = np.mean([one.truth.workload in one.named for one in mine])
        print(f"{cause:12} {len(mine):6} {first:7.1%} {among:9.1%}")
    for kind in KINDS:
        hours = [one for one in trials if not one.truth.cause and one.truth.kind == kind]
        print(
            f"nothing invented in {np.mean([not one.told for one in hours]):.1%} of {len(hours)} hours ({kind}, no cause)"
        )


def list_told(trials: list[Trial]) -> list[tuple[str, float, float, bool]]:
    """(kind, weight, confidence, right) of every incident that was told."""
    return [
        (one.kind, one.weight or 0.0, one.confidence or 0.0, trial.truth.workload == name)
        for trial in trials
        for one, name in zip(trial.told, trial.named)
        if one.cause
    ]


def print_calibration(trials: list[Trial]) -> None:
    told = list_told(trials)
    print("confidence  told  right")
    for low in (0.0, 0.5, 0.8, 0.95):
        high = {0.0: 0.5, 0.5: 0.8, 0.8: 0.95}.get(low, 1.01)
        mine = [right for _, _, sure, right in told if low <= sure < high]
        if mine:
            print(f"{low:.2f}-{min(high, 1.0):.2f}  {len(mine):5} {np.mean(mine):6.1%}")


def print_fit(trials: list[Trial]) -> None:
    """By kind: logit(share right) = a + b x logit(weight), by Newton's method with a weak prior."""
    told = list_told(trials)
    for kind, count in sorted(Counter(kind for kind, *_ in told).items()):
        rows = [(weight, right) for name, weight, _, right in told if name == kind]
        weights = np.clip([weight for weight, _ in rows], 0.01, 0.99)
        right = np.array([right for _, right in rows], float)
        level, slope = fit_logistic(np.log(weights / (1 - weights)), right)
        print(f'    "{kind}": ({level:.2f}, {slope:.2f}),  # {count} told, {right.mean():.1%} right')


def fit_logistic(x: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    """With a prior of two right and two wrong at the mean, so that nothing is certain."""
    design = np.column_stack([np.ones(len(x) + 4), np.concatenate([x, np.full(4, x.mean())])])
    target = np.concatenate([y, [0.0, 1.0, 0.0, 1.0]])
    beta = np.zeros(2)
    for _ in range(50):
        p = 1 / (1 + np.exp(-design @ beta))
        hessian = design.T @ (design * (p * (1 - p))[:, None]) + np.diag([1e-3, 0.1])
        beta = beta + np.linalg.solve(hessian, design.T @ (target - p) - np.array([1e-3, 0.1]) * beta)
    return float(beta[0]), float(beta[1])


def print_misses(trials: list[Trial]) -> None:
    for one in trials:
        if (one.truth.cause and one.named[:1] != [one.truth.workload]) or (not one.truth.cause and one.told):
            told = [
                (i.kind, i.resource, name, round(i.weight or 0, 2), i.victims_count)
                for i, name in zip(one.told, one.named)
            ]
            print(one.seed, one.truth, told)


if __name__ == "__main__":
    raise SystemExit(main())
