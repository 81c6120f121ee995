"""What does a study find in one metric of one container?"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from nodescope.base.quantity import render_quantity, render_seconds
from nodescope.base.text import capitalise, render_metric
from nodescope.base.time_range import render_moment
from nodescope.use.mcp.nodes.backend import Backend, NodeEvent, StudyAnswer
from nodescope.use.mcp.nodes.fleet import Fleet
from nodescope.use.mcp.protocol.answer import Fact, NextCall, ToolAnswer, ToolFinding
from nodescope.use.mcp.protocol.argument import CONTAINER, FROM, NODE, TO, Argument, Values
from nodescope.use.mcp.protocol.errors import ToolMisused
from nodescope.use.mcp.protocol.tool import Tool
from nodescope.use.mcp.tools.shared.container import Resident, find_resident
from nodescope.use.mcp.tools.shared.container_span import Stay, read_stay
from nodescope.use.mcp.tools.shared.leak import GROWING, tell_growth
from nodescope.use.mcp.tools.shared.merge_lives import (
    MATERIAL_SHARE,
    MergedAnswer,
    is_material,
    merge_answers,
    merge_figures,
    tell_finding,
)
from nodescope.use.mcp.tools.shared.metric_name import COUNTED_SCOPES, NotCollected, choose_metric
from nodescope.use.mcp.tools.shared.restart import tell_restarts
from nodescope.use.mcp.tools.shared.time_text import render_before, render_iso
from nodescope.use.studies import STUDIES

# What a study is most often asked about.
USUAL_METRIC = {"periodicity": "cpu", "anomaly": "cpu", "correlation": "cpu"}
# Two lives show the same period within this share of it.
SAME_PERIOD = 0.05
# So many changes are a pattern of their own, not a list to read.
MANY_CHANGES = 6


@dataclass(frozen=True, slots=True)
class Studied:
    """What a node answered about a container."""

    stay: Stay
    study: str
    metric: str
    unit: str
    answers: list[StudyAnswer]
    summaries: list[StudyAnswer]
    events: list[NodeEvent]


def ask(resident: Resident, values: Values) -> Callable[[Backend], Studied]:
    def question(backend: Backend) -> Studied:
        stay = read_stay(backend, resident, values["from"], values["to"])
        metric = choose_metric(
            values["metric"] or USUAL_METRIC.get(values["study"], "memory"), backend.read_metrics()
        )
        if metric.scope not in ("container", "pod", ""):
            ranked = f"; top_containers(by={metric.name}) tells it" if metric.scope in COUNTED_SCOPES else ""
            raise ToolMisused(
                f'"{metric.name}" is measured per {metric.scope}, not per container{ranked}; '
                "find_metrics finds one that is"
            )
        study, ids = values["study"], stay.ids
        asked = ids[::-1] if study == "correlation" else ids
        answers = backend.study(study, metric.name, asked, stay.span)
        summaries = answers if study == "summary" else backend.study("summary", metric.name, ids, stay.span)
        events = stay.read_events(backend)
        return Studied(stay, study, metric.name, metric.unit, answers, summaries, events)

    return question


async def run(fleet: Fleet, values: Values) -> ToolAnswer:
    seat, resident = await find_resident(fleet, values["container"], values["node"])
    try:
        replies = (await fleet.ask({seat.node: seat}, ask(resident, values))).need_one()
    except NotCollected as error:
        return not_collected(resident, str(error))
    studied = replies.answers[seat.node]
    merged = merge_answers(studied.answers)
    figures = merge_figures(studied.summaries)
    answer = ToolAnswer(
        headline="",
        status=merged.status,
        figures=figures,
        looked_at=f"{studied.metric} of {resident.name} on {seat.node}, {studied.stay.tell_span()}",
        not_looked_at=tell_gaps(studied),
        next_call=suggest(studied, resident, merged),
    )
    return TELLERS.get(values["study"], tell_other)(answer, resident, studied, merged)


def of(resident: Resident, studied: Studied) -> str:
    return f'{studied.metric} of "{resident.name}"'


def basis(studied: Studied, merged: MergedAnswer) -> str:
    return f"{studied.stay.tell_span()}; {merged.samples} samples, {100 * merged.missing_share:.1f} % missing"


def tell_all(
    resident: Resident, studied: Studied, merged: MergedAnswer, findings: Sequence[dict[str, Fact]]
) -> list[ToolFinding]:
    return [
        tell_finding(finding, merged, studied.metric, resident.node, resident.name, studied.stay.newest_ms)
        for finding in findings
    ]


def tell_nothing(
    answer: ToolAnswer, resident: Resident, studied: Studied, merged: MergedAnswer, no: str
) -> ToolAnswer:
    """No, and not enough to say, are two answers."""
    if merged.status == "none":
        return replace(answer, headline=f"No: {of(resident, studied)} {no} ({basis(studied, merged)}).")
    reason = merged.reason or "no sample was measured in this span"
    return replace(
        answer, headline=f"Cannot tell for {of(resident, studied)}: {reason} ({basis(studied, merged)})."
    )


def tell_periodicity(
    answer: ToolAnswer, resident: Resident, studied: Studied, merged: MergedAnswer
) -> ToolAnswer:
    held, doubtful = split_by_lives(studied.answers)
    if doubtful:
        shortest = min(float(one["period_seconds"]) for one in doubtful)
        told = (
            f"a period of {tell_period(shortest)} that one short life alone showed: noise does that at times"
        )
        answer = replace(answer, not_looked_at=(*answer.not_looked_at, told))
    if not held:
        status = "none" if doubtful else merged.status
        nothing = replace(merged, status=status)
        answer = replace(answer, status=status)
        return tell_nothing(answer, resident, studied, nothing, "does not repeat itself")
    merged = replace(merged, findings=tuple(one for one in merged.findings if one in held))
    best = merged.findings[0]
    period = float(best.get("period_seconds") or 0)
    swing = render_quantity(abs(float(best["magnitude"])), str(best.get("unit") or ""))
    return replace(
        answer,
        headline=(
            f"Yes: {of(resident, studied)} repeats every {tell_period(period)}, swinging by {swing} "
            f"(confidence {float(best['confidence']):.2f}; {basis(studied, merged)})."
        ),
        findings=tuple(tell_all(resident, studied, merged, merged.findings)),
    )


def split_by_lives(answers: Sequence[StudyAnswer]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """
    Periods that hold, and those that one short life alone shows.

    Of ten lives of noise one may seem to repeat. A period holds when another
    life shows it, too, or when the life that does is half of what was looked at.
    """
    total = sum(int(one.get("samples") or 0) for one in answers)
    found = [(one, finding) for one in answers for finding in one.get("findings") or ()]
    held = [
        finding
        for one, finding in found
        if 2 * int(one.get("samples") or 0) >= total
        or any(other is not one and is_same_period(finding, another) for other, another in found)
    ]
    return held, [finding for _, finding in found if finding not in held]


def is_same_period(finding: dict[str, Any], other: dict[str, Any]) -> bool:
    lengths = sorted(float(one["period_seconds"]) for one in (finding, other))
    return lengths[1] - lengths[0] <= SAME_PERIOD * lengths[1]


def tell_period(seconds: float) -> str:
    """As people say it, and where that hides seconds, in seconds: 60 s, 5 min (300 s), 97.3 s."""
    rounded, exact = render_seconds(seconds), f"{seconds:.1f} s".replace(".0 s", " s")
    return exact if rounded.endswith(" s") else f"{rounded} ({exact})"


def tell_changes(
    answer: ToolAnswer, resident: Resident, studied: Studied, merged: MergedAnswer
) -> ToolAnswer:
    """Changes that matter in order of time, a restart among them; slight ones are counted."""
    material = [finding for finding in merged.findings if is_material(finding)]
    slight = len(merged.findings) - len(material)
    restarts = tell_restarts(resident, studied.stay.lives, studied.events, studied.stay.newest_ms)
    changes = sorted(tell_all(resident, studied, merged, material), key=lambda one: one.at or 0)
    told = [*changes, *restarts]
    told.sort(key=lambda one: one.at or 0)
    share = f"{100 * MATERIAL_SHARE:.0f} %"
    if slight:
        lesser = f"{slight} slight or doubtful changes, each below {share} of the level or of confidence 0.5"
        answer = replace(answer, not_looked_at=(*answer.not_looked_at, lesser))
    if not told:
        status = "none" if merged.status == "found" else merged.status
        answer = replace(answer, status=status)
        no = f"did not change by {share} or more"
        return tell_nothing(answer, resident, studied, replace(merged, status=status), no)
    if not changes:
        what = f"{of(resident, studied)} did not step on its own, but it was restarted: {told[0].sentence}"
        return replace(answer, status="found", headline=what, findings=tuple(told))
    if len(changes) > MANY_CHANGES:
        what = f"{of(resident, studied)} changed {len(changes)} times; ask for periodicity: it may repeat"
    else:
        times = "once" if len(changes) == 1 else f"{len(changes)} times"
        largest = max(changes, key=lambda one: abs(float(one.evidence.get("magnitude") or 0)))
        greatest = "" if len(changes) == 1 else "; the largest: "
        what = f"{of(resident, studied)} changed {times}{greatest or ': '}{largest.sentence[:-1]} ({render_before((largest.at or 0) * 1000, studied.stay.newest_ms)})"
    return replace(
        answer, status="found", headline=f"{what} ({basis(studied, merged)}).", findings=tuple(told)
    )


def tell_trend(answer: ToolAnswer, resident: Resident, studied: Studied, merged: MergedAnswer) -> ToolAnswer:
    """A life that has ended is told in the past tense: its forecast is of a time that is over."""
    ended_ms = studied.stay.lives[-1].first_ms if len(studied.stay.lives) > 1 else 0
    past = [one for one in merged.findings if float(one["to"]) * 1000 < ended_ms]
    told = tuple(
        replace(
            one,
            sentence=f"{capitalise(tell_growth(finding, render_metric(studied.metric)))}; that life ended then.",
        )
        if finding in past and finding.get("verdict") in GROWING
        else one
        for finding, one in zip(merged.findings, tell_all(resident, studied, merged, merged.findings))
    )
    if not told:
        return tell_other(answer, resident, studied, merged)
    since = ""
    if len(past) == len(merged.findings):
        since = f" Since its restart at {render_moment(ended_ms)} it has not grown so."
    headline = f'"{resident.name}": {told[0].sentence}{since} ({basis(studied, merged)})'
    return replace(answer, headline=headline, findings=told)


def tell_other(answer: ToolAnswer, resident: Resident, studied: Studied, merged: MergedAnswer) -> ToolAnswer:
    if not merged.findings:
        return tell_nothing(answer, resident, studied, merged, NOTHINGS[studied.study])
    return replace(
        answer,
        headline=f'"{resident.name}": {merged.findings[0]["sentence"]} ({basis(studied, merged)})',
        findings=tuple(tell_all(resident, studied, merged, merged.findings)),
    )


NOTHINGS = {
    "trend": "neither rises nor falls for good",
    "anomaly": "shows nothing unusual in its newest stretch",
    "correlation": "moved together with no other container",
    "summary": "has no figures",
}
TELLERS = {"periodicity": tell_periodicity, "changepoint": tell_changes, "trend": tell_trend}


def tell_gaps(studied: Studied) -> tuple[str, ...]:
    told = ["other metrics and other containers", *studied.stay.tell_left_out()]
    lives = len(studied.stay.lives)
    if lives > 1:
        told.append(f"no study looks across a restart: {lives} lives were studied one by one")
    return tuple(told)


def suggest(studied: Studied, resident: Resident, merged: MergedAnswer) -> NextCall:
    where: dict[str, Fact] = {"container": resident.name, "node": resident.node}
    study, metric = studied.study, studied.metric
    changes = [finding for finding in merged.findings if is_material(finding)]
    if study == "changepoint" and len(changes) > MANY_CHANGES:
        asked = {**where, "study": "periodicity", "metric": metric}
        return NextCall("analyze_container", asked, "whether these changes repeat")
    at = changes[0].get("at") if changes else None
    if study == "changepoint" and at is not None:
        moment = render_iso(float(at) * 1000)
        return NextCall("explain_incident", {"at": moment, "node": resident.node}, "what else changed then")
    if study == "changepoint" and any(event.kind == "oom" for event in studied.events):
        asked = {**where, "study": "trend", "metric": "memory"}
        return NextCall("analyze_container", asked, "whether it leaked before it was killed")
    if merged.status == "not_enough_data":
        asked = {**where, "study": study, "metric": metric, "from": "-6h"}
        return NextCall("analyze_container", asked, "a longer span")
    return NextCall("summarize_container", where, "all its metrics, limits and restarts")


def not_collected(resident: Resident, reason: str) -> ToolAnswer:
    return ToolAnswer(
        headline=f"Cannot tell for {resident.name}: {reason}.",
        status="not_collected",
        looked_at=f"what was collected on {resident.node}",
        next_call=NextCall("list_metrics", {"node": resident.node}, "what was collected"),
    )


TOOL = Tool(
    "analyze_container",
    "Analyze one container",
    "Run a study on one metric of a container: changepoint (when did it change), periodicity (does it repeat), "
    "trend (does it grow, when is it full), anomaly, correlation, summary.",
    (
        CONTAINER,
        Argument("study", "which question", required=True, choices=tuple(STUDIES)),
        Argument("metric", "plain or raw name; cpu or memory unless given, as the study usually wants"),
        NODE,
        FROM,
        TO,
    ),
    run,
)
