"""
Scores the forecasts of `trend` on generated memory, class by class.

    python -m tools.eval_forecasts [--seed N] [--size N] [--only WORDS]

Of leaks: how many are found, how often the path touches the limit within the 90 % interval,
how often before it, and how wide the interval is beside that of an oracle. Of what is no leak: how often a
leak with a time is told, and how often without the word that it may end.
"""

import argparse
import secrets
import sys
from dataclasses import dataclass

import numpy as np
from bench import growth_sets as sets

from nodescope.use.studies import STUDIES, Series
from nodescope.use.studies.finding import Finding

START_AT = 1_700_000_000.0
MIB = 2.0**20

# Between the seeds of two classes, so that a class alone gets the cases it has among all.
APART = 1000


@dataclass(frozen=True)
class Told:
    """One answer about a case."""

    case: sets.GrowthCase
    finding: Finding | None

    @property
    def is_leak(self) -> bool:
        return self.finding is not None and self.finding.measures["verdict"] == "leak"

    @property
    def is_timed(self) -> bool:
        return (
            self.is_leak
            and self.finding is not None
            and self.finding.measures["time_to_limit_seconds"] is not None
        )

    @property
    def bounds(self) -> tuple[float, float]:
        """In samples."""
        low, high = (self.number(name) / self.case.interval_seconds for name in ("low", "high"))
        return low, high

    def number(self, name: str) -> float:
        value = self.finding.measures[name] if self.finding else None
        return float(value) if isinstance(value, (int, float)) else np.inf

    @property
    def caution(self) -> str:
        return str(self.finding.measures["caution"]) if self.finding else ""

    @property
    def confidence(self) -> float:
        return self.finding.confidence if self.finding else 0.0


def main() -> int:
    parser = argparse.ArgumentParser(description="Score the forecasts of trend on generated memory.")
    parser.add_argument("--seed", type=int, default=None, help="chosen at run time if left out")
    parser.add_argument("--size", type=int, default=100, help="cases of each class")
    parser.add_argument("--only", default="", help="classes whose names have one of these words, by commas")
    arguments = parser.parse_args()
    seed = secrets.randbelow(2**32) if arguments.seed is None else arguments.seed
    print(f"Generated memory, seed {seed}, {arguments.size} of each class")
    print_forecasts(seed, arguments.size, arguments.only.split(","))
    return 0


def print_forecasts(seed: int, size: int, words: list[str]) -> None:
    shares: list[tuple[float, bool]] = []
    print(f"\n{'Leaks':24} found  inside  earlier  width/oracle")
    for place, kind in enumerate(sets.LEAKS):
        if any(word in kind for word in words):
            told = ask_all(seed + place, kind, size)
            shares += [(one.confidence, True) for one in told if one.is_leak]
            print(f"  {kind:22} {render_leaks(told)}", flush=True)
    print(f"\n{'No leaks':24} told   undoubted")
    for place, kind in enumerate(sets.NO_LEAKS):
        if any(word in kind for word in words):
            told = ask_all(seed + APART + place, kind, size)
            shares += [(one.confidence, False) for one in told if one.is_leak]
            print(f"  {kind:22} {render_others(told)}", flush=True)
    print_confidence(shares)


def ask_all(seed: int, kind: str, size: int) -> list[Told]:
    random = np.random.default_rng(seed)
    cases = [sets.growth_case(random, kind) for _ in range(size)]
    return [Told(case, ask(case)) for case in cases]


def ask(case: sets.GrowthCase) -> Finding | None:
    times_at = START_AT + case.interval_seconds * np.arange(len(case.values), dtype=np.float64)
    series = Series(times_at, case.values * MIB, limit=case.limit * MIB, unit="bytes", metric="memory")
    findings = STUDIES["trend"].run(series).findings
    return findings[0] if findings else None


def render_leaks(told: list[Told]) -> str:
    timed = [one for one in told if one.is_timed]
    found = sum(one.is_leak for one in told) / len(told)
    if not timed:
        return f"{found:5.2f}"
    truths = np.array([one.case.samples_to_limit for one in timed])
    low, high = (np.array(side) for side in zip(*(one.bounds for one in timed)))
    oracle = np.array([max(one.case.oracle_high - one.case.oracle_low, 1.0) for one in timed])
    inside = ((low <= truths) & (truths <= high)).mean()
    ratio = np.median((high - low) / oracle)
    return f"{found:5.2f}   {inside:5.2f}    {(truths < low).mean():5.2f}   {ratio:6.2f}"


def render_others(told: list[Told]) -> str:
    timed = [one for one in told if one.is_timed]
    ends = ("level off", "day")
    # The day is named for every short span: it excuses a flank only.
    unsaid = [one for one in timed if ends[one.case.interval_seconds != 1.0] not in one.caution]
    return f"{len(timed) / len(told):5.2f}   {len(unsaid) / len(told):5.2f}"


def print_confidence(shares: list[tuple[float, bool]]) -> None:
    table = np.array(shares, dtype=np.float64).reshape(-1, 2)
    print("\nConfidence of a leak, and the share that leaks")
    for low, high in ((0.0, 0.5), (0.5, 0.6), (0.6, 0.7), (0.7, 0.8), (0.8, 0.9), (0.9, 0.97), (0.97, 1.01)):
        chosen = table[(table[:, 0] >= low) & (table[:, 0] < high)]
        if len(chosen):
            stated, real = chosen.mean(axis=0)
            print(
                f"  {low:.2f} to {min(high, 1.0):.2f}   stated {stated:.2f}, real {real:.2f}   ({len(chosen)})"
            )


if __name__ == "__main__":
    sys.exit(main())
