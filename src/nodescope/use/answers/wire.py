"""
Answers as the viewer's API writes them, and read back from a viewer: each JSON form has both directions in one place.

A chart needs no more than seven figures, a share four decimals: numbers are
rounded here, unless they are wanted exact. NaN becomes null: nothing measured, never
zero. Times are epoch seconds. A field that a viewer does not send is empty.
The shapes are in viewer/shapes.py.

    forall answers: parse(render(answer, exact)) == answer
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, get_args, get_origin, get_type_hints

import numpy as np

from nodescope.base.time_range import TimeRange
from nodescope.read.files.catalog import SHORT_CHARACTERS
from nodescope.read.series_name import LABELS, Subject
from nodescope.use.answers.axis import Floats, Integers
from nodescope.use.answers.clocks import ITS_FILES
from nodescope.use.answers.container_table import ContainerRow, ContainerTable, labels_of
from nodescope.use.answers.containers import Life
from nodescope.use.answers.events import ContainerEvent, EventList
from nodescope.use.answers.metrics import MetricRow
from nodescope.use.answers.overview import About, Overview, Tile
from nodescope.use.answers.ranked.ranking import Figure
from nodescope.use.answers.ranked.span_use import NodeSize
from nodescope.use.answers.ranked.workload_ranking import RankedWorkload, add_ranked, render_unranked
from nodescope.use.answers.timeseries import AnswerSeries, Timeseries
from nodescope.use.studies import Finding, StudyAnswer

Json = dict[str, Any]
Item = TypeVar("Item")
# Figures of the largest value of a series that are kept.
FIGURES = 7


def render_json(content: object) -> bytes:
    text = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.encode("utf-8", "replace")


# -- numbers ------------------------------------------------------------------------


def numbers(values: Floats, *, exact: bool = False) -> list[float | None]:
    """What is not a number, or unlimited, is null."""
    finite = np.isfinite(values)
    if not finite.any():
        return [None] * len(values)
    if not exact:
        largest = float(np.abs(values[finite]).max())
        decimals = FIGURES - int(np.floor(np.log10(largest))) if largest > 0 else FIGURES
        # Bytes stay whole; beyond 300 decimals the power itself is no number.
        values = np.round(values, min(max(decimals, 0), 300))
    if finite.all():
        return list(values.tolist())
    return [number if good else None for number, good in zip(values.tolist(), finite.tolist())]


def parse_numbers(values: Sequence[float | None] | None) -> Floats:
    return np.array(values or (), np.float64)


def number(value: float | None) -> float | None:
    return None if value is None or not np.isfinite(value) else float(value)


def seconds(time_ms: float | None) -> float | None:
    return None if time_ms is None else time_ms / 1000


def milliseconds(value: float | None) -> int:
    return round((value or 0) * 1000)


# -- forms --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class JsonKind:
    """How one kind of value is written, and read back."""

    render: Callable[[Any], Any]
    parse: Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class JsonForm(Generic[Item]):
    """A dataclass as JSON: for each field its name there, its attribute here, and its kind."""

    make: Callable[..., Item]
    fields: tuple[tuple[str, str, JsonKind], ...]

    def render(self, item: Item) -> Json:
        return {name: kind.render(getattr(item, attribute)) for name, attribute, kind in self.fields}

    def parse(self, content: Mapping[str, Any]) -> Item:
        return self.make(
            **{attribute: kind.parse(content.get(name)) for name, attribute, kind in self.fields}
        )


def list_of(form: JsonForm[Any]) -> JsonKind:
    return JsonKind(
        lambda items: [form.render(item) for item in items],
        lambda items: tuple(form.parse(item) for item in items or ()),
    )


TEXT = JsonKind(str, lambda value: str(value or ""))
OPTIONAL = JsonKind(lambda value: value, lambda value: value)
WORDS = JsonKind(list, lambda words: tuple(map(str, words or ())))
COUNT = JsonKind(int, lambda value: int(value or 0))
FLAG = JsonKind(bool, bool)
LIMIT = JsonKind(number, lambda value: value)
TIME = JsonKind(seconds, milliseconds)
TIMES = JsonKind(
    lambda values: (values / 1000).tolist(),
    lambda values: np.rint(parse_numbers(values) * 1000).astype(np.int64),
)
NAMES = JsonKind(dict, lambda names: {str(key): str(value) for key, value in (names or {}).items()})
ROUNDED = JsonKind(numbers, parse_numbers)
EXACT = JsonKind(lambda values: numbers(values, exact=True), parse_numbers)

# By the type of a dataclass's field.
KINDS: dict[Any, JsonKind] = {
    str: TEXT,
    str | None: OPTIONAL,
    int: COUNT,
    bool: FLAG,
    float | None: LIMIT,
    Integers: TIMES,
    Mapping[str, str]: NAMES,
}
RENAMED: dict[tuple[type, str], str] = {
    (ContainerEvent, "id"): "container",
    (AnswerSeries, "low"): "min",
    (AnswerSeries, "high"): "max",
    (Timeseries, "width_ms"): "bucket_seconds",
}


def make_form(make: type[Item], curve: JsonKind = ROUNDED) -> JsonForm[Item]:
    """The fields of a dataclass in their order, under their names without `is_` and `_ms` unless renamed."""
    fields = get_type_hints(make).items()
    names = [RENAMED.get((make, name)) or name.removeprefix("is_").removesuffix("_ms") for name, _ in fields]
    return JsonForm(
        make,
        tuple((json, name, choose_kind(name, hint, curve)) for json, (name, hint) in zip(names, fields)),
    )


def choose_kind(name: str, hint: Any, curve: JsonKind) -> JsonKind:
    if hint == tuple[str, ...]:
        return WORDS
    if get_origin(hint) is tuple:
        return list_of(make_form(get_args(hint)[0], curve))
    if hint is int and name.endswith("_ms"):
        return TIME
    return curve if hint == Floats else KINDS[hint]


METRIC, EVENTS = make_form(MetricRow), make_form(EventList)
TIMESERIES, EXACT_TIMESERIES = make_form(Timeseries), make_form(Timeseries, EXACT)


# -- what a node has ----------------------------------------------------------------


def parse_about(content: Json, node: str) -> About:
    sizes = {one.get("node"): one for one in content.get("sizes") or ()}
    size = sizes.get(node) or (next(iter(sizes.values())) if len(sizes) == 1 else {})
    # A viewer of several nodes says of each what it has; an older one says it of all together.
    first, last, containers = (size.get(key, content.get(key)) for key in ("from", "to", "containers"))
    return About(
        node,
        str(content.get("version") or ""),
        None if first is None else milliseconds(first),
        None if last is None else milliseconds(last),
        int(containers or 0),
        tuple(str(one.get("reason")) for one in content.get("problems") or ()),
        NodeSize(size.get("cores"), size.get("memory_bytes")),
        size.get("ahead_seconds"),
        ITS_FILES,
    )


def render_metrics(rows: Sequence[MetricRow]) -> Json:
    return {"metrics": [METRIC.render(row) for row in rows]}


def parse_metrics(content: Json) -> list[MetricRow]:
    return [METRIC.parse(row) for row in content["metrics"]]


# -- containers ---------------------------------------------------------------------


def render_containers(table: ContainerTable) -> Json:
    return {
        "containers": [render_container(row) for row in table.rows],
        "total": table.total,
        "truncated": table.total > len(table.rows),
        "metric": table.metric,
        "unit": table.unit,
        "ranked_from": seconds(table.span.from_ms),
        "ranked_to": seconds(table.span.to_ms),
        "sentence": table.sentence,
        "recorded_seconds": number(table.recorded_seconds),
    }


def parse_containers(content: Json) -> ContainerTable:
    return ContainerTable(
        tuple(parse_container(row) for row in content["containers"]),
        int(content.get("total") or 0),
        str(content.get("metric") or ""),
        str(content.get("unit") or ""),
        TimeRange(milliseconds(content.get("ranked_from")), milliseconds(content.get("ranked_to"))),
        str(content.get("sentence") or ""),
        content.get("recorded_seconds"),
    )


def render_container(row: ContainerRow) -> Json:
    life, figure = row.life, row.figure
    subject = life.subject
    return {
        "id": life.id,
        "short_id": life.id[:SHORT_CHARACTERS],
        "name": life.name,
        "scope": life.scope,
        "container": subject.label("l_container_name"),
        "pod": subject.label("l_pod_name"),
        "namespace": subject.label("l_namespace"),
        "qos_class": subject.label("l_qos_class"),
        "node": life.node,
        "image": life.image or None,
        "workload": life.workload.name,
        "workload_kind": life.workload.kind,
        "workload_known_by": life.workload.known_by,
        "cpu_request": life.request("cpu"),
        "memory_request": life.request("memory"),
        "previous_exit": subject.details.get("previous_exit") or None,
        "labels": labels_of(life),
        "restarts": life.restarts if row.restarts is None else row.restarts,
        "kills": row.kills,
        "lives": list(row.lives),
        "first_seen": seconds(life.first_ms),
        "last_seen": seconds(life.last_ms),
        "state": row.state,
        "value": number(figure.value) if figure else None,
        "over_span": number(figure.over_span) if figure else None,
        "last": number(figure.last) if figure else None,
        "max": number(figure.most) if figure else None,
        "spark": numbers(figure.spark) if figure else [],
        "limit": number(row.limit),
    }


def parse_container(row: Json) -> ContainerRow:
    life = Life(str(row["id"]), str(row["name"]), str(row.get("node") or ""), parse_subject(row))
    figure = None
    if row.get("value") is not None:
        # A viewer from before ranks by the mean while there.
        known = row.get("over_span")
        over_span = row["value"] if known is None else known
        figure = Figure(row["value"], row["last"], row["max"], parse_numbers(row.get("spark")), over_span)
    lives = tuple(map(str, row.get("lives") or ()))
    restarts = row.get("restarts") if lives else None
    kills = int(row.get("kills") or 0)
    return ContainerRow(life, str(row.get("state") or ""), figure, row.get("limit"), lives, restarts, kills)


def parse_subject(row: Json) -> Subject:
    named = {
        "l_scope": row["scope"],
        "l_container_id": row["id"] if row["scope"] == "container" else None,
        "l_container_name": row.get("container"),
        "l_pod_name": row.get("pod"),
        "l_namespace": row.get("namespace"),
        "l_qos_class": row.get("qos_class"),
    }
    labels = tuple(None if named.get(name) is None else str(named[name]) for name in LABELS)
    details = {"labels": json.dumps(row.get("labels") or {}), "restarts": str(row.get("restarts") or 0)}
    kept = (
        *("image", "workload", "workload_kind", "workload_known_by"),
        *("cpu_request", "memory_request", "previous_exit"),
    )
    details.update({key: str(row[key]) for key in kept if row.get(key) is not None})
    return Subject(labels, details, milliseconds(row["first_seen"]), milliseconds(row["last_seen"]))


def render_workloads(rows: Sequence[RankedWorkload], limit: int, metric: str, span: TimeRange) -> Json:
    """The first of them, and totals of all."""
    total, share = add_ranked(rows)
    return {
        "workloads": [render_workload(row) for row in rows[:limit]],
        "ranked": len(rows),
        "total_over_span": number(total),
        "share_of_nodes": number(share),
        "metric": metric,
        "unit": next((row.unit for row in rows), ""),
        "from": seconds(span.from_ms),
        "to": seconds(span.to_ms),
        "sentence": rows[0].sentence if rows else render_unranked(metric),
    }


def render_workload(row: RankedWorkload) -> Json:
    group, use = row.group, row.use
    return {
        "name": group.workload.name,
        "namespace": group.workload.namespace or None,
        "kind": group.workload.kind,
        "known_by": group.workload.known_by,
        "node": row.node,
        "images": list(group.images),
        "containers": [life.id for life in group.lives],
        "pods": use.pods,
        "lives": use.lives,
        "restarts": group.restarts,
        "over_span": number(use.over_span),
        "mean": number(use.mean),
        "per_pod": number(use.per_pod),
        "min": number(use.least),
        "max": number(use.most),
        "there_share": use.there_share,
        "recorded_seconds": number(use.recorded_seconds),
        "share_of_node": number(row.share),
        "sentence": f"{row.sentence}.",
    }


# -- studies ------------------------------------------------------------------------


def render_studies(study: str, answers: Sequence[StudyAnswer], *, exact: bool = False) -> Json:
    return {"study": study, "results": [answer.to_json(exact=exact) for answer in answers]}


def parse_studies(content: Json) -> list[StudyAnswer]:
    return [parse_study(row) for row in content["results"]]


def parse_study(row: Json) -> StudyAnswer:
    return StudyAnswer(
        study=str(row.get("study") or ""),
        series=row["series"],
        start_at=row.get("from"),
        end_at=row.get("to"),
        samples=int(row.get("samples") or 0),
        missing_share=float(row.get("missing_share") or 0),
        status=row["status"],
        sentence=str(row.get("sentence") or ""),
        reason=row.get("reason"),
        findings=tuple(parse_finding(one) for one in row.get("findings") or ()),
        power={name: float(value) for name, value in (row.get("power") or {}).items()},
    )


def parse_finding(row: Json) -> Finding:
    own = dict(row)
    return Finding(
        kind=str(own.pop("kind", "")),
        start_at=float(own.pop("from")),
        end_at=float(own.pop("to")),
        confidence=float(own.pop("confidence")),
        magnitude=own.pop("magnitude", None),
        unit=str(own.pop("unit", "")),
        sentence=str(own.pop("sentence", "")),
        at=own.pop("at", None),
        before=own.pop("before", None),
        after=own.pop("after", None),
        evidence=own.pop("evidence", {}),
        # Every finding has the fields above; what is left are its own measures.
        measures=own,
    )


# -- tiles --------------------------------------------------------------------------


def render_overview(answer: Overview) -> Json:
    return {
        "tiles": [render_tile(tile) for tile in answer.tiles],
        "restarts": answer.restarts,
        "oom_kills": answer.oom_kills,
        "at": seconds(answer.at_ms),
        "whose": answer.whose or None,
    }


def render_tile(tile: Tile) -> Json:
    content: Json = {
        "id": tile.id,
        "title": tile.title,
        "value": number(tile.curve.value),
        "of": number(tile.curve.of),
        "unit": tile.unit,
        "sentence": tile.sentence,
        "spark": numbers(tile.curve.spark),
    }
    if tile.resource:
        content.update(resource=tile.resource, whose=tile.whose or None)
    if peak := tile.peak:
        content["peak"] = {
            "value": number(peak.value),
            "resource": peak.resource,
            "whose": peak.whose or None,
            "from": seconds(peak.from_ms),
            "to": seconds(peak.to_ms),
        }
    return content
