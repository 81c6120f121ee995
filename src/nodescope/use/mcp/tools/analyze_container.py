"""What does a study find in one metric of one container?"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import inf

from nodescope.base.quantity import render_quantity, render_seconds
from nodescope.base.text import capitalise, render_metric
from nodescope.base.time_range import TimeRange, render_moment
from nodescope.use.answers.containers import Container
from nodescope.use.answers.deploys import LevelChange
from nodescope.use.answers.events import ContainerEvent
from nodescope.use.answers.findings import ALL, is_several
from nodescope.use.answers.incidents.incident import Incident
from nodescope.use.answers.power import render_power
from nodescope.use.mcp.nodes.backend import Backend, run_study, summarize_lives
from nodescope.use.mcp.nodes.fleet import Fleet
from nodescope.use.mcp.protocol.answer import Fact, NextCall, ToolAnswer, ToolFinding
from nodescope.use.mcp.protocol.argument import CONTAINER, FROM, NODE, TO, Argument, Values
from nodescope.use.mcp.protocol.errors import ToolMisused
from nodescope.use.mcp.protocol.tool import Tool
from nodescope.use.mcp.tools.shared.container_span import ContainerSpan, ask_nodes, join_spans, see_container
from nodescope.use.mcp.tools.shared.incident import make_finding
from nodescope.use.mcp.tools.shared.leak import is_growth, render_growth
from nodescope.use.mcp.tools.shared.merge_lives import (
    MATERIAL_SHARE,
    Figures,
    MergedAnswer,
    is_material,
    measure,
    merge_answers,
    merge_figures,
    number_of,
    render_finding,
)
from nodescope.use.mcp.tools.shared.metric_name import COUNTED_SCOPES, NotCollected, choose_metric
from nodescope.use.mcp.tools.shared.next_call import keep_span, suggest_incident
from nodescope.use.mcp.tools.shared.restart import find_restarts
from nodescope.use.mcp.tools.shared.takeover import (
    SideLevels,
    add_levels,
    join_sides,
    leave_restarts,
    read_sides,
)
from nodescope.use.mcp.tools.shared.takeover import render_changes as render_takeovers
from nodescope.use.mcp.tools.shared.time_text import extent_of, render_before
from nodescope.use.studies import STUDIES, Finding, StudyAnswer, anomaly
from nodescope.use.studies.summary import FIGURES

# What a study is most often about.
USUAL_METRIC = {"periodicity": "cpu", "anomaly": "cpu", "correlation": "cpu"}
MINUTE_MS, HOUR_MS = 60_000, 3_600_000
# How far back a study looks when the call does not say, one span after the other until one has an
# answer. A leak is looked for in a day first: what rises for an hour may fall again. A period is
# looked for in the last hour first, which is the sharpest, and then in what shows longer ones.
LOOKS_BACK_MS = {
    "trend": (24 * HOUR_MS, 6 * HOUR_MS, HOUR_MS),
    "periodicity": (HOUR_MS, 6 * HOUR_MS, 24 * HOUR_MS),
    "changepoint": (HOUR_MS, 6 * HOUR_MS),
}
# A longer span that a No suggests: at least an hour, or so many times the one that was looked at.
LONGER = 6
# Two lives show the same period within this share of it.
SAME_PERIOD = 0.05
# Beside the cause, so many that only moved together are told.
MOST_MOVED = 3
# So many changes are a pattern of their own, not a list to read.
MANY_CHANGES = 6
# A move that is made more often than this is a habit.
MANY_RECURRENCES = 2


@dataclass(frozen=True, slots=True)
class Studied:
    """What a node answered about a container."""

    seen: ContainerSpan
    study: str
    metric: str
    answers: list[StudyAnswer]
    summaries: list[StudyAnswer]
    events: list[ContainerEvent]
    sides: SideLevels
    """Levels before and after its containers were replaced."""
    oldest_ms: int
    """Where the node's data begins."""
    incidents: tuple[Incident, ...] = ()
    """Of correlation: who took from this one what it then lacked."""
    changes: list[LevelChange] = field(default_factory=list)

    @property
    def container(self) -> Container:
        return self.seen.container

    @property
    def figures(self) -> Figures | None:
        return merge_figures(self.summaries)

    @property
    def what(self) -> str:
        return f'{self.metric} of "{self.container.name}"'


def look_back(backend: Backend, container: Container, values: Values) -> Studied | ToolAnswer | None:
    """The study over the span of the call, else over the first of the usual spans that has an answer."""
    about = backend.read_about()
    oldest_ms = extent_of(about).from_ms
    lengths = () if values["from"] else LOOKS_BACK_MS.get(values["study"], ())
    tried: list[Studied] = []
    for usual_ms in lengths:
        seen = see_container(about, container, values, usual_ms)
        if seen is None or any(one.seen.span == seen.span for one in tried):
            continue
        studied = study(backend, seen, values, oldest_ms)
        if isinstance(studied, ToolAnswer) or has_answer(backend, studied, tried):
            return studied
        tried.append(studied)
    if tried:
        return max(tried, key=lambda one: one.seen.span.seconds)
    seen = see_container(about, container, values)
    return study(backend, seen, values, oldest_ms) if seen else None


def has_answer(backend: Backend, studied: Studied, longer: Sequence[Studied]) -> bool:
    """Whether this span answers the question, so that no other is looked at."""
    merged = merge_answers(studied.answers)
    if studied.study == "periodicity":
        return bool(split_by_lives(studied.answers)[0])
    if studied.study == "changepoint":
        # Replicas that were there all the time are no change.
        has_begun = any(life.first_ms > studied.seen.span.from_ms for life in studied.seen.lives)
        return has_begun or any(is_material(one) for one in merged.findings)
    if not longer:
        return bool(merged.findings)
    return any(is_growth(one) and is_new_height(backend, one, studied, longer[0]) for one in merged.findings)


def is_new_height(backend: Backend, finding: Finding, studied: Studied, longer: Studied) -> bool:
    """A rise of the last hours is news where it leads above all that was there before: a wave does not."""
    seen = longer.seen
    before = TimeRange(seen.span.from_ms, studied.seen.span.from_ms)
    figures = merge_figures(run_study(backend, FIGURES, studied.metric, seen.ids, before))
    return figures is None or (finding.after or 0.0) > (figures.max or 0.0)


def study(backend: Backend, seen: ContainerSpan, values: Values, oldest_ms: int) -> Studied | ToolAnswer:
    """What the study finds; where the node does not have the metric, the answer that says so."""
    name = values["study"]
    if name == anomaly.NAME and is_several(values["metric"] or ""):
        return look_together(backend, seen, values["metric"], oldest_ms)
    try:
        metric = choose_metric(values["metric"] or USUAL_METRIC.get(name, "memory"), backend.read_metrics())
    except NotCollected as error:
        node = seen.container.node
        return ToolAnswer(
            f"Cannot tell for {seen.container.name}: {error}.",
            "not_collected",
            looked_at=f"what was collected on {node}",
            next_call=NextCall("list_metrics", {"node": node}, "what was collected"),
        )
    if metric.scope not in ("container", "pod", ""):
        ranked = f"; top_containers(by={metric.name}) tells it" if metric.scope in COUNTED_SCOPES else ""
        raise ToolMisused(
            f'"{metric.name}" is measured per {metric.scope}, not per container{ranked}; '
            "find_metrics finds one that is"
        )
    ids = seen.ids[::-1] if name == "correlation" else seen.ids
    answers = run_study(backend, name, metric.name, ids, seen.span)
    is_summary = name == "summary"
    summaries = answers if is_summary else summarize_lives(backend, metric.name, seen.ids, seen.span)
    sides = read_sides(backend, seen, (metric.name,)) if name == "changepoint" else {}
    causes = find_causes(backend, seen, name)
    events = seen.read_events(backend)
    return Studied(seen, name, metric.name, answers, summaries, events, sides, oldest_ms, causes)


def look_together(backend: Backend, seen: ContainerSpan, metrics: str, oldest_ms: int) -> Studied:
    """Several metrics at once; they have no figures in common."""
    answers = run_study(backend, anomaly.NAME, metrics, seen.ids, seen.span)
    what = "all metrics" if metrics == ALL else metrics
    return Studied(seen, anomaly.NAME, what, answers, [], seen.read_events(backend), {}, oldest_ms)


def find_causes(backend: Backend, seen: ContainerSpan, study: str) -> tuple[Incident, ...]:
    """Whom a question about what moved together is really about: the neighbour that did it."""
    found = backend.read_incidents(seen.span, seen.ids) if study == "correlation" else None
    if found is None:
        return ()
    return tuple(one for one in found.incidents if one.kind in ("taken", "deploy") and one.victims)


def join_studied(parts: Sequence[Studied]) -> Studied:
    """Of several nodes as one."""
    last, seen = parts[-1], join_spans([one.seen for one in parts])
    return replace(
        last,
        seen=seen,
        answers=[answer for one in parts for answer in one.answers],
        summaries=[answer for one in parts for answer in one.summaries],
        events=[event for one in parts for event in one.events],
        incidents=tuple(found for one in parts for found in one.incidents),
        changes=join_sides(seen, (last.metric,), [one.sides for one in parts]),
    )


async def run(fleet: Fleet, values: Values) -> ToolAnswer:
    replies = await ask_nodes(fleet, values, lambda backend, container: look_back(backend, container, values))
    parts = [one for one in replies if isinstance(one, Studied)]
    if not parts:
        return next(one for one in replies if isinstance(one, ToolAnswer))
    studied = join_studied(parts)
    merged = merge_answers(studied.answers)
    container = studied.container
    answer = ToolAnswer(
        headline="",
        status=merged.status,
        figures=studied.figures.facts() if studied.figures else {},
        looked_at=f"{studied.metric} of {container.name} on {container.node}, {studied.seen.render()}",
        not_looked_at=list_gaps(studied.seen),
        rest="a shorter span (from, to) shows them",
        next_call=suggest(studied, merged),
    )
    return RENDERERS.get(values["study"], render_other)(answer, studied, merged)


def basis(studied: Studied, merged: MergedAnswer) -> str:
    return f"{studied.seen.render()}; {merged.samples} samples, {100 * merged.missing_share:.1f} % missing"


def render_all(
    studied: Studied, merged: MergedAnswer, findings: Sequence[Finding], sentences: Sequence[str] = ()
) -> tuple[ToolFinding, ...]:
    """With these sentences where they are given; of a workload with several pods, each with the pod that it is of."""
    seen = studied.seen
    names = name_findings(studied)
    rendered = [
        render_finding(finding, merged, studied.metric, seen.container, seen.newest_ms)
        for finding in findings
    ]
    if sentences:
        rendered = [replace(one, sentence=text) for one, text in zip(rendered, sentences, strict=True)]
    if len(seen.container.pods) <= 1:
        return tuple(rendered)
    return tuple(
        replace(one, container=name, sentence=f'"{name}": {one.sentence}')
        if (name := names.get(id(finding)))
        else one
        for finding, one in zip(findings, rendered, strict=True)
    )


def name_findings(studied: Studied) -> dict[int, str]:
    """By the identity of a finding, the pod and container that it was found in."""
    lives = {life.id: life.name for life in studied.seen.lives}
    return {
        id(finding): lives[str(answer.series["id"])]
        for answer in studied.answers
        for finding in answer.findings
        if str(answer.series["id"]) in lives
    }


def render_nothing(
    answer: ToolAnswer, studied: Studied, merged: MergedAnswer, no: str, status: str = ""
) -> ToolAnswer:
    """No, and not enough to say, are two answers."""
    status = status or merged.status
    reason = merged.reason or "no sample was measured in this span"
    said = f"Cannot tell for {studied.what}: {reason}"
    if status == "none":
        power = describe_power(studied)
        said = f"No: {studied.what} {no}{f'; {power}' if power else ''}"
    return replace(answer, status=status, headline=f"{said} ({basis(studied, merged)}).")


def describe_power(studied: Studied) -> str:
    """Of the newest life that says No: the others are over."""
    powers = [one.power for one in studied.answers if one.status == "none" and one.power]
    unit = studied.figures.unit if studied.figures else ""
    return render_power(powers[-1], unit) if powers else ""


def add_gap(answer: ToolAnswer, line: str) -> ToolAnswer:
    return replace(answer, not_looked_at=(*answer.not_looked_at, line))


def render_periodicity(answer: ToolAnswer, studied: Studied, merged: MergedAnswer) -> ToolAnswer:
    held, doubtful = split_by_lives(studied.answers)
    if doubtful:
        shortest = render_period(min(period_of(one) for one in doubtful))
        answer = add_gap(
            answer, f"a period of {shortest} that one short life alone showed: noise does that at times"
        )
    if not held:
        status = "none" if doubtful else merged.status
        return render_nothing(answer, studied, merged, "does not repeat itself", status)
    findings = [one for one in merged.findings if one in held]
    best = findings[0]
    size = best.magnitude
    swing = "" if size is None else f", swinging by {render_quantity(abs(size), best.unit)}"
    headline = (
        f"Yes: {studied.what} repeats {render_often(best)}{swing}{render_second(findings)} "
        f"(confidence {best.confidence:.2f}; {basis(studied, merged)})."
    )
    return replace(answer, headline=headline, findings=render_all(studied, merged, findings))


def render_often(finding: Finding) -> str:
    """Every 5 min (300 s) for 20 s; roughly every 40 s."""
    lasting = finding.measures.get("pulse_seconds")
    pulse = f" for {render_seconds(float(lasting))}" if lasting is not None else ""
    rough = "roughly " if finding.measures.get("regularity") == "rough" else ""
    return f"{rough}every {render_period(period_of(finding))}{pulse}"


def render_second(findings: Sequence[Finding]) -> str:
    """The next period, where it is another one: of a job within a job both are told."""
    others = [one for one in findings[1:] if not is_same_period(one, findings[0])]
    return f", and {render_often(others[0])}" if others else ""


def split_by_lives(answers: Sequence[StudyAnswer]) -> tuple[list[Finding], list[Finding]]:
    """
    Periods that hold, and those that one short life alone shows.

    Of ten lives of noise one may seem to repeat. A period holds when another
    life shows it, too, or when the life that does is half of what was looked at.
    """
    total = sum(one.samples for one in answers)
    found = [(one, finding) for one in answers for finding in one.findings]
    held = [
        finding
        for one, finding in found
        if 2 * one.samples >= total
        or any(other is not one and is_same_period(finding, another) for other, another in found)
    ]
    return held, [finding for _, finding in found if finding not in held]


def is_same_period(finding: Finding, other: Finding) -> bool:
    lengths = sorted(period_of(one) for one in (finding, other))
    return lengths[1] - lengths[0] <= SAME_PERIOD * lengths[1]


def period_of(finding: Finding) -> float:
    return measure(finding, "period_seconds")


def render_period(seconds: float) -> str:
    """As people say it, and where that hides seconds, in seconds: 60 s, 5 min (300 s), 97.3 s."""
    spoken, exact = render_seconds(seconds), f"{seconds:.1f} s".replace(".0 s", " s")
    return exact if spoken.endswith(" s") else f"{spoken} ({exact})"


def render_changes(answer: ToolAnswer, studied: Studied, merged: MergedAnswer) -> ToolAnswer:
    """Changes that matter in order of time, a restart among them; slight ones are counted."""
    seen = studied.seen
    material = [finding for finding in merged.findings if is_material(finding)]
    slight = len(merged.findings) - len(material)
    known = find_restarts(seen.container, seen.lives, studied.events, seen.newest_ms)
    restarts = add_levels(known, studied.changes)
    across = render_takeovers(leave_restarts(studied.changes, known), seen)
    changes = sorted([*weigh(render_all(studied, merged, material)), *keep_all(across)], key=time_of)
    found = sorted([*changes, *keep_all(restarts)], key=time_of)
    share = f"{100 * MATERIAL_SHARE:.0f} %"
    if slight:
        answer = add_gap(
            answer,
            f"{slight} slight or doubtful changes, each below {share} of the level or of confidence 0.5",
        )
    if not found:
        status = "none" if merged.status == "found" else merged.status
        nothing = f"did not change by {share} or more"
        if repeats(merged):
            nothing += "; it moves between the same levels again and again, ask for periodicity"
        return render_nothing(answer, studied, merged, nothing, status)
    told = next((one for one in restarts if one.metric), None)
    headline = f"{studied.what} did not step on its own, but it was restarted: {found[0].sentence}"
    if told:
        headline = f"{studied.what} changed with a restart: {told.sentence}"
    if changes:
        headline = f"{render_count_of(changes, studied)} ({basis(studied, merged)})."
    return replace(answer, status="found", headline=headline, findings=tuple(found))


def weigh(changes: Sequence[ToolFinding]) -> list[ToolFinding]:
    """Where not all have room, the smaller changes leave first."""
    return [replace(one, weight=abs(number_of(one.evidence.get("magnitude")))) for one in changes]


def keep_all(found: Sequence[ToolFinding]) -> list[ToolFinding]:
    """Restarts and deploys stay before every change."""
    return [replace(one, weight=inf) for one in found]


def repeats(merged: MergedAnswer) -> bool:
    """Whether the moves of the series are such as it makes again and again."""
    again = [one for one in merged.findings if number_of(one.evidence.get("recurrences")) > MANY_RECURRENCES]
    return len(again) > MANY_CHANGES


def render_count_of(changes: list[ToolFinding], studied: Studied) -> str:
    deploys = [one for one in changes if one.kind == "deploy"]
    if len(changes) > MANY_CHANGES and not deploys:
        return f"{studied.what} changed {len(changes)} times; ask for periodicity: it may repeat"
    largest = max(changes, key=lambda one: abs(number_of(one.evidence.get("magnitude"))))
    times = "once" if len(changes) == 1 else f"{len(changes)} times; the largest"
    when = render_before(time_of(largest) * 1000, studied.seen.newest_ms)
    return f"{studied.what} changed {times}: {largest.sentence[:-1]} ({when})"


def time_of(finding: ToolFinding) -> float:
    return finding.at or 0


def render_trend(answer: ToolAnswer, studied: Studied, merged: MergedAnswer) -> ToolAnswer:
    """A life that has ended is described in the past tense: its forecast is of a time that is over."""
    merged = replace(merged, findings=tuple(sorted(merged.findings, key=rank_growth)))
    ended_ms = studied.seen.lives[-1].first_ms if len(studied.seen.lives) > 1 else 0
    past = [one for one in merged.findings if one.end_at * 1000 < ended_ms]
    told = [
        replace(one, sentence=render_past(one, studied)) if one in past and is_growth(one) else one
        for one in merged.findings
    ]
    found = render_all(studied, merged, merged.findings, [one.sentence for one in told])
    if not found:
        return render_other(answer, studied, merged)
    since = ""
    if len(past) == len(merged.findings):
        start = "its newest pod started" if len(studied.container.pods) > 1 else "its restart"
        since = f" Since {start} at {render_moment(ended_ms)} it has not grown so."
    headline = f"{name_first(studied, found[0])}{since} ({basis(studied, merged)})"
    return replace(answer, headline=headline, findings=found)


def rank_growth(finding: Finding) -> tuple[bool, float]:
    """Of several pods the one that grows goes first, and by more: by confidence alone they differ in the third digit."""
    return not is_growth(finding), -finding.confidence * abs(number_of(finding.magnitude))


def render_past(finding: Finding, studied: Studied) -> str:
    return f"{capitalise(render_growth(finding, render_metric(studied.metric)))}; that life ended then."


def render_other(answer: ToolAnswer, studied: Studied, merged: MergedAnswer) -> ToolAnswer:
    if not merged.findings:
        return render_nothing(answer, studied, merged, NOTHINGS[studied.study])
    found = render_all(studied, merged, merged.findings)
    headline = f"{name_first(studied, found[0])} ({basis(studied, merged)})"
    return replace(answer, headline=headline, findings=found)


def name_first(studied: Studied, finding: ToolFinding) -> str:
    """Begins with a name: of several pods, the finding's own sentence does."""
    name = f'"{studied.container.name}"'
    return finding.sentence if finding.sentence.startswith('"') else f"{name}: {finding.sentence}"


def render_correlation(answer: ToolAnswer, studied: Studied, merged: MergedAnswer) -> ToolAnswer:
    """Who took what this one then lacked, where somebody did; then what moved together, whatever the reason."""
    if not studied.incidents:
        return render_other(answer, studied, merged)
    causes = tuple(make_finding(one, studied.seen.newest_ms) for one in studied.incidents)
    moved = render_all(studied, merged, merged.findings[:MOST_MOVED])
    headline = f"{causes[0].sentence} ({basis(studied, merged)})"
    return replace(answer, status="found", headline=headline, findings=(*causes, *moved))


NOTHINGS = {
    "trend": "neither rises nor falls for good",
    "anomaly": "shows nothing unusual in its newest stretch",
    "correlation": "moved together with no other container",
    "summary": "has no figures",
}
RENDERERS = {
    "periodicity": render_periodicity,
    "changepoint": render_changes,
    "trend": render_trend,
    "correlation": render_correlation,
}


def list_gaps(seen: ContainerSpan) -> tuple[str, ...]:
    lines = ["other metrics and other containers", *seen.list_left_out()]
    if len(seen.lives) > 1:
        pods = f" of {len(seen.container.pods)} pods" if len(seen.container.pods) > 1 else ""
        lines.append(
            f"no study looks across a restart: {len(seen.lives)} lives{pods} were studied one by one"
        )
    return tuple(lines)


# What is asked next about the same metric and span, once a study has found something.
FOLLOW_UPS = {
    "periodicity": ("correlation", "who moves in the same rhythm"),
    "trend": ("changepoint", "since when, and whether it came in steps"),
    "correlation": ("changepoint", "when it changed"),
    "anomaly": ("changepoint", "when it changed"),
    "summary": ("changepoint", "when it changed"),
}


def suggest(studied: Studied, merged: MergedAnswer) -> NextCall:
    """A narrower question about the same span; where the answer is No, the same question about a longer one."""
    container, study, metric = studied.container, studied.study, studied.metric
    where: dict[str, Fact] = {"container": container.name, "node": container.node}
    span = keep_span(studied.seen.span)
    changes = [one for one in merged.findings if is_material(one)] if study == "changepoint" else []
    if len(changes) > MANY_CHANGES or (not changes and study == "changepoint" and repeats(merged)):
        rhythm = {**where, "study": "periodicity", "metric": metric, **span}
        return NextCall("analyze_container", rhythm, "whether these changes repeat")
    if changes and changes[0].at is not None:
        return suggest_incident(changes[0].at, container.node, "what else changed then")
    if study == "changepoint" and any(event.kind == "oom" for event in studied.events):
        grows = {**where, "study": "trend", "metric": "memory", **span}
        return NextCall("analyze_container", grows, "whether it leaked before it was killed")
    if study == anomaly.NAME and is_several(metric.replace("all metrics", ALL)):
        return NextCall("summarize_container", {**where, **span}, "all its metrics, limits and restarts")
    if merged.status == "found" and study in FOLLOW_UPS:
        follow_up, why = FOLLOW_UPS[study]
        return NextCall("analyze_container", {**where, "study": follow_up, "metric": metric, **span}, why)
    longer = lengthen(studied)
    if longer is not None:
        again = {**where, "study": study, "metric": metric, **keep_span(longer)}
        return NextCall("analyze_container", again, "the same over a longer span")
    return NextCall("summarize_container", {**where, **span}, "all its metrics, limits and restarts")


def lengthen(studied: Studied) -> TimeRange | None:
    """A longer span with the same end; None where the data or the container's own life does not reach back further."""
    span = studied.seen.span
    first_ms = max(studied.oldest_ms, studied.container.first_ms)
    length_ms = max(HOUR_MS, LONGER * (span.to_ms - span.from_ms))
    longer = TimeRange(max(first_ms, span.to_ms - length_ms), span.to_ms)
    return longer if longer.from_ms < span.from_ms - MINUTE_MS else None


TOOL = Tool(
    "analyze_container",
    "Analyze container",
    "A study of one metric: changepoint (when it changed), periodicity (does it repeat), "
    "trend (does it grow, when is it full), anomaly, correlation, summary.",
    (
        CONTAINER,
        Argument("study", "the question", required=True, choices=tuple(STUDIES)),
        Argument("metric", "default: cpu or memory; of anomaly also all"),
        NODE,
        FROM,
        TO,
    ),
    run,
)
