"""One metric of some series over a range, in at most so many points, on one time axis."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from nodescope.base.time_range import TimeRange
from nodescope.read.query.bucket import Points
from nodescope.read.query.engine import QueryResult
from nodescope.read.query.ranking import place_of
from nodescope.read.query.resolve import Rate, ResolvedMetric
from nodescope.read.series_name import Subject, id_of, labels_of, name_of, scope_of
from nodescope.use.answers.axis import Axis, AxisRow, Floats, Integers, align
from nodescope.use.answers.container_table import NO_FILTER, Filter
from nodescope.use.answers.containers import Container, Life
from nodescope.use.answers.limits import read_limits
from nodescope.use.answers.metrics import resolve
from nodescope.use.answers.over_lives.join import Wholes, choose_busiest_wholes, join_points, list_wholes
from nodescope.use.answers.over_lives.search import filter_lives
from nodescope.use.answers.ranked.ranking import list_busiest
from nodescope.use.answers.ranked.recorded import join_stretches
from nodescope.use.answers.refusal import bad_request, too_much
from nodescope.use.answers.snapshots import ServedNode, View

# Series in one answer; where each is one figure, and nobody draws them.
SERIES_MOST = 64
FIGURES_MOST = 1024
BUSIEST = 8
# An earlier life of a busy container is shown when it lasted so much of the range.
LIFE_SHARE = 0.05
# Samples read for one answer; a day of 64 containers is 5.5 million.
SAMPLES_MOST = 30_000_000
# Samples in memory at once, where all are read in the end; one takes some 100 bytes while it is read.
BATCH_SAMPLES = 2_000_000
# A range of more is shown with the first of its gaps only.
GAPS_SHOWN = 50
LISTED_SCOPES = {"container", "service", "pod"}


@dataclass(frozen=True, slots=True)
class TimeseriesRequest:
    """A metric, a range, and which series."""

    metric: str
    span: TimeRange
    max_points: int
    rate: Rate = "auto"
    lives: tuple[Life, ...] | None = None
    """None: everything of the scope, or the busiest."""
    scope: str = ""
    limits: bool = True
    """Whether each series' limit is looked up, which costs as much as the series."""
    is_bounded: bool = True
    """Whether too much work is refused; not to somebody who waits at a terminal."""
    series_most: int = SERIES_MOST
    is_whole: bool = False
    """One series for all lives of a container."""
    wanted: Filter = NO_FILTER
    """Among whom the busiest are sought, where none was named."""


@dataclass(frozen=True, slots=True)
class MeasuredSeries:
    """One series as it was read, on its own times."""

    id: str
    name: str
    node: str
    scope: str
    subject: Subject
    points: Points
    lives: tuple[str, ...] = ()
    """Of a container over all its lives: the ids of those that were measured, oldest first."""


@dataclass(frozen=True, slots=True)
class MeasuredNode:
    """What one node has of a metric."""

    node: str
    unit: str
    width_ms: int
    """Of a bucket; 0: samples as they are."""
    series: tuple[MeasuredSeries, ...]
    refused: tuple[str, ...] = ()
    """Files that could not be read, and why."""


@dataclass(frozen=True, slots=True)
class SeriesGap:
    """Where nothing was measured, and why."""

    from_ms: int
    to_ms: int
    reason: str


@dataclass(frozen=True, slots=True)
class AnswerSeries:
    """One series on the answer's time axis; NaN is nothing measured."""

    id: str
    name: str
    node: str
    labels: Mapping[str, str]
    mean: Floats
    low: Floats
    high: Floats
    samples: int
    limit: float | None = None
    gaps: tuple[SeriesGap, ...] = ()
    lives: tuple[str, ...] = ()
    """Of a container over all its lives: the ids of those that were measured, oldest first."""


@dataclass(frozen=True, slots=True)
class MissingSeries:
    """A container that was named and has no sample here."""

    id: str
    reason: str


@dataclass(frozen=True, slots=True)
class Timeseries:
    """The answer: times, and a value of each series for each of them."""

    metric: str
    unit: str
    kind: str
    scope: str | None
    """What the series are of; None where there is no series."""
    is_rate: bool
    from_ms: int
    to_ms: int
    width_ms: int
    """Of a bucket; 0: samples as they are."""
    time_ms: Integers
    series: tuple[AnswerSeries, ...]
    missing: tuple[MissingSeries, ...] = field(default=())
    refused: tuple[str, ...] = field(default=())
    """Files of the range that could not be read, and why."""
    recorded: tuple[TimeRange, ...] = field(default=())
    """The stretches of the range in which the node was recorded; of several nodes, any of them."""


def read_timeseries(view: View, request: TimeseriesRequest) -> Timeseries:
    resolved = resolve(view.nodes, request.metric, request.rate, request.scope)
    request = choose_series(view, request, resolved)
    series: list[MeasuredSeries] = []
    refused: list[str] = []
    width_ms = 0
    for found in read_measured(view, request, resolved):
        width_ms = found.width_ms
        series += found.series
        refused += found.refused
    if request.lives is not None:
        places = {life.id: place for place, life in enumerate(request.lives)}
        series.sort(key=lambda one: places.get(one.id, len(places)))
    limits = find_limits(view, request, series) if request.limits else {}
    if request.is_whole:
        series, limits = join_series(list_wholes(view), series, limits)
    check_size(request, series)
    same_clock = len({one.node for one in series}) <= 1
    axis = align([one.points for one in series], width_ms, same_clock=same_clock)
    if len(axis.time_ms) * max(1, len(series)) > 4 * SERIES_MOST * 10_000:
        raise bad_request("this answer is too large", "ask for fewer points or fewer series")
    answer = make_answer(view, request, series, limits, axis, next(iter(resolved.values())))
    return replace(answer, refused=tuple(dict.fromkeys(refused)))


def choose_series(
    view: View, request: TimeseriesRequest, resolved: Mapping[str, ResolvedMetric]
) -> TimeseriesRequest:
    """With the lives that are to be read: those that were named, or the busiest; of whole containers all of each."""
    lives = request.lives
    if lives is None and not request.scope and is_of_containers(view.nodes, resolved):
        among = filter_lives(view.lives(request.span), request.wanted)
        if request.is_whole:
            lives = choose_busiest_wholes(view, among, request.metric, request.span, BUSIEST)
        else:
            lives = choose_busiest(view, request.metric, request.span, among)
    elif lives is not None and request.is_whole:
        lives = list_wholes(view).expand(lives, request.span)
    return replace(request, lives=lives)


def check_size(request: TimeseriesRequest, series: Sequence[MeasuredSeries]) -> None:
    if len(series) > request.series_most:
        raise too_much(
            f"{len(series)} series of {request.metric}; accepted: up to {request.series_most} in one answer",
            "name them with containers=, or narrow with node=",
        )


def join_series(
    wholes: Wholes, series: Sequence[MeasuredSeries], limits: Mapping[str, float]
) -> tuple[list[MeasuredSeries], dict[str, float]]:
    """One for each container, under its newest life's name; and its limit, the newest that is known."""
    groups: dict[str, list[MeasuredSeries]] = {}
    for one in series:
        groups.setdefault(wholes.of(one.id), []).append(one)
    found: list[MeasuredSeries] = []
    joined: dict[str, float] = {}
    for its_id, parts in groups.items():
        parts.sort(key=lambda one: one.subject.first_ms)
        points = join_points([one.points for one in parts])
        lives = tuple(one.id for one in parts)
        found.append(replace(parts[-1], id=its_id, points=points, lives=lives))
        known = [limits[one.id] for one in parts if one.id in limits]
        joined |= {its_id: known[-1]} if known else {}
    return found, joined


# -- which series -------------------------------------------------------------------


def choose_busiest(
    view: View, metric: str, span: TimeRange, among: Sequence[Life] | None = None
) -> tuple[Life, ...]:
    places: dict[tuple[object, ...], list[Life]] = {}
    for one in list_busiest(view, metric, span, among):
        places.setdefault((one.node, *place_of(one.subject)), []).append(one)
    return tuple(one for lives in list(places.values())[:BUSIEST] for one in choose_lives(lives, span))


def choose_lives(lives: Sequence[Life], span: TimeRange) -> list[Life]:
    """
    Of a container that was restarted the newest life, and before it the longest.

    The one that was killed is the one to look at; the lives of a crash loop are
    too short to be seen, and take one place of the eight together.
    """
    newest = max(lives, key=lambda one: one.last_ms)
    longest = max(lives, key=lambda one: seen_within(one, span))
    if longest is newest or seen_within(longest, span) < LIFE_SHARE * (span.to_ms - span.from_ms):
        return [newest]
    return [longest, newest]


def seen_within(one: Life, span: TimeRange) -> int:
    return min(one.last_ms, span.to_ms) - max(one.first_ms, span.from_ms)


def is_of_containers(nodes: Iterable[ServedNode], resolved: Mapping[str, ResolvedMetric]) -> bool:
    return bool(list_scopes(nodes, resolved) & LISTED_SCOPES)


def list_scopes(nodes: Iterable[ServedNode], resolved: Mapping[str, ResolvedMetric]) -> set[str]:
    return {
        scope
        for node in nodes
        if node.name in resolved
        for scope in node.scopes.get(resolved[node.name].metrics[0].name, ())
    }


# -- reading them -------------------------------------------------------------------


def read_measured(
    view: View, request: TimeseriesRequest, resolved: Mapping[str, ResolvedMetric]
) -> Iterator[MeasuredNode]:
    """Of every node that has the metric and one of the containers."""
    for node in choose_nodes(view, request, resolved):
        ids = list_ids(node, request)
        if request.is_bounded:
            check_work(node, request, resolved[node.name], ids)
        rate, scope = request.rate, request.scope
        result = view.query(node, request.metric, ids, request.span, request.max_points, rate, scope)
        series = tuple(gather(view, node, result, request))
        yield MeasuredNode(node.name, result.asked.unit, result.width_ms, series, tuple(result.refused))


def choose_nodes(
    view: View, request: TimeseriesRequest, resolved: Mapping[str, ResolvedMetric]
) -> list[ServedNode]:
    names = None if request.lives is None else {one.node for one in request.lives}
    return [
        node
        for node in view.nodes
        if node.name in resolved and node.to_ms is not None and (names is None or node.name in names)
    ]


def list_ids(node: ServedNode, request: TimeseriesRequest) -> list[str] | None:
    """Of the node's containers those that were asked for; None for everything, and for services."""
    lives = [one for one in request.lives or () if one.node == node.name]
    return [one.id for one in lives] if lives and all(one.scope == "container" for one in lives) else None


def split_request(
    view: View,
    request: TimeseriesRequest,
    resolved: Mapping[str, ResolvedMetric],
    most: int = BATCH_SAMPLES,
) -> Iterator[TimeseriesRequest]:
    """The same question about a few containers at a time, so that no more samples than these are held."""
    if request.is_bounded:
        for node in choose_nodes(view, request, resolved):
            check_work(node, request, resolved[node.name], list_ids(node, request))
    lives, scopes = request.lives, list_scopes(view.nodes, resolved)
    is_of_pods = any(one.of == "pod" for one in resolved.values())
    if lives is None and not request.scope and scopes <= {"container", "service"} and not is_of_pods:
        found = (life for life in view.lives(request.span) if life.scope == "container")
        lives = tuple(sorted(found, key=lambda life: (life.node, life.id)))
    batches = list(batch_lives(lives or (), request.span, most))
    if len(batches) < 2:
        yield request
        return
    if request.lives is None and "service" in scopes:
        yield replace(request, scope="service")
    yield from (replace(request, lives=batch) for batch in batches)


def batch_lives(lives: Iterable[Life], span: TimeRange, most: int) -> Iterator[tuple[Life, ...]]:
    """As many together as have so many samples in the span, at one a second."""
    batch: list[Life] = []
    samples = 0
    for life in lives:
        mine = max(0, seen_within(life, span)) // 1000
        if batch and samples + mine > most:
            yield tuple(batch)
            batch, samples = [], 0
        batch.append(life)
        samples += mine
    if batch:
        yield tuple(batch)


def check_work(
    node: ServedNode, request: TimeseriesRequest, resolved: ResolvedMetric, ids: Sequence[str] | None
) -> None:
    """Refuses what would take minutes, with the range that would not."""
    series = len(ids or ())
    if ids is None:
        scopes = {request.scope} if request.scope else node.scopes.get(resolved.metrics[0].name, set())
        series = sum(1 for one in node.subjects.values() if scope_of(one) in scopes)
    overlap_ms = min(request.span.to_ms, node.to_ms or 0) - max(request.span.from_ms, node.from_ms or 0)
    samples = max(0, overlap_ms // 1000) * max(1, series) * len(resolved.metrics)
    if ids is not None:
        # The lives of a crash loop are many and short.
        mine = (one for one in request.lives or () if one.node == node.name)
        seen = sum(max(0, seen_within(one, request.span)) for one in mine)
        samples = min(samples, seen // 1000 * len(resolved.metrics))
    if samples > SAMPLES_MOST and request.span.seconds / request.max_points < 120:
        hours = SAMPLES_MOST / max(1, series) / len(resolved.metrics) / 3600
        raise too_much(
            f"this would read some {samples:,} samples; accepted: up to {SAMPLES_MOST:,}",
            f"ask for fewer containers, at most {hours:.3g} hours, or buckets of two minutes (a smaller max_points)",
        )


def gather(
    view: View, node: ServedNode, result: QueryResult, request: TimeseriesRequest
) -> list[MeasuredSeries]:
    """The series that were wanted, each with its id and name."""
    suffix = view.suffix_of(node)
    wanted = None if request.lives is None else {one.id for one in request.lives}
    found = []
    for line in result.lines:
        subject = node.subjects.get(line.subject.identity, line.subject)
        its_id, scope = id_of(subject, suffix), scope_of(subject)
        if (wanted is not None and its_id not in wanted) or (request.scope and scope != request.scope):
            continue
        name = name_of(subject, suffix if scope not in LISTED_SCOPES else "")
        found.append(MeasuredSeries(its_id, name, node.name, scope, subject, line.points))
    return found


# -- the answer ---------------------------------------------------------------------


def make_answer(
    view: View,
    request: TimeseriesRequest,
    series: Sequence[MeasuredSeries],
    limits: Mapping[str, float],
    axis: Axis,
    resolved: ResolvedMetric,
) -> Timeseries:
    nodes = {node.name: node for node in view.nodes}
    wholes = list_wholes(view) if request.is_whole else Wholes({})
    metric = resolved.metrics[0]
    return Timeseries(
        metric=request.metric,
        unit=resolved.unit,
        kind=metric.kind if resolved.form == "value" else "gauge",
        scope=series[0].scope if series else request.scope or None,
        is_rate=resolved.form != "value" and metric.kind == "counter",
        from_ms=request.span.from_ms,
        to_ms=request.span.to_ms,
        width_ms=axis.width_ms,
        time_ms=axis.time_ms,
        series=tuple(
            make_series(one, row, limits.get(one.id), nodes[one.node], resolved, wholes)
            for one, row in zip(series, axis.rows)
        ),
        missing=tuple(explain_missing(series, request, wholes)),
        recorded=tuple(join_stretches(one for node in view.nodes for one in node.stretches(request.span))),
    )


def find_limits(view: View, request: TimeseriesRequest, series: Sequence[MeasuredSeries]) -> dict[str, float]:
    ends_ms = {
        (one.node, one.id): int(one.points.time_ms[there][-1])
        if (there := one.points.count > 0).any()
        else None
        for one in series
        if one.scope == "container"
    }
    return read_limits(view, request.metric, request.span, ends_ms)


def make_series(
    found: MeasuredSeries,
    row: AxisRow,
    limit: float | None,
    node: ServedNode,
    resolved: ResolvedMetric,
    wholes: Wholes,
) -> AnswerSeries:
    source = "container" if found.scope in LISTED_SCOPES else resolved.metrics[0].name.partition(".")[0]
    whole = wholes.by_id.get(found.id)
    gaps = tuple(
        SeriesGap(gap.from_ms, gap.to_ms, explain_pause(whole, gap) or explain_gap(node, source, gap))
        for gap in row.gaps[:GAPS_SHOWN]
    )
    return AnswerSeries(
        found.id,
        found.name,
        found.node,
        labels_of(found.subject),
        row.mean,
        row.low,
        row.high,
        row.samples,
        limit,
        gaps,
        found.lives,
    )


def explain_pause(whole: Container | None, gap: TimeRange) -> str:
    """Where one life had ended and the next one not begun; empty where one of them was there."""
    inner = TimeRange(gap.from_ms + 1, gap.to_ms - 1)
    if whole is None or any(life.is_within(inner) for life in whole.lives):
        return ""
    return "it was not running: one life had ended, the next had not begun"


def explain_gap(node: ServedNode, source: str, gap: TimeRange) -> str:
    """Nothing recorded at all, the source's own word, or just not measured."""
    ticked = any(gap.from_ms < moment < gap.to_ms for day in node.tail.days for moment in day.clocks)
    word = ""
    for entry in node.catalog.select(gap.from_ms - 1, gap.to_ms):
        damage = entry.find_damage()
        if damage:
            return f"the file of this time cannot be read: {damage}"
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
    series: Sequence[MeasuredSeries], request: TimeseriesRequest, wholes: Wholes
) -> Iterator[MissingSeries]:
    there = {one.id for one in series}
    for life in request.lives or ():
        its_id = wholes.of(life.id)
        if its_id in there:
            continue
        there.add(its_id)
        before_ms, after_ms = request.span.from_ms - life.last_ms, life.first_ms - request.span.to_ms
        if life.last_ms and before_ms > 0:
            reason = f"it was last seen {before_ms / 1000:.0f} s before this range"
        elif after_ms > 0:
            reason = f"it was first seen {after_ms / 1000:.0f} s after this range"
        else:
            reason = f"no sample of {request.metric} in this range"
        yield MissingSeries(its_id, reason)
