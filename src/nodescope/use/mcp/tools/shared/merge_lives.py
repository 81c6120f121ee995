"""
One answer from the lives of a container: a study never looks across a restart, so its answers add up.

Changes are sorted into those that matter and slight ones: the study tells
every change beyond the noise, also a drift of one part in a hundred that
nobody would call a change when asked "when did its memory change".
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Any

from nodescope.base.text import clean_text
from nodescope.use.mcp.nodes.backend import StudyAnswer
from nodescope.use.mcp.protocol.answer import Fact, ToolFinding
from nodescope.use.mcp.tools.shared.time_text import render_at

# A change below this share of the level is slight. Half of what a person would
# notice on a chart that starts at zero; the demo's slow waves are 2 %.
MATERIAL_SHARE = 0.05
# Below, the study itself thinks it more likely wrong than right.
SURE_ENOUGH = 0.5
# Fields of a study's finding that have a place of their own.
PLACED = {
    "kind",
    "from",
    "to",
    "at",
    "confidence",
    "magnitude",
    "unit",
    "before",
    "after",
    "sentence",
    "evidence",
}
MOST_EVIDENCE = 10


@dataclass(frozen=True, slots=True)
class MergedAnswer:
    """A study over all lives in a span."""

    status: str
    reason: str
    sentence: str
    samples: int
    missing_share: float
    findings: tuple[dict[str, Any], ...]


def merge_answers(answers: Sequence[StudyAnswer]) -> MergedAnswer:
    if not answers:
        return MergedAnswer("not_enough_data", "no sample was measured in this span", "", 0, 1.0, ())
    samples = sum(int(one.get("samples") or 0) for one in answers)
    due = sum(
        int(one.get("samples") or 0) / max(1e-9, 1 - float(one.get("missing_share") or 0)) for one in answers
    )
    order = ("found", "none", "not_enough_data", "not_collected")
    best = min(answers, key=lambda one: order.index(str(one["status"])) if one["status"] in order else 3)
    findings = [finding for one in answers for finding in one.get("findings") or ()]
    findings.sort(key=lambda one: (-float(one["confidence"]), -abs(float(one.get("magnitude") or 0))))
    return MergedAnswer(
        str(best["status"]),
        clean_text(str(best.get("reason") or "")),
        clean_text(str(best.get("sentence") or "")),
        samples,
        max(0.0, 1 - samples / due) if due else 1.0,
        tuple(findings),
    )


def is_material(finding: dict[str, Any]) -> bool:
    """Whether a change is one that a person asking about changes would want to hear of."""
    evidence = finding.get("evidence") or {}
    before, after = finding.get("before"), finding.get("after")
    if float(finding.get("confidence") or 0) < SURE_ENOUGH:
        return False
    if before is None or after is None:
        return True
    level = max(abs(before), abs(after))
    if evidence.get("change") == "noise":
        moved = abs(float(evidence.get("noise_after") or 0) - float(evidence.get("noise_before") or 0))
    else:
        moved = abs(after - before)
    return bool(level and moved >= MATERIAL_SHARE * level)


def tell_finding(
    finding: dict[str, Any], merged: MergedAnswer, metric: str, node: str, container: str, newest_ms: int
) -> ToolFinding:
    """A study's finding with what it rests on."""
    facts: dict[str, Fact] = {"before": finding.get("before"), "after": finding.get("after")}
    facts["magnitude"] = finding.get("magnitude")
    facts.update({name: value for name, value in finding.items() if name not in PLACED and is_fact(value)})
    facts.update({name: value for name, value in (finding.get("evidence") or {}).items() if is_fact(value)})
    kept = {name: value for name, value in facts.items() if value is not None}
    at = finding.get("at")
    moment = at if at is not None else finding.get("from")
    return ToolFinding(
        clean_text(str(finding.get("sentence") or "")),
        str(finding.get("kind") or ""),
        node,
        container,
        metric,
        clean_text(str(finding.get("unit") or "")) or None,
        float(finding["confidence"]),
        merged.samples,
        merged.missing_share,
        finding.get("from"),
        finding.get("to"),
        at,
        render_at(float(moment) * 1000, newest_ms) if moment is not None else None,
        dict(list(kept.items())[:MOST_EVIDENCE]),
    )


def is_fact(value: object) -> bool:
    return value is None or isinstance(value, str | int | float)


def merge_figures(answers: Sequence[StudyAnswer]) -> dict[str, Fact]:
    """avg, max, min, stddev and trend class of the whole span; weights are samples."""
    rows = [
        (finding, int(one.get("samples") or 0))
        for one in answers
        if one.get("status") == "found"
        for finding in (one.get("findings") or ())[:1]
    ]
    total = sum(samples for _, samples in rows)
    if not total:
        return {}
    average = sum(row["average"] * samples for row, samples in rows) / total
    spread = (
        sum((row["stddev"] ** 2 + (row["average"] - average) ** 2) * samples for row, samples in rows) / total
    )
    # A backend answers in an order of its own: the newest life is the one that ends last.
    newest = max((row for row, _ in rows), key=lambda row: float(row.get("to") or 0))
    figures: dict[str, Fact] = {
        "avg": average,
        "max": max(row["max"] for row, _ in rows),
        "min": min(row["min"] for row, _ in rows),
        "stddev": sqrt(spread),
        "trend": newest.get("trend"),
        "unit": newest.get("unit"),
        "limit": newest.get("limit"),
        "samples": total,
        "missing_share": merge_answers(answers).missing_share,
    }
    if len(rows) == 1:
        figures["p95"] = newest.get("p95")
    return {name: value for name, value in figures.items() if value is not None}
