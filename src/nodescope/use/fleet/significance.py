"""
Which of the findings in very many series are significant.

Benjamini and Hochberg (1995): of the findings that are kept, at most the given
share is expected to be false, however many series were looked at. A finding's
p-value comes from Kendall's z for a trend, and is 1 - confidence otherwise.
"""

from math import erfc, exp, lgamma, log, log1p, sqrt

from nodescope.use.studies.finding import Finding

SMALLEST = 1e-300


def p_value_of(study: str, finding: Finding) -> float:
    z = finding.evidence.get("kendall_z")
    if study == "trend" and z is not None:
        return max(SMALLEST, erfc(abs(float(z)) / sqrt(2)))
    return max(SMALLEST, 1.0 - finding.confidence)


def binomial_tail(hits: int, tries: int, share: float) -> float:
    """The probability of so many hits or more."""
    if hits <= 0 or share >= 1.0:
        return 1.0
    if share <= 0.0:
        return SMALLEST
    total = 0.0
    for count in range(hits, tries + 1):
        term = exp(log_choose(tries, count) + count * log(share) + (tries - count) * log1p(-share))
        total += term
        # Beyond the mean the terms fall fast.
        if count > tries * share and term < total * 1e-12:
            break
    return min(1.0, max(SMALLEST, total))


def log_choose(whole: int, part: int) -> float:
    return lgamma(whole + 1) - lgamma(part + 1) - lgamma(whole - part + 1)


def log_likelihood_ratio(hits: int, tries: int, share: float) -> float:
    """In nats: how much better the group's own share explains its hits than the usual share does."""
    own = hits / tries
    of_hits = hits * log(own / share) if hits else 0.0
    return of_hits + ((tries - hits) * log((1 - own) / (1 - share)) if hits < tries else 0.0)
