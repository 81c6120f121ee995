"""What a study answers: findings, or why there are none. One JSON form for CLI, API, export and MCP."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import isfinite
from typing import Literal

import numpy as np

from nodescope.use.studies.series import FloatArray, Series

VERSION = 1
# Decimals of a share, where it is not wanted exact.
DECIMALS = 4

Status = Literal["found", "none", "not_enough_data", "not_collected"]
Measure = float | int | str | None
Evidence = Mapping[str, Measure]


@dataclass(frozen=True)
class Finding:
    """
    One finding: when, how much, how sure, and the sentence a person reads.

    measures are the fields only this kind of finding has (period_seconds,
    slope_per_second, ...); in JSON they stand beside the others. A number that
    is infinite, or none at all, is None from the start, as JSON will have it.
    """

    kind: str
    start_at: float
    end_at: float
    confidence: float
    magnitude: float | None
    unit: str
    sentence: str
    at: float | None = None
    before: float | None = None
    after: float | None = None
    measures: Evidence = field(default_factory=dict)
    evidence: Evidence = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("magnitude", "before", "after"):
            object.__setattr__(self, name, plain(getattr(self, name)))
        for name in ("measures", "evidence"):
            known = {key: plain(value) for key, value in getattr(self, name).items()}
            object.__setattr__(self, name, known)

    def to_json(self, *, exact: bool = False) -> dict[str, object]:
        return {
            "kind": self.kind,
            "from": self.start_at,
            "to": self.end_at,
            "at": self.at,
            "confidence": self.confidence if exact else round(self.confidence, DECIMALS),
            "magnitude": self.magnitude,
            "unit": self.unit,
            "before": self.before,
            "after": self.after,
            **self.measures,
            "sentence": self.sentence,
            "evidence": dict(self.evidence),
        }


@dataclass(frozen=True)
class StudyAnswer:
    """A study's whole answer about one series; sentence sums it up also when nothing was found."""

    study: str
    series: Mapping[str, str | None]
    start_at: float | None
    end_at: float | None
    samples: int
    missing_share: float
    status: Status
    sentence: str
    reason: str | None = None
    findings: tuple[Finding, ...] = ()
    power: Mapping[str, float] = field(default_factory=dict)
    """Of a No: what would have been found, such as the least slope (use/answers/power.py)."""

    def to_json(self, *, exact: bool = False) -> dict[str, object]:
        return {
            "study": self.study,
            "version": VERSION,
            "series": dict(self.series),
            "from": self.start_at,
            "to": self.end_at,
            "samples": self.samples,
            "missing_share": self.missing_share if exact else round(self.missing_share, DECIMALS),
            "status": self.status,
            "reason": self.reason,
            "sentence": self.sentence,
            "findings": [finding.to_json(exact=exact) for finding in self.findings],
            **({"power": dict(self.power)} if self.power else {}),
        }


def plain(value: Measure) -> Measure:
    """JSON knows no NaN and no infinity: what is not a number is null."""
    return (float(value) if isfinite(value) else None) if isinstance(value, float) else value


def found(study: str, series: Series, findings: list[Finding], nothing: str) -> StudyAnswer:
    """The answer of a study that could look: its findings in order, or the sentence about nothing."""
    ranked = sorted(findings, key=lambda finding: (-finding.confidence, -abs(finding.magnitude or 0)))
    sentence = ranked[0].sentence if ranked else nothing
    if len(ranked) > 1:
        sentence += f" And {len(ranked) - 1} more."
    return build_answer(study, series, "found" if ranked else "none", sentence, findings=tuple(ranked))


def not_enough(study: str, series: Series, reason: str) -> StudyAnswer:
    """The answer where a finding, or its absence, would mean nothing."""
    if series.not_collected is not None:
        return build_answer(study, series, "not_collected", series.not_collected, series.not_collected)
    return build_answer(study, series, "not_enough_data", f"Not enough data: {reason}", reason)


def build_answer(
    study: str,
    series: Series,
    status: Status,
    sentence: str,
    reason: str | None = None,
    findings: tuple[Finding, ...] = (),
) -> StudyAnswer:
    times_at = series.times_at[np.isfinite(series.times_at)]
    present = int((np.isfinite(series.values) & np.isfinite(series.times_at)).sum())
    return StudyAnswer(
        study=study,
        series=series.labels(),
        start_at=float(times_at.min()) if len(times_at) else None,
        end_at=float(times_at.max()) if len(times_at) else None,
        samples=present,
        missing_share=missing_share(np.sort(times_at), present),
        status=status,
        sentence=sentence,
        reason=reason,
        findings=findings,
    )


def missing_share(times_at: FloatArray, present: int) -> float:
    """Of the samples due from first to last at the usual interval, those that are not there."""
    if len(times_at) < 2:
        return 0.0 if present else 1.0
    interval = float(np.median(np.diff(times_at)))
    spanned = float(times_at[-1] - times_at[0]) / interval if interval > 0 else 0.0
    # Times that are almost equal make the quotient infinite; a float counts no further than 2^53.
    due = max(len(times_at), round(min(spanned, 2.0**53)) + 1)
    return max(0.0, 1.0 - present / due)
