"""Correlation: lags of pairs that follow each other, and claims on pairs that do not."""

from dataclasses import dataclass

import numpy as np

from bench.judge.make.case import Random
from bench.judge.make.pairs import INDEPENDENT, PAIRS
from bench.judge.section import Outcomes, Section, balanced, pooled
from bench.judge.table import Pair, Row, confidence_rows, share_row
from nodescope.use.studies import Finding, Series

RIGHT, CLAIMS = 0.9, 0.05
WITHIN_SECONDS = 1.0
LOW = ("lag_low_seconds", "lag_low")
HIGH = ("lag_high_seconds", "lag_high")


@dataclass(frozen=True)
class Moved:
    is_told: bool
    is_right: bool | None
    """Of the lag; None: no lag was told, or there is none to tell."""
    off_seconds: float | None
    width_seconds: float | None
    pairs: tuple[Pair, ...]


def judge(name: str, random: Random) -> Moved:
    case = (PAIRS[name[2:]] if name.startswith("p:") else INDEPENDENT[name[2:]])(random)
    others = [
        Series(case.times_at, values, unit="cores", metric=f"other_{place}")
        for place, values in enumerate(case.others)
    ]
    findings = case.ask("correlation", others).findings
    pairs = tuple((one.confidence, case.lag_seconds is not None) for one in findings)
    if not findings or case.lag_seconds is None:
        return Moved(bool(findings), None, None, None, pairs)
    low, high = first(findings[0], LOW), first(findings[0], HIGH)
    told = first(findings[0], ("lag_seconds",))
    is_inside = low is not None and high is not None and low <= case.lag_seconds <= high
    off = None if told is None else abs(told - case.lag_seconds)
    is_near = off is not None and off <= WITHIN_SECONDS
    return Moved(
        is_told=True,
        is_right=None if told is None and low is None else is_near or is_inside,
        off_seconds=off,
        width_seconds=None if low is None or high is None else high - low,
        pairs=pairs,
    )


def first(finding: Finding, names: tuple[str, ...]) -> float | None:
    for name in names:
        value = finding.measures.get(name)
        if isinstance(value, (int, float)):
            return float(value)
    return None


def rows(outcomes: Outcomes) -> list[Row]:
    pairs = [name for name in outcomes if name.startswith("p:")]
    alone = [name for name in outcomes if name.startswith("i:")]
    result = []
    part = f"Lag within {WITHIN_SECONDS:g} s, or inside its interval, of those told"
    for name in pairs:
        told = [one.is_right for one in outcomes[name] if one.is_right is not None]
        result.append(share_row(part, name[2:], told, RIGHT))
    every = pooled(outcomes, pairs)
    result.append(
        share_row(part, "all pairs", [one.is_right for one in every if one.is_right is not None], RIGHT)
    )
    part = "Pairs told to move together, and their lags (for information)"
    result += [share_row(part, name[2:], [one.is_told for one in outcomes[name]]) for name in pairs]
    result += [
        median_row(part, "median seconds off", [one.off_seconds for one in every]),
        median_row(part, "median width of the interval, seconds", [one.width_seconds for one in every]),
    ]
    part = "Independent series told to move together, per question of five"
    result += [
        share_row(part, name[2:], [one.is_told for one in outcomes[name]], None, CLAIMS) for name in alone
    ]
    told = [pair for one in balanced(outcomes, pairs, alone) for pair in one.pairs]
    return [*result, *confidence_rows("Confidence of correlation: the two are related", told)]


def median_row(part: str, what: str, values: list[float | None]) -> Row:
    known = [value for value in values if value is not None]
    return Row(part, what, f"{np.median(known):.1f}" if known else "not told", cases=len(known))


def counts(size: int) -> dict[str, int]:
    return {
        **{f"p:{name}": 2 * size for name in PAIRS},
        **{f"i:{name}": 5 * size for name in INDEPENDENT},
    }


SECTION = Section("lag", counts, judge, rows)
