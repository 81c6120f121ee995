"""
How much of what was found in very many series is there by chance.

Benjamini and Hochberg (1995): among the findings that are kept, at most the
given share is expected to be false, however many series were looked at. A
finding's chance is the one that a series of nothing shows as much: from
Kendall's z for a trend, one less its confidence elsewhere.
"""

from collections.abc import Mapping, Sequence
from math import erfc, exp, lgamma, log, log1p, sqrt
from typing import Any

SMALLEST = 1e-300


def chance_of(study: str, finding: Mapping[str, Any]) -> float:
    evidence = finding.get("evidence") or {}
    z = evidence.get("kendall_z")
    if study == "trend" and z is not None:
        return max(SMALLEST, erfc(abs(float(z)) / sqrt(2)))
    return max(SMALLEST, 1.0 - float(finding["confidence"]))


def adjust(chances: Sequence[float], looked_at: int) -> list[float]:
    """For each the smallest share of false ones at which it would be kept."""
    order = sorted(range(len(chances)), key=lambda place: chances[place])
    adjusted = [1.0] * len(chances)
    least = 1.0
    for rank in range(len(order), 0, -1):
        place = order[rank - 1]
        least = min(least, chances[place] * max(looked_at, len(chances)) / rank)
        adjusted[place] = least
    return adjusted


def binomial_tail(hits: int, tries: int, share: float) -> float:
    """The chance of so many hits or more."""
    if hits <= 0:
        return 1.0
    if share <= 0.0:
        return SMALLEST
    if share >= 1.0:
        return 1.0
    total = 0.0
    for count in range(hits, tries + 1):
        term = exp(log_choose(tries, count) + count * log(share) + (tries - count) * log1p(-share))
        total += term
        # Past the middle the terms fall fast.
        if count > tries * share and term < total * 1e-12:
            break
    return min(1.0, max(SMALLEST, total))


def log_choose(whole: int, part: int) -> float:
    return lgamma(whole + 1) - lgamma(part + 1) - lgamma(whole - part + 1)


def surprise(hits: int, tries: int, share: float) -> float:
    """Nats by which the group's own share explains it better than everybody's does."""
    own = hits / tries
    told = hits * log(own / share) if hits else 0.0
    return told + ((tries - hits) * log((1 - own) / (1 - share)) if hits < tries else 0.0)
