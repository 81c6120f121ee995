"""
How often the correlation study is right about generated pairs, by class.

    python -m tools.eval_pairs [--seed 1] [--questions 40] [--samples 3600]

A question has five others. Of related ones it prints how many are told, in how many
of those the lag is within a second or inside its interval, and the median width; of
independent ones, in how many questions anything is told; then confidence beside the share
that is real. The series come from bench/pair_sets.py, on which the constants were chosen.
"""

import argparse

import numpy as np
from bench import pair_sets
from numpy.typing import NDArray

from nodescope.use.studies import Finding, Series, correlation

FloatArray = NDArray[np.float64]
OTHERS = 5


def ask(target: FloatArray, others: list[FloatArray]) -> tuple[Finding, ...]:
    times_at = np.arange(float(len(target)))
    compared = [Series(times_at, values, metric=str(place)) for place, values in enumerate(others)]
    return correlation.study(Series(times_at, target), compared).findings


def is_right(finding: Finding, lag: int) -> bool:
    told, low, high = (
        finding.measures.get(f"lag_{name}") for name in ("seconds", "low_seconds", "high_seconds")
    )
    return told is None or abs(float(told) - lag) <= 1 or float(low or 0) <= lag <= float(high or 0)


def width_of(finding: Finding) -> float:
    low, high = (finding.measures.get(f"lag_{name}_seconds") for name in ("low", "high"))
    return float("nan") if low is None or high is None else float(high) - float(low)


def ask_related(kind: str, random: np.random.Generator, count: int) -> tuple[int, list[Finding]]:
    """The lag, and the findings about the related one and the four others."""
    left, right, lag = pair_sets.RELATED[kind](random, count)
    noise = [pair_sets.memory(0.9)(random, count) for _ in range(OTHERS - 1)]
    return lag, list(ask(left, [right, *noise]))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--questions", type=int, default=40)
    parser.add_argument("--samples", type=int, default=3600)
    asked = parser.parse_args()
    random = np.random.default_rng(asked.seed)
    stated: list[tuple[float, bool]] = []
    for kind in pair_sets.RELATED:
        print_related(kind, random, asked.questions, asked.samples, stated)
    for kind in pair_sets.INDEPENDENT:
        print_independent(kind, random, asked.questions, asked.samples, stated)
    for low, high in ((0.8, 0.9), (0.9, 0.98), (0.98, 1.0)):
        real = [is_real for confidence, is_real in stated if low <= confidence < high]
        print(
            f"confidence {low} to {high}: real in {np.mean(real) if real else float('nan'):.2f} of {len(real)}"
        )
    return 0


def print_related(
    kind: str, random: np.random.Generator, questions: int, count: int, stated: list[tuple[float, bool]]
) -> None:
    told: list[tuple[int, Finding]] = []
    for _ in range(questions):
        lag, findings = ask_related(kind, random, count)
        stated += [(finding.confidence, finding.measures["other"] == "0") for finding in findings]
        told += [(lag, finding) for finding in findings if finding.measures["other"] == "0"]
    right = sum(is_right(finding, lag) for lag, finding in told)
    no_order = sum(finding.measures.get("lag_seconds") is None for _, finding in told)
    widths = [width for _, finding in told if np.isfinite(width := width_of(finding))]
    print(
        f"{kind:28} told {len(told) / questions:6.1%}  lag right {right / max(len(told), 1):6.1%}"
        f"  no order {no_order / max(len(told), 1):6.1%}  median width {np.median(widths or [np.nan]):.1f} s"
    )


def print_independent(
    kind: str, random: np.random.Generator, questions: int, count: int, stated: list[tuple[float, bool]]
) -> None:
    make = pair_sets.INDEPENDENT[kind]
    answers = [
        ask(make(random, count), [make(random, count) for _ in range(OTHERS)]) for _ in range(questions)
    ]
    stated += [(finding.confidence, False) for findings in answers for finding in findings]
    print(f"{kind:28} told in {sum(map(bool, answers)) / questions:6.1%} of questions")


if __name__ == "__main__":
    raise SystemExit(main())
