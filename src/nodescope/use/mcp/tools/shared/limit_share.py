"""
Memory as a share of its limit, from the figures of memory: under one limit it is the same series on another scale.

Reading it again beside its limit and studying it once more would be a tenth of a container's summary.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from nodescope.base.time_range import TimeRange
from nodescope.use.mcp.nodes.backend import Backend, read_levels
from nodescope.use.mcp.tools.shared.merge_lives import number_of
from nodescope.use.studies import StudyAnswer

NAME, OF, LIMIT = "memory_limit_share", "memory", "memory_limit"
SCALED = ("average", "min", "max", "p95", "stddev")


def read_steady(
    backend: Backend, span: TimeRange, ids: Sequence[str], known: Collection[str]
) -> Mapping[str, tuple[float, int]]:
    """By id the limit and how often it was read; empty unless each of these had one and it never changed."""
    if not {NAME, OF, LIMIT} <= set(known):
        return {}
    rows = {row.id: row for row in read_levels(backend, LIMIT, span, ids).rows}
    if not all(one in rows and rows[one].least == rows[one].most > 0 for one in ids):
        return {}
    return {one: (rows[one].most, rows[one].samples) for one in ids}


def scale_answers(
    answers: Sequence[StudyAnswer], limits: Mapping[str, tuple[float, int]]
) -> list[StudyAnswer] | None:
    """None where a limit was read less often than memory: before the first one there is no share."""
    found = []
    for answer in answers:
        limit, samples = limits[str(answer.series["id"])]
        if samples < answer.samples:
            return None
        found.append(scale_answer(answer, limit))
    return found


def scale_answer(answer: StudyAnswer, limit: float) -> StudyAnswer:
    """Figures alone: the sentences of a study are of the bytes."""
    findings = []
    for one in answer.findings:
        scaled = {name: number_of(one.measures[name]) / limit for name in SCALED}
        measures = {**one.measures, **scaled, "saturation": None, "limit": None}
        findings.append(
            replace(one, unit="ratio", magnitude=scaled["average"], measures=measures, sentence="")
        )
    return replace(answer, series={**answer.series, "metric": NAME}, sentence="", findings=tuple(findings))
