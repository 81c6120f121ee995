"""
One study over all workloads: a first pass over coarse means of everybody, then the study of those that stand out.

The first pass reads 240 means of each container (from rollups where there are
some) and rates them by what the study looks for. The study itself runs on the
most telling container of each of the dozen workloads that stand out.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from nodescope.base.block import Floats
from nodescope.base.clock import stopwatch_seconds, thread_cpu_ns
from nodescope.base.errors import RequestRejected
from nodescope.base.quantity import render_count, render_seconds
from nodescope.base.text import clean_name, clean_text, render_metric
from nodescope.base.time_range import TimeRange
from nodescope.read.query.engine import QueryLine
from nodescope.use.answers.containers import Life
from nodescope.use.answers.findings import bound_request, read_series, run_kept
from nodescope.use.answers.ranked.ranking import shorten
from nodescope.use.answers.refusal import not_found
from nodescope.use.answers.snapshots import ServedNode, View
from nodescope.use.answers.workloads import group_workloads
from nodescope.use.studies import STUDIES, Finding, StudyAnswer, correlation

SCANNED = tuple(name for name in STUDIES if name != correlation.NAME)
# What a scan is most often about, and how far back it looks unless told.
USUAL_METRIC = {"trend": "memory", "changepoint": "cpu", "summary": "cpu"}
HOUR_MS = 3_600_000
USUAL_MS = {"trend": 6 * HOUR_MS, "periodicity": 3 * HOUR_MS, "anomaly": 3 * HOUR_MS}
POINTS = 240
MOST_STUDIED = 12
# A container that was there for less has no course that could be studied.
LEAST_MS = 300_000
# Studies take so much CPU at most, so that a busy machine gives the same answer as a quiet one; and on one
# that is very busy so many times as long. What is left then is named.
STUDY_SECONDS, WAIT_TIMES = 5.0, 1.6
SURE_ENOUGH = 0.5
# Of the level: a change of less is not worth a line in a list of the worst.
MATERIAL_SHARE = 0.05
GROWING = ("leak", "rising")
# Workloads that the headline names; the lines below it have the others.
MOST_NAMED = 4


@dataclass(frozen=True, slots=True)
class ScanRow:
    """What the study found in one workload."""

    node: str
    workload: str
    container: str
    kind: str
    sentence: str
    unit: str
    confidence: float | None
    magnitude: float | None
    before: float | None
    after: float | None
    weight: float | None
    """How much it stands out among the others: in the metric's own unit, times the confidence."""
    from_ms: int
    to_ms: int
    samples: int


@dataclass(frozen=True, slots=True)
class NodeScan:
    """One study over all workloads of one node."""

    node: str
    study: str
    metric: str
    from_ms: int
    to_ms: int
    workloads: int
    """Looked at in the first pass."""
    studied: int
    rows: tuple[ScanRow, ...]
    unseen: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ScanCandidate:
    """The most telling container of a workload."""

    workload: str
    life: Life
    score: float


def scan_nodes(
    view: View,
    study: str,
    metric: str,
    span: TimeRange,
    check: Callable[[], None] = lambda: None,
    seconds_most: float = STUDY_SECONDS,
) -> list[NodeScan]:
    """Of each node that has the metric; where none has it, RequestRejected."""
    if study not in SCANNED:
        raise not_found(f'no study "{study[:60]}" to scan with; there are: {", ".join(SCANNED)}')
    found, refused = [], None
    for node in view.nodes:
        check()
        try:
            found += [scan_node(view, node, study, metric, span, check, seconds_most)] if node.to_ms else []
        except RequestRejected as error:
            refused = error
    if refused is not None and not found:
        raise refused
    return found


def scan_node(
    view: View,
    node: ServedNode,
    study: str,
    metric: str,
    span: TimeRange,
    check: Callable[[], None],
    seconds_most: float,
) -> NodeScan:
    span = TimeRange(max(span.from_ms, node.from_ms or 0), min(span.to_ms, node.to_ms or span.to_ms))
    lives = [life for life in view.lives(span) if life.node == node.name]
    looked = shorten(span, len(lives))
    lines = view.query(node, metric, None, looked, POINTS).lines
    scores = {id_of_line(line): score for line in lines if (score := rate(study, line)) is not None}
    workloads = group_workloads(lives)
    candidates = [
        ScanCandidate(clean_name(one.full_name), best, scores[best.id])
        for one in workloads
        if (best := choose_life(one.lives, scores, looked)) is not None
    ]
    candidates.sort(key=lambda one: (-one.score, one.workload))
    rows, studied = study_candidates(view, study, metric, candidates, looked, check, seconds_most)
    return NodeScan(
        node.name,
        study,
        metric,
        looked.from_ms,
        looked.to_ms,
        len(candidates),
        studied,
        tuple(sorted(rows, key=lambda row: -(row.weight or 0.0))),
        tuple(list_unseen(span, looked, len(workloads), len(candidates), studied)),
    )


def id_of_line(line: QueryLine) -> str:
    return line.subject.label("l_container_id") or line.subject.label("l_service") or ""


def choose_life(lives: Sequence[Life], scores: dict[str, float], span: TimeRange) -> Life | None:
    """Of those that were there for long enough, the one that stands out."""
    there = [life for life in lives if life.id in scores and stay_ms(life, span) >= LEAST_MS]
    return max(there, key=lambda life: scores[life.id], default=None)


def stay_ms(life: Life, span: TimeRange) -> int:
    return min(life.last_ms, span.to_ms) - max(life.first_ms, span.from_ms)


def list_unseen(span: TimeRange, looked: TimeRange, workloads: int, rated: int, studied: int) -> list[str]:
    lines = []
    if looked.from_ms > span.from_ms:
        lines.append(
            f"all but the last {render_seconds(looked.seconds)} of the span: too many samples; shorten the span"
        )
    if workloads > rated:
        short = render_seconds(LEAST_MS / 1000)
        lines.append(
            f"{render_count(workloads - rated, 'workload')} without samples of it, or with containers that lived for less than {short}"
        )
    if rated > studied:
        late = "the time was over" if studied < min(rated, MOST_STUDIED) else "others stood out more"
        lines.append(
            f"{render_count(rated - studied, 'workload')} only in {POINTS} means each, because {late}"
        )
    return lines


# -- the first pass -----------------------------------------------------------------------


def rate(study: str, line: QueryLine) -> float | None:
    """How much one container stands out, by what the study looks for; None without a course."""
    good = np.isfinite(line.points.mean)
    mean, most = line.points.mean[good], line.points.maximum[good]
    if len(mean) < 8:
        return None
    return RATES[study](mean, most)


def rate_rise(mean: Floats, most: Floats) -> float:
    """The rise from the first to the last third, as far as the thirds between go the same way; in its unit."""
    del most
    thirds = [float(part.mean()) for part in np.array_split(mean, 3)]
    rise = thirds[2] - thirds[0]
    noise = float(np.abs(np.diff(mean)).mean())
    return max(0.0, rise) * (1.0 if thirds[0] <= thirds[1] <= thirds[2] else 0.3) - noise


def rate_step(mean: Floats, most: Floats) -> float:
    """The largest difference that lasts: between all before and all after a point that is not near an end; in its unit."""
    del most
    edge = max(3, len(mean) // 10)
    sums, counts = np.cumsum(mean), np.arange(1, len(mean) + 1)
    inside = slice(edge - 1, len(mean) - edge)
    before = sums[inside] / counts[inside]
    after = (sums[-1] - sums[inside]) / (len(mean) - counts[inside])
    return float(np.abs(after - before).max())


def rate_height(mean: Floats, most: Floats) -> float:
    """How high its highest seconds are above its usual level, in its unit."""
    return float(np.percentile(most, 98) - np.median(mean))


def rate_newest(mean: Floats, most: Floats) -> float:
    """How far its newest tenth is from its usual level, in its unit."""
    del most
    newest = max(1, len(mean) // 10)
    return float(np.abs(mean[-newest:] - np.median(mean[:-newest])).max())


def rate_level(mean: Floats, most: Floats) -> float:
    del most
    return float(mean.mean())


RATES: dict[str, Callable[[Floats, Floats], float]] = {
    "trend": rate_rise,
    "changepoint": rate_step,
    "periodicity": rate_height,
    "anomaly": rate_newest,
    "summary": rate_level,
}


# -- the study ----------------------------------------------------------------------------


def study_candidates(
    view: View,
    study: str,
    metric: str,
    candidates: Sequence[ScanCandidate],
    span: TimeRange,
    check: Callable[[], None],
    seconds_most: float,
) -> tuple[list[ScanRow], int]:
    """What the study finds in those that stand out, and how many were studied in time."""
    began, cpu_began = stopwatch_seconds(), thread_cpu_ns()
    rows, studied = [], 0
    for one in candidates[:MOST_STUDIED]:
        spent = (thread_cpu_ns() - cpu_began) / 1e9
        if studied and max(spent, (stopwatch_seconds() - began) / WAIT_TIMES) > seconds_most:
            break
        check()
        studied += 1
        for answer in study_life(view, study, metric, one.life, span):
            rows += [make_row(one, answer, best)] if (best := choose_finding(study, answer)) else []
    return rows, studied


def study_life(view: View, study: str, metric: str, life: Life, span: TimeRange) -> Iterator[StudyAnswer]:
    """Without the trials that tell what a No could have seen: a scan's No is about many."""
    for _, series in read_series(view, bound_request(view, study, metric, (life,), span, "", 1)):
        yield run_kept(study, series, [series])


def choose_finding(study: str, answer: StudyAnswer) -> Finding | None:
    """The one that counts most, if any does."""
    telling = [one for one in answer.findings if is_telling(study, one)]
    return max(telling, key=weigh, default=None)


def is_telling(study: str, finding: Finding) -> bool:
    if study == "summary":
        # Who has none of it is not among those that have the most.
        return weigh(finding) > 0
    if finding.confidence < SURE_ENOUGH:
        return False
    if study == "trend":
        return finding.measures.get("verdict") in GROWING
    before, after = finding.before, finding.after
    if before is None or after is None:
        return True
    return abs(after - before) >= MATERIAL_SHARE * max(abs(before), abs(after))


def weigh(finding: Finding) -> float:
    """In the metric's unit: a rise of 200 MiB goes before one of 20, however sure both are."""
    size = (
        finding.magnitude
        if finding.magnitude is not None
        else (finding.after or 0.0) - (finding.before or 0.0)
    )
    return finding.confidence * abs(size)


def weigh_row(one: ScanCandidate, answer: StudyAnswer, finding: Finding) -> float:
    """A burst that returns is a change as well; in a list of changes, what lasts counts."""
    return finding.confidence * one.score if answer.study == "changepoint" else weigh(finding)


def make_row(one: ScanCandidate, answer: StudyAnswer, finding: Finding) -> ScanRow:
    return ScanRow(
        one.life.node,
        one.workload,
        clean_name(one.life.name),
        finding.kind,
        clean_text(finding.sentence, 300),
        finding.unit,
        finding.confidence,
        finding.magnitude,
        finding.before,
        finding.after,
        weigh_row(one, answer, finding),
        round(finding.start_at * 1000),
        round(finding.end_at * 1000),
        answer.samples,
    )


# -- sentences ----------------------------------------------------------------------------

WORDS = {
    "trend": ("{} rises steadily", "no steady rise of {} was found"),
    "periodicity": ("{} repeats itself", "no repeating pattern of {} was found"),
    "changepoint": ("{} changed", "no change of {} was found"),
    "anomaly": ("{} is unusual", "nothing unusual was found in {}"),
    "summary": ("{} is highest", "{} was not measured"),
}


def render_row(row: ScanRow) -> str:
    return f'"{row.workload}": {row.sentence}'


def render_scan(scans: Sequence[NodeScan]) -> str:
    """One sentence about all nodes: whose, the weightiest first, and of how many; what it is, the lines say."""
    if not scans:
        return "No: there was nothing to look at."
    rows = merge_rows(scans)
    found, nothing = (text.format(render_metric(scans[0].metric)) for text in WORDS[scans[0].study])
    workloads = render_count(sum(one.workloads for one in scans), "workload")
    if not rows:
        return f"No: {nothing} in {workloads}, of which the {sum(one.studied for one in scans)} that stood out most were studied."
    return f"{found[0].upper()}{found[1:]} in {len(rows)} of {workloads}: {name_rows(rows)}."


def name_rows(rows: Sequence[ScanRow]) -> str:
    """`most in "shop/cart" on n1, then "web" and 3 more`."""
    names = list(dict.fromkeys(f'"{row.workload}" on {row.node}' for row in rows))
    if len(names) == 1:
        return names[0]
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return f"most in {names[0]}, then {', '.join(names[1:MOST_NAMED])}{more}"


def merge_rows(scans: Sequence[NodeScan]) -> list[ScanRow]:
    """Of all nodes, the weightiest first."""
    rows = (row for one in scans for row in one.rows)
    return sorted(rows, key=lambda row: (-(row.weight or 0.0), row.workload))
