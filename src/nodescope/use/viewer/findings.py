"""/api/study: a study run on the series that were asked for, within a bounded amount of work."""

from collections.abc import Callable, Sequence

import numpy as np

from nodescope.base.time_range import TimeRange
from nodescope.read.query.bucket import Points
from nodescope.read.query.engine import Engine
from nodescope.use.studies import STUDIES, Series, correlation
from nodescope.use.viewer.question import SeriesMember, resolve
from nodescope.use.viewer.refusal import not_found, too_much
from nodescope.use.viewer.render import Json
from nodescope.use.viewer.snapshots import ServedNode, Snapshot
from nodescope.use.viewer.timeseries import (
    Found,
    TimeseriesRequest,
    ask,
    choose_busiest,
    gather,
    is_of_containers,
    read_limits,
)

ALL = "all"
# Every study that looks at one series alone.
SINGLE = tuple(name for name in STUDIES if name != correlation.NAME)
# A day at one sample a second; longer ranges are studied in longer means.
POINTS = 90_000
SERIES_MOST = 16
# Points that one request studies: about ten seconds on one core.
WORK_MOST = 1_500_000
FEWEST_POINTS = 2000
NO_TIMES, NO_VALUES = np.empty(0, np.int64), np.empty(0)
EMPTY = Points(NO_TIMES, NO_VALUES, NO_VALUES, NO_VALUES, NO_TIMES)


def answer_studies() -> Json:
    return {
        "studies": [
            {"id": study.name, "title": study.name.capitalize(), "help": study.question}
            for study in STUDIES.values()
        ]
    }


def answer_study(
    engine: Engine,
    snapshot: Snapshot,
    nodes: Sequence[ServedNode],
    study: str,
    metric: str,
    members: Sequence[SeriesMember] | None,
    scope: str,
    span: TimeRange,
    check: Callable[[], None] = lambda: None,
) -> Json:
    """`check` is called between two studies, and may raise: nobody waits any more."""
    if study not in (*STUDIES, ALL):
        raise not_found(f'no study "{study[:60]}"; there are: {", ".join([*STUDIES, ALL])}')
    names = SINGLE if study == ALL else (study,)
    found = read_series(engine, snapshot, nodes, metric, members, scope, span, len(names))
    everything = [series for _, series in found]
    results = []
    for name in names:
        for one, series in found:
            check()
            if name == correlation.NAME:
                answer = correlation.study(series, [other for other in everything if other is not series])
            else:
                answer = STUDIES[name].run(series)
            content = answer.to_json()
            content["series"] = {**answer.series, "id": one.id}
            results.append(content)
    return {"study": study, "results": results}


def read_series(
    engine: Engine,
    snapshot: Snapshot,
    nodes: Sequence[ServedNode],
    metric: str,
    members: Sequence[SeriesMember] | None,
    scope: str,
    span: TimeRange,
    studies: int,
) -> list[tuple[Found, Series]]:
    asked = resolve(nodes, metric, "auto", scope)
    if members is None and not scope and is_of_containers(nodes, asked):
        members = choose_busiest(engine, snapshot, nodes, metric, span)
    if members is not None and len(members) > SERIES_MOST:
        raise too_much(
            f"{len(members)} containers; accepted: up to {SERIES_MOST} in one study",
            "name them with containers=",
        )
    number = len(members) if members is not None else SERIES_MOST
    points = max(FEWEST_POINTS, min(POINTS, WORK_MOST // max(1, number * studies)))
    wish = TimeseriesRequest(
        metric, span, points, "auto", tuple(members) if members is not None else None, scope
    )
    found: list[tuple[Found, Series]] = []
    for node in nodes:
        mine = None if members is None else [one for one in members if one.node is node]
        if node.name not in asked or node.to_ms is None or (mine is not None and not mine):
            continue
        answer = ask(engine, node, wish, asked[node.name], mine)
        lines = gather(answer, snapshot, node, scope, mine)
        if len(lines) > SERIES_MOST:
            raise too_much(
                f"{len(lines)} series of {metric}; accepted: up to {SERIES_MOST} in one study",
                "name containers, or choose a metric with fewer series",
            )
        limits = read_limits(engine, wish, lines)
        found += [
            (line, make_series(line, metric, asked[node.name].unit, limits.get(line.id))) for line in lines
        ]
    there = {line.id for line, _ in found}
    for member in members or ():
        if member.id not in there:
            found.append(not_collected(member, metric, next(iter(asked.values())).unit))
    return found


def make_series(found: Found, metric: str, unit: str, limit: float | None) -> Series:
    return Series(
        found.points.time_ms / 1000.0,
        np.where(np.isfinite(found.points.mean), found.points.mean, np.nan),
        unit=unit,
        limit=limit,
        metric=metric,
        container=found.name,
        node=found.node.name,
    )


def not_collected(member: SeriesMember, metric: str, unit: str) -> tuple[Found, Series]:
    """Asked for and not measured in this range: the studies say so, rather than nothing."""
    nothing = np.empty(0)
    found = Found(member.id, member.name, member.node, "container", {}, EMPTY)
    series = Series(
        nothing,
        nothing,
        unit=unit,
        metric=metric,
        container=member.name,
        node=member.node.name,
        not_collected=f"{metric} of {member.name} was not measured in this range.",
    )
    return found, series
