"""/api/timeseries: one metric of some series, in at most so many points."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from nodescope.base.errors import RequestRejected
from nodescope.base.metric_names import PERIOD, QUOTA
from nodescope.base.time_range import TimeRange
from nodescope.read.query.bucket import Points
from nodescope.read.query.engine import Engine, QueryResult
from nodescope.read.query.ranking import place_of
from nodescope.read.query.resolve import Rate, ResolvedMetric
from nodescope.read.series_name import id_of, labels_of, name_of, scope_of
from nodescope.use.viewer.axis import AxisGap, AxisRow, align
from nodescope.use.viewer.question import SERIES_MOST, SeriesMember, members_of, resolve, suffix_of
from nodescope.use.viewer.ranking import first_of, rank
from nodescope.use.viewer.refusal import bad_request, too_much
from nodescope.use.viewer.render import Json, number, numbers, times
from nodescope.use.viewer.snapshots import ServedNode, Snapshot

BUSIEST = 8
# An earlier life of a busy container is shown when it lasted so much of the range.
LIFE_SHARE = 0.05
# Samples read for one answer; a day of 64 containers is 5.5 million.
SAMPLES_MOST = 30_000_000
# A range of more is shown with the first of its gaps only.
GAPS_SHOWN = 50
# What a series must not reach, by the plain name that holds it.
LIMITS = {
    "memory": "memory_limit",
    "memory_working_set": "memory_limit",
    "memory_anon": "memory_limit",
    "memory_pss": "memory_limit",
}
CPU_UNITS = {"cpu": 1.0, "cpu_user": 1.0, "cpu_system": 1.0, "cpu_millicores": 1000.0}
LISTED_SCOPES = {"container", "service", "pod"}


@dataclass(frozen=True, slots=True)
class TimeseriesRequest:
    """What is asked of whom."""

    metric: str
    span: TimeRange
    max_points: int
    rate: Rate
    members: tuple[SeriesMember, ...] | None = None
    """None: everything of the scope, or the busiest."""
    scope: str = ""
    limits: bool = True
    """Whether each series' limit is looked up, which costs as much as the series."""


@dataclass(slots=True)
class Found:
    """One series of the answer."""

    id: str
    name: str
    node: ServedNode
    scope: str
    labels: dict[str, str]
    points: Points


def answer_timeseries(
    engine: Engine, snapshot: Snapshot, nodes: Sequence[ServedNode], wish: TimeseriesRequest
) -> Json:
    asked = resolve(nodes, wish.metric, wish.rate, wish.scope)
    members = wish.members
    if members is None and not wish.scope and is_of_containers(nodes, asked):
        members = choose_busiest(engine, snapshot, nodes, wish.metric, wish.span)
    series: list[Found] = []
    width_ms = 0
    for node in nodes:
        if node.name not in asked or node.to_ms is None:
            continue
        mine = None if members is None else [one for one in members if one.node is node]
        if mine is not None and not mine:
            continue
        answer = ask(engine, node, wish, asked[node.name], mine)
        width_ms = answer.width_ms
        series += gather(answer, snapshot, node, wish.scope, mine)
    if len(series) > SERIES_MOST:
        raise too_much(
            f"{len(series)} series of {wish.metric}; accepted: up to {SERIES_MOST} in one answer",
            "name them with containers=, or narrow with node=",
        )
    if members is not None:
        places = {member.id: place for place, member in enumerate(members)}
        series.sort(key=lambda one: places.get(one.id, len(places)))
    return render(engine, wish, series, members, width_ms, next(iter(asked.values())))


def choose_busiest(
    engine: Engine, snapshot: Snapshot, nodes: Sequence[ServedNode], metric: str, span: TimeRange
) -> tuple[SeriesMember, ...]:
    everybody = [
        one
        for one in members_of(snapshot, nodes)
        if one.subject.first_ms <= span.to_ms and one.subject.last_ms >= span.from_ms
    ]
    ordered = first_of(rank(engine, everybody, nodes, metric, span), everybody, len(everybody))
    places: dict[tuple[object, ...], list[SeriesMember]] = {}
    for one in ordered:
        places.setdefault((one.node.name, *place_of(one.subject)), []).append(one)
    return tuple(one for lives in list(places.values())[:BUSIEST] for one in choose_lives(lives, span))


def choose_lives(lives: Sequence[SeriesMember], span: TimeRange) -> list[SeriesMember]:
    """
    Of a container that was restarted the newest life, and before it the longest.

    The one that was killed is the one to look at; the lives of a crash loop are
    too short to be seen, and take one place of the eight together.
    """
    newest = max(lives, key=lambda one: one.subject.last_ms)
    longest = max(lives, key=lambda one: seen_within(one, span))
    if longest is newest or seen_within(longest, span) < LIFE_SHARE * (span.to_ms - span.from_ms):
        return [newest]
    return [longest, newest]


def seen_within(one: SeriesMember, span: TimeRange) -> int:
    return min(one.subject.last_ms, span.to_ms) - max(one.subject.first_ms, span.from_ms)


def is_of_containers(nodes: Iterable[ServedNode], asked: dict[str, ResolvedMetric]) -> bool:
    scopes = {
        scope
        for node in nodes
        if node.name in asked
        for scope in node.scopes.get(asked[node.name].metrics[0].name, ())
    }
    return bool(scopes & LISTED_SCOPES)


def ask(
    engine: Engine,
    node: ServedNode,
    wish: TimeseriesRequest,
    asked: ResolvedMetric,
    members: Sequence[SeriesMember] | None,
) -> QueryResult:
    ids: list[str] | None = None
    if members is not None and all(scope_of(one.subject) == "container" for one in members):
        ids = [one.id for one in members]
    check_work(node, wish, asked, len(ids) if ids is not None else None)
    return engine.query(
        node.catalog,
        wish.metric,
        ids,
        wish.span.from_ms,
        wish.span.to_ms,
        wish.max_points,
        wish.rate,
        node.tail,
        wish.scope or None,
    )


def check_work(node: ServedNode, wish: TimeseriesRequest, asked: ResolvedMetric, series: int | None) -> None:
    """Refuses what would take minutes, with the range that would not."""
    if series is None:
        scopes = {wish.scope} if wish.scope else node.scopes.get(asked.metrics[0].name, set())
        series = sum(1 for one in node.subjects.values() if scope_of(one) in scopes)
    overlap_ms = min(wish.span.to_ms, node.to_ms or 0) - max(wish.span.from_ms, node.from_ms or 0)
    samples = max(0, overlap_ms // 1000) * max(1, series) * len(asked.metrics)
    if samples > SAMPLES_MOST and wish.span.seconds / wish.max_points < 120:
        hours = SAMPLES_MOST / max(1, series) / len(asked.metrics) / 3600
        raise too_much(
            f"this would read some {samples:,} samples; accepted: up to {SAMPLES_MOST:,}",
            f"ask for fewer containers, at most {hours:.3g} hours, or buckets of two minutes (a smaller max_points)",
        )


def gather(
    answer: QueryResult,
    snapshot: Snapshot,
    node: ServedNode,
    scope: str,
    members: Sequence[SeriesMember] | None,
) -> list[Found]:
    """The lines that were asked for, each with its id and name."""
    suffix = suffix_of(snapshot, node)
    wanted = None if members is None else {one.id for one in members}
    found = []
    for line in answer.lines:
        subject = node.subjects.get(line.subject.identity, line.subject)
        its_id = id_of(subject, suffix)
        if (wanted is not None and its_id not in wanted) or (scope and scope_of(subject) != scope):
            continue
        name = name_of(subject, suffix if scope_of(subject) not in LISTED_SCOPES else "")
        found.append(Found(its_id, name, node, scope_of(subject), labels_of(subject), line.points))
    return found


# -- the answer ---------------------------------------------------------------------


def render(
    engine: Engine,
    wish: TimeseriesRequest,
    series: Sequence[Found],
    members: Sequence[SeriesMember] | None,
    width_ms: int,
    asked: ResolvedMetric,
) -> Json:
    same_clock = len({one.node.name for one in series}) <= 1
    axis = align([one.points for one in series], width_ms, same_clock=same_clock)
    if len(axis.time_ms) * max(1, len(series)) > 4 * SERIES_MOST * 10_000:
        raise bad_request("this answer is too large", "ask for fewer points or fewer series")
    limits = read_limits(engine, wish, series) if wish.limits else {}
    metric = asked.metrics[0]
    return {
        "metric": wish.metric,
        "unit": asked.unit,
        "kind": metric.kind if asked.form == "value" else "gauge",
        "scope": series[0].scope if series else wish.scope or None,
        "rate": asked.form != "value" and metric.kind == "counter",
        "from": wish.span.from_ms / 1000,
        "to": wish.span.to_ms / 1000,
        "bucket_seconds": axis.width_ms / 1000,
        "time": times(axis.time_ms),
        "series": [render_series(one, row, limits, asked) for one, row in zip(series, axis.rows)],
        "missing": explain_missing(series, members, wish),
    }


def render_series(found: Found, row: AxisRow, limits: dict[str, float], asked: ResolvedMetric) -> Json:
    return {
        "id": found.id,
        "name": found.name,
        "node": found.node.name,
        "labels": found.labels,
        "mean": numbers(row.mean),
        "min": numbers(row.low),
        "max": numbers(row.high),
        "samples": row.samples,
        "limit": number(limits.get(found.id)),
        "gaps": [
            {"from": gap.from_ms / 1000, "to": gap.to_ms / 1000, "reason": why(found, gap, asked)}
            for gap in row.gaps[:GAPS_SHOWN]
        ],
    }


def why(found: Found, gap: AxisGap, asked: ResolvedMetric) -> str:
    """Nothing recorded at all, the source's own word, or just not measured."""
    node = found.node
    ticked = any(gap.from_ms < moment < gap.to_ms for day in node.tail.days for moment in day.clocks)
    source = "container" if found.scope in LISTED_SCOPES else asked.metrics[0].name.partition(".")[0]
    word = ""
    for entry in node.catalog.select(gap.from_ms - 1, gap.to_ms):
        story, ticks = entry.story(), entry.ticks()
        if story is None or ticks is None:
            continue
        inside = (ticks.time_ms > gap.from_ms) & (ticks.time_ms < gap.to_ms)
        ticked = ticked or bool(inside.any())
        for at_ms, outcomes in story.outcomes:
            state, reason = outcomes.get(source, ["ok", ""])
            if state != "ok" and at_ms <= gap.to_ms:
                word = f"{source} {state}: {reason}"
    if not ticked:
        return "nothing was recorded: the agent was not running"
    return word or "not measured in this time"


def explain_missing(
    series: Sequence[Found], members: Sequence[SeriesMember] | None, wish: TimeseriesRequest
) -> list[Json]:
    there = {one.id for one in series}
    found = []
    for member in members or ():
        if member.id in there:
            continue
        subject = member.subject
        if subject.last_ms and subject.last_ms < wish.span.from_ms:
            reason = (
                f"it was last seen {(wish.span.from_ms - subject.last_ms) / 1000:.0f} s before this range"
            )
        elif subject.first_ms > wish.span.to_ms:
            reason = f"it was first seen {(subject.first_ms - wish.span.to_ms) / 1000:.0f} s after this range"
        else:
            reason = f"no sample of {wish.metric} in this range"
        found.append({"id": member.id, "reason": reason})
    return found


# -- limits -------------------------------------------------------------------------


def read_limits(engine: Engine, wish: TimeseriesRequest, series: Sequence[Found]) -> dict[str, float]:
    """The newest limit of each container, where the metric has one."""
    containers = [one for one in series if one.scope == "container"]
    limits: dict[str, float] = {}
    for node in {one.node.name: one.node for one in containers}.values():
        mine = [one for one in containers if one.node is node]
        if wish.metric in LIMITS:
            limits.update(read_newest(engine, node, LIMITS[wish.metric], mine, wish.span))
        elif wish.metric in CPU_UNITS:
            quota = read_newest(engine, node, first_known(node, QUOTA), mine, wish.span)
            period = read_newest(engine, node, first_known(node, PERIOD), mine, wish.span)
            factor = CPU_UNITS[wish.metric]
            limits.update(
                {key: factor * value / period[key] for key, value in quota.items() if period.get(key)}
            )
    return {key: value for key, value in limits.items() if value > 0}


def first_known(node: ServedNode, names: Sequence[str]) -> str:
    return next((name for name in names if name in node.metrics), names[0])


def read_newest(
    engine: Engine, node: ServedNode, metric: str, series: Sequence[Found], span: TimeRange
) -> dict[str, float]:
    """From a minute before the first of them ended: limits are read every tick, or every 30 s."""
    ends = [int(one.points.time_ms[one.points.count > 0][-1]) for one in series if one.points.count.any()]
    from_ms = max(span.from_ms, min([*ends, span.to_ms]) - 60_000)
    try:
        answer = engine.query(
            node.catalog, metric, [one.id for one in series], from_ms, span.to_ms, 1, "off", node.tail
        )
    except RequestRejected:
        return {}
    found = {}
    for line in answer.lines:
        good = line.points.maximum[np.isfinite(line.points.maximum)]
        if len(good):
            found[line.subject.label("l_container_id") or ""] = float(good[-1])
    return found
