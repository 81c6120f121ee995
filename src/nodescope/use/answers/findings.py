"""Studies run on the series of a question, within a bounded amount of work."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

import numpy as np

from nodescope.base.errors import RequestRejected
from nodescope.base.time_range import TimeRange
from nodescope.read.query.bucket import count_minutes
from nodescope.use.answers.containers import Life
from nodescope.use.answers.metrics import resolve
from nodescope.use.answers.power import add_power
from nodescope.use.answers.refusal import bad_request, not_found, too_much
from nodescope.use.answers.snapshots import View
from nodescope.use.answers.timeseries import (
    MeasuredSeries,
    TimeseriesRequest,
    choose_busiest,
    find_limits,
    is_of_containers,
    read_measured,
)
from nodescope.use.studies import (
    STUDIES,
    Finding,
    Series,
    StudyAnswer,
    anomaly,
    changepoint,
    correlation,
    run_study,
    summary,
    trend,
)
from nodescope.use.studies.answer_memo import AnswerMemo, digest
from nodescope.use.studies.series import FloatArray

ALL = "all"
# Every study that looks at one series alone.
SINGLE = tuple(name for name in STUDIES if name != correlation.NAME)
# A day at one sample a second; longer ranges are studied in longer means.
POINTS = 90_000
STUDIES_MOST = 16
# What of a container is looked at together, unless it is named, and how many metrics may be.
TOGETHER = (
    "cpu", "memory", "disk_read", "disk_write", "network_receive", "network_transmit",
    "pressure_cpu", "pressure_memory", "pressure_io",
)  # fmt: skip
TOGETHER_MOST = 12
# How far back an anomaly's history reaches, and from when on it tells something about hours.
HOUR_MS = 3_600_000
HISTORY_MS, LEAST_HISTORY_MS = 28 * 24 * HOUR_MS, 48 * HOUR_MS
# Points that one request studies: about ten seconds on one core.
WORK_MOST = 1_500_000
FEWEST_POINTS = 2000
ANSWERS: AnswerMemo[StudyAnswer] = AnswerMemo()
# A span of two hours and more has repeated what it repeats; a shorter one is shown what was before it.
LONGEST_WITH_HISTORY_SECONDS, HISTORY_SPANS = 7200.0, 3
# A trend over many hours is the same in minutes, which rollups have. Means of minutes lose the
# crests of a heap, which decide when it is full: half a day's worth of seconds is read for them.
LONG_TREND_SECONDS = 12.5 * 3600.0
# The newest parts of a span in which a rise is looked for when the whole has none, and the least of
# their lengths. The shortest goes first: where it suffices, it is nearest to when the rise began.
NEWEST_SHARES, NEWEST_SECONDS = (1 / 24, 1 / 8, 1 / 4, 1 / 2), 1200.0
# Such a rise is news when it leads above all that was before, by this share of what is usual there.
NEWS_SHARE = 0.5
SURE_ENOUGH = 0.5


def run_studies(
    view: View,
    study: str,
    metric: str,
    lives: tuple[Life, ...] | None,
    span: TimeRange,
    scope: str = "",
    check: Callable[[], None] = lambda: None,
) -> list[StudyAnswer]:
    """
    One answer for each series and study; each answer's `series` has the id.

    `check` is called between two studies, and may raise: nobody waits any more.
    """
    if study not in (*STUDIES, ALL, summary.FIGURES):
        raise not_found(f'no study "{study[:60]}"; there are: {", ".join([*STUDIES, ALL])}')
    if study == anomaly.NAME and is_several(metric):
        return [answer for answer, _ in study_together(view, metric, lives, span, check)]
    names = SINGLE if study == ALL else (study,)
    request = bound_request(view, study, metric, lives, span, scope, len(names))
    found = list(read_series(view, request))
    return [
        answer
        for name in names
        for answer, _ in study_each(name, found, check, read_earlier(view, request, name))
    ]


def study_each(
    study: str,
    found: Sequence[tuple[str, Series]],
    check: Callable[[], None] = lambda: None,
    histories: Mapping[str, Series] = MappingProxyType({}),
) -> Iterator[tuple[StudyAnswer, Series]]:
    """The study's answer about each of the series, which come with their ids; histories are by the same ids."""
    everything = [series for _, series in found]
    for its_id, series in found:
        check()
        answer = add_power(run_kept(study, series, everything, histories.get(its_id)), series)
        yield replace(answer, series={**answer.series, "id": its_id}), series


def run_kept(
    study: str, series: Series, everything: Sequence[Series], history: Series | None = None
) -> StudyAnswer:
    """What is known of the same series is not studied again; correlation looks at the others as well."""

    def run() -> StudyAnswer:
        return look_at_newest(run_study(study, series, everything, history), series)

    if study == correlation.NAME:
        return run()
    return ANSWERS.get(f"{study} {digest(history).hex() if history else ''}", series, run)


def look_at_newest(answer: StudyAnswer, series: Series) -> StudyAnswer:
    """Where a span as a whole has no trend that is sure: a rise at its end that leads above all that was before."""
    if answer.study != trend.NAME or answer.status not in ("none", "found"):
        return answer
    if any(one.confidence >= SURE_ENOUGH for one in answer.findings):
        return answer
    end_at, seconds = answer.end_at or 0.0, (answer.end_at or 0.0) - (answer.start_at or 0.0)
    for share in NEWEST_SHARES:
        from_at = end_at - share * seconds
        if share * seconds < NEWEST_SECONDS:
            continue
        newest, bar = cut_series(series, from_at), bar_of_news(series.values[series.times_at < from_at])
        if bar is None or not (newest.values > bar).any():
            continue
        kept = [one for one in trend.study(newest).findings if is_news(one, bar)]
        if kept:
            return replace(answer, status="found", sentence=kept[0].sentence, findings=tuple(kept))
    return answer


def cut_series(series: Series, from_at: float) -> Series:
    kept = series.times_at >= from_at
    return replace(series, times_at=series.times_at[kept], values=series.values[kept])


def bar_of_news(before: FloatArray) -> float | None:
    """What a rise must lead above; None where nothing was before it."""
    before = before[np.isfinite(before)]
    if not len(before):
        return None
    usual = float(np.subtract(*np.quantile(before, (0.95, 0.05))))
    return float(before.max()) + NEWS_SHARE * usual


def is_news(finding: Finding, bar: float) -> bool:
    return finding.measures.get("verdict") in ("leak", "rising") and (finding.after or 0.0) > bar


def read_histories(view: View, request: TimeseriesRequest) -> dict[str, Series]:
    """Of a short span: three times as much before it, where what repeats can be seen."""
    span = request.span
    if span.seconds > LONGEST_WITH_HISTORY_SECONDS:
        return {}
    before = TimeRange(span.from_ms - HISTORY_SPANS * (span.to_ms - span.from_ms), span.from_ms - 1)
    earlier = replace(request, span=before, max_points=HISTORY_SPANS * request.max_points, limits=False)
    return {its_id: series for its_id, series in read_series(view, earlier) if len(series.values)}


def read_earlier(view: View, request: TimeseriesRequest, study: str) -> dict[str, Series]:
    """By id: what was before the span, as the study wants it; most want nothing."""
    if study == changepoint.NAME:
        return read_histories(view, request)
    return read_weeks(view, request) if study == anomaly.NAME else {}


def read_weeks(view: View, request: TimeseriesRequest) -> dict[str, Series]:
    """By id: the weeks before in hours, which tell what is usual at this hour on such a day; none from under two days."""
    until_ms = request.span.from_ms
    from_ms = max(
        until_ms - HISTORY_MS, min((node.from_ms or until_ms for node in view.nodes), default=until_ms)
    )
    if until_ms - from_ms < LEAST_HISTORY_MS:
        return {}
    hours = (until_ms - from_ms) // HOUR_MS
    wanted = replace(request, span=TimeRange(from_ms, until_ms), max_points=hours, limits=False)
    return {its_id: series for its_id, series in read_series(view, wanted) if series.not_collected is None}


def is_several(metric: str) -> bool:
    return metric == ALL or "," in metric


def split_metrics(metric: str) -> tuple[str, ...]:
    """Those that are named; none of all."""
    return () if metric == ALL else tuple(dict.fromkeys(name.strip() for name in metric.split(",")))


def study_together(
    view: View,
    metric: str,
    lives: tuple[Life, ...] | None,
    span: TimeRange,
    check: Callable[[], None] = lambda: None,
) -> Iterator[tuple[StudyAnswer, Series]]:
    """Several metrics of each container at once: those that are named, or of the usual ones those there are."""
    names = TOGETHER if metric == ALL else split_metrics(metric)
    if not 2 <= len(names) <= TOGETHER_MOST:
        raise bad_request(
            f"{len(names)} metrics; accepted: 2 to {TOGETHER_MOST}, with commas between, or {ALL}"
        )
    lives = choose_busiest(view, names[0], span) if lives is None else lives
    several: dict[str, list[Series]] = {}
    for name in names:
        check()
        for its_id, series in read_if_there(view, name, lives, span, len(names), is_needed=metric != ALL):
            several.setdefault(its_id, []).append(series)
    for its_id, found in several.items():
        check()
        answer = anomaly.study_together(found)
        yield replace(answer, series={**answer.series, "id": its_id}), found[0]


def read_if_there(
    view: View, metric: str, lives: tuple[Life, ...], span: TimeRange, studies: int, *, is_needed: bool
) -> list[tuple[str, Series]]:
    """Of the usual metrics a node may lack some; one that was named must be there."""
    try:
        found = list(read_series(view, bound_request(view, anomaly.NAME, metric, lives, span, "", studies)))
    except RequestRejected:
        if is_needed:
            raise
        return []
    return [one for one in found if is_needed or one[1].not_collected is None]


def bound_request(
    view: View,
    study: str,
    metric: str,
    lives: tuple[Life, ...] | None,
    span: TimeRange,
    scope: str,
    studies: int,
) -> TimeseriesRequest:
    """The busiest containers unless some were named, in as many points as so many studies may look at."""
    resolved = resolve(view.nodes, metric, "auto", scope)
    if lives is None and not scope and is_of_containers(view.nodes, resolved):
        lives = choose_busiest(view, metric, span)
    if lives is not None and len(lives) > STUDIES_MOST:
        raise too_much(
            f"{len(lives)} containers; accepted: up to {STUDIES_MOST} in one study",
            "name them with containers=",
        )
    number = len(lives) if lives is not None else STUDIES_MOST
    most = max(FEWEST_POINTS, min(POINTS, WORK_MOST // max(1, number * studies)))
    return TimeseriesRequest(metric, span, choose_points(study, span, most), "auto", lives, scope)


def choose_points(study: str, span: TimeRange, most: int = POINTS) -> int:
    """At most so many; of a long trend as many as it has minutes, whoever asks."""
    is_long = study == trend.NAME and span.seconds >= LONG_TREND_SECONDS
    return count_minutes(span.from_ms, span.to_ms) if is_long else most


def read_series(view: View, request: TimeseriesRequest) -> Iterator[tuple[str, Series]]:
    """Each series with its id; a container without samples as one that was not collected."""
    metric = request.metric
    resolved = resolve(view.nodes, metric, "auto", request.scope)
    there = set()
    for found in read_measured(view, request, resolved):
        lines = found.series
        if request.is_bounded and len(lines) > STUDIES_MOST:
            raise too_much(
                f"{len(lines)} series of {metric}; accepted: up to {STUDIES_MOST} in one study",
                "name containers, or choose a metric with fewer series",
            )
        limits = find_limits(view, request, lines)
        for line in lines:
            there.add(line.id)
            yield line.id, make_series(line, metric, found.unit, limits.get(line.id))
    unit = next(iter(resolved.values())).unit
    for life in request.lives or ():
        if life.id not in there:
            yield life.id, make_absent(life, metric, unit)


def make_series(found: MeasuredSeries, metric: str, unit: str, limit: float | None) -> Series:
    return Series(
        found.points.time_ms / 1000.0,
        np.where(np.isfinite(found.points.mean), found.points.mean, np.nan),
        unit=unit,
        limit=limit,
        metric=metric,
        container=found.name,
        node=found.node,
    )


def make_absent(life: Life, metric: str, unit: str) -> Series:
    """Not measured in this range: the studies say so, rather than nothing."""
    nothing = np.empty(0)
    reason = f"{metric} of {life.name} was not measured in this range."
    return Series(
        nothing, nothing, unit=unit, metric=metric, container=life.name, node=life.node, not_collected=reason
    )
