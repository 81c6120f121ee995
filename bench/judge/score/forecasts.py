"""Leaks: found or not, their time to the limit against the path's first passage, and false ones."""

import re
from dataclasses import dataclass

import numpy as np

from bench.judge.make.calm import CALM
from bench.judge.make.case import Random
from bench.judge.make.leaks import LEAKS, GrowthCase
from bench.judge.section import Outcomes, Section, balanced, pooled
from bench.judge.table import Pair, Row, confidence_rows, number_row, share_row
from nodescope.use.studies import Finding

HOLDS = (0.85, 0.95)
FOUND = 0.9
FALSE = 0.03
WIDER = 1.5
# How an answer may word what the data cannot exclude.
WORDS = {"level": r"level", "day": r"\bda(y|ily)"}


@dataclass(frozen=True)
class Forecast:
    is_found: bool
    has_time: bool
    is_inside: bool
    is_inside_other: bool | None
    relative_width: float | None
    """Of its interval, in widths of the oracle's; inf: open to the right."""
    is_late: bool
    """Whether the path was at its limit before the interval began."""
    says: bool
    """Whether it names what the data cannot exclude."""
    confidence: float | None
    is_leak: bool
    held: float | None
    """Share of forecasts from its own past that held, as stated."""


def judge(name: str, random: Random) -> Forecast:
    case = (LEAKS.get(name) or CALM[name])(random)
    findings = case.ask("trend").findings
    return compare(case, findings[0] if findings else None)


def compare(case: GrowthCase, finding: Finding | None) -> Forecast:
    if finding is None:
        return Forecast(False, False, False, None, None, False, False, None, case.is_leak, None)
    measures = finding.measures
    has_time = number(finding, "time_to_limit_seconds") is not None
    low, high = number(finding, "low") or 0.0, number(finding, "high")
    high = np.inf if high is None else high
    made = number(finding, "forecasts_made")
    says = f"{measures.get('caution')} {finding.sentence}".lower()
    is_found = has_time or measures.get("verdict") == "leak"
    return Forecast(
        is_found=is_found,
        has_time=has_time,
        is_inside=has_time and low <= case.passage_seconds <= high,
        is_inside_other=None if case.other_seconds is None else low <= case.other_seconds <= high,
        relative_width=(high - low) / case.oracle_seconds if has_time and case.oracle_seconds else None,
        is_late=has_time and case.passage_seconds < low,
        says=case.must_say is not None and bool(re.search(WORDS[case.must_say], says)),
        confidence=finding.confidence if is_found else None,
        is_leak=case.is_leak,
        held=(number(finding, "forecasts_held") or 0.0) / made if made else None,
    )


def number(finding: Finding, name: str) -> float | None:
    value = finding.measures.get(name)
    return float(value) if isinstance(value, (int, float)) else None


def is_false(one: Forecast) -> bool:
    """A time for what never gets there, or not then, without naming the other explanation."""
    return one.has_time and not one.is_inside and not one.says


def rows(outcomes: Outcomes) -> list[Row]:
    leaks = [name for name in LEAKS if name in outcomes]
    calm = calm_of(outcomes)
    timed = {name: [one for one in outcomes[name] if one.has_time] for name in leaks}
    result = [
        share_row("Leaks found", name, [one.is_found for one in outcomes[name]], FOUND) for name in leaks
    ]
    part = "90 % interval of the time to the limit holds the first passage"
    result += [share_row(part, name, [one.is_inside for one in timed[name]], *HOLDS) for name in leaks]
    for name in leaks:
        other = [one.is_inside_other for one in timed[name] if one.is_inside_other is not None]
        result += [share_row(part, f"  {name}: {other_reading(name)}", other)] if other else []
    every = pooled(timed, leaks)
    result += [share_row(part, "the path got there before the interval", [one.is_late for one in every])]
    result += [width_row(name, timed[name]) for name in leaks]
    part = "False leaks: a time to the limit without its doubt"
    result += [share_row(part, name, map(is_false, outcomes[name]), None, FALSE) for name in calm]
    part = "A time is told at all, doubt or not (for information)"
    result += [share_row(part, name, [one.has_time for one in outcomes[name]]) for name in calm]
    return [*result, *confidence(outcomes)]


def calm_of(outcomes: Outcomes) -> list[str]:
    return [name for name in CALM if name in outcomes]


def other_reading(name: str) -> str:
    return "wobble as the meter's" if name == "AR(0.999)" else "noise as a part of the path"


def width_row(name: str, timed: list[Forecast]) -> Row:
    part = "Median width of the interval, in widths of the oracle's"
    widths = [one.relative_width for one in timed if one.relative_width is not None]
    if not widths:
        return Row(part, name, "none to judge", f"<= {WIDER} x", is_met=False)
    return number_row(part, name, float(np.median(widths)), WIDER, len(widths), " x")


def confidence(outcomes: Outcomes) -> list[Row]:
    every = balanced(outcomes, [name for name in LEAKS if name in outcomes], calm_of(outcomes))
    pairs: list[Pair] = [(one.confidence, one.is_leak) for one in every if one.confidence is not None]
    part = "Confidence of trend: what was told a leak or given a time is a leak"
    held = [one.held for one in every if one.held is not None and one.is_leak and one.has_time]
    inside = [one.is_inside for one in every if one.held is not None and one.is_leak and one.has_time]
    stated = (
        Row(part, "forecasts of its own past that held", f"{np.mean(held):.1%}", cases=len(held))
        if held
        else None
    )
    return [
        *confidence_rows(part, pairs),
        *([stated, share_row(part, "of the same answers the interval holds", inside)] if stated else []),
    ]


SECTION = Section("forecasts", lambda size: dict.fromkeys([*LEAKS, *CALM], size), judge, rows)
