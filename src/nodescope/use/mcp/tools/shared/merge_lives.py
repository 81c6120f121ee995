"""
One answer from the lives of a container: a study never looks across a restart, so its answers add up.

Changes are sorted into those that matter and slight ones: the study tells
every change beyond the noise, also a drift of one part in a hundred that
nobody would call a change when asked "when did its memory change".
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import sqrt

from nodescope.base.text import clean_text
from nodescope.use.answers.containers import Container
from nodescope.use.mcp.protocol.answer import Fact, ToolFinding
from nodescope.use.mcp.tools.shared.time_text import render_at
from nodescope.use.studies import Finding, StudyAnswer
from nodescope.use.studies.finding import DECIMALS

# A change below this share of the level is slight. Half of what a person would
# notice on a chart that starts at zero; the demo's slow waves are 2 %.
MATERIAL_SHARE = 0.05
# Below, the study itself thinks it more likely wrong than right.
SURE_ENOUGH = 0.5
MOST_EVIDENCE = 10
# How the search for changes came to its result: for who mends it, not for who asks.
INTERNAL = frozenset({"gain_nats", "noise_memory"})
# In the order of answers.
FIGURES = ("avg", "max", "min", "stddev", "trend", "unit", "limit", "samples", "missing_share", "p95")
# The best answer of several lives stands for all.
ORDER = ("found", "none", "not_enough_data", "not_collected")


@dataclass(frozen=True, slots=True)
class MergedAnswer:
    """A study over all lives in a span."""

    status: str
    reason: str
    samples: int
    missing_share: float
    findings: tuple[Finding, ...]


def merge_answers(answers: Sequence[StudyAnswer]) -> MergedAnswer:
    if not answers:
        return MergedAnswer("not_enough_data", "no sample was measured in this span", 0, 1.0, ())
    samples = sum(one.samples for one in answers)
    due = sum(one.samples / max(1e-9, 1 - one.missing_share) for one in answers)
    best = min(answers, key=lambda one: ORDER.index(one.status) if one.status in ORDER else 3)
    findings = [finding for one in answers for finding in one.findings]
    findings.sort(key=lambda one: (-one.confidence, -abs(number_of(one.magnitude))))
    return MergedAnswer(
        str(best.status),
        clean_text(best.reason or ""),
        samples,
        max(0.0, 1 - samples / due) if due else 1.0,
        tuple(findings),
    )


def number_of(value: object) -> float:
    """A measure as a number; 0 where it is not known."""
    return float(value) if isinstance(value, int | float) else 0.0


def is_material(finding: Finding) -> bool:
    """Whether a change is one that a person asking about changes would want to hear of."""
    before, after = finding.before, finding.after
    if finding.confidence < SURE_ENOUGH:
        return False
    if before is None or after is None:
        return True
    level = max(abs(before), abs(after))
    moved = abs(after - before)
    if finding.evidence.get("change") == "noise":
        noise = (number_of(finding.evidence.get(f"noise_{side}")) for side in ("after", "before"))
        moved = abs(next(noise) - next(noise))
    if finding.evidence.get("change") == "pattern":
        moved = abs(finding.magnitude or 0.0)
        level = max(level, moved)
    return bool(level and moved >= MATERIAL_SHARE * level)


def render_finding(
    finding: Finding, merged: MergedAnswer, metric: str, container: Container, newest_ms: int
) -> ToolFinding:
    """A study's finding with what it rests on."""
    levels = {"before": finding.before, "after": finding.after, "magnitude": finding.magnitude}
    facts = {**levels, **finding.measures, **finding.evidence}
    kept = {
        name: value
        for name, value in facts.items()
        if isinstance(value, str | int | float) and name not in INTERNAL
    }
    moment = finding.at if finding.at is not None else finding.start_at
    return ToolFinding(
        clean_text(finding.sentence),
        finding.kind,
        container.node,
        container.name,
        metric,
        clean_text(finding.unit) or None,
        finding.confidence,
        merged.samples,
        merged.missing_share,
        finding.start_at,
        finding.end_at,
        finding.at,
        render_at(moment * 1000, newest_ms),
        dict(list(kept.items())[:MOST_EVIDENCE]),
    )


@dataclass(frozen=True, slots=True)
class Figures:
    """One metric of one container over a span; None is what was not derived."""

    avg: float
    samples: int
    missing_share: float
    unit: str = ""
    max: float | None = None
    min: float | None = None
    stddev: float | None = None
    trend: Fact = None
    """Of the newest life; the others may have looked different."""
    limit: Fact = None
    p95: Fact = None
    lives: int = 1

    def facts(self, names: Sequence[str] = FIGURES) -> dict[str, Fact]:
        """By name, what is known of these."""
        shown = replace(self, missing_share=round(self.missing_share, DECIMALS))
        return {name: value for name in names if (value := getattr(shown, name)) is not None}


def merge_figures(answers: Sequence[StudyAnswer]) -> Figures | None:
    """Of the whole span; weights are samples. None without a sample."""
    rows = [(one.findings[0], one.samples) for one in answers if one.status == "found" and one.findings]
    total = sum(samples for _, samples in rows)
    if not total:
        return None
    average = sum(measure(row, "average") * samples for row, samples in rows) / total
    squares = sum(
        (measure(row, "stddev") ** 2 + (measure(row, "average") - average) ** 2) * samples
        for row, samples in rows
    )
    # A backend answers in an order of its own: the newest life is the one that ends last.
    # Its picture is that of the life that was looked at.
    newest = max((row for row, _ in rows), key=lambda row: ("trend" in row.measures, row.end_at))
    return Figures(
        average,
        total,
        merge_answers(answers).missing_share,
        newest.unit,
        max(measure(row, "max") for row, _ in rows),
        min(measure(row, "min") for row, _ in rows),
        sqrt(squares / total),
        newest.measures.get("trend"),
        newest.measures.get("limit"),
        newest.measures.get("p95") if len(rows) == 1 else None,
        len(rows),
    )


def measure(finding: Finding, name: str) -> float:
    return number_of(finding.measures.get(name))
