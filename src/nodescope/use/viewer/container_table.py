"""/api/containers, /api/filters, /api/metrics: who and what there is."""

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from nodescope.base.errors import RequestRejected
from nodescope.base.metric_names import PLAIN
from nodescope.base.text import hint_nearest
from nodescope.base.time_range import TimeRange
from nodescope.read.files.catalog import SHORT_CHARACTERS
from nodescope.read.query.engine import Engine
from nodescope.read.query.resolve import resolve_plain
from nodescope.read.series_name import scope_of
from nodescope.use.viewer.events import ends_by_id
from nodescope.use.viewer.question import SeriesMember, members_of, resolve
from nodescope.use.viewer.ranking import Figure, Order, rank
from nodescope.use.viewer.refusal import Refused, bad_request
from nodescope.use.viewer.render import Json, number, numbers
from nodescope.use.viewer.snapshots import ServedNode, Snapshot
from nodescope.use.viewer.timeseries import Found, TimeseriesRequest, read_limits

# A container that missed so many seconds is gone: slow tables come every 30 s.
GONE_MS = 35_000
# Instead of a metric: only who there is, which costs no look at any sample.
NO_METRIC = "none"
SORTS = ("value", "last", "max", "name", "first_seen", "last_seen")
# Values of one label that a filter offers.
VALUES_SHOWN = 100
# In the order a person asks for them; the picker shows these first.
PRIORITY = (
    "cpu",
    "memory",
    "pressure_memory",
    "pressure_cpu",
    "cpu_throttled",
    "memory_working_set",
    "memory_limit_share",
    "cpu_limit_share",
    "pressure_io",
    "network_receive",
    "network_transmit",
    "disk_read",
    "disk_write",
    "oom_kills",
)
# Not labels of their own: they have a field in the answer, or tell nothing to a person.
NOT_LABELS = frozenset({"id", "image", "restarts", "sandbox", "container", "name_source", "runtime"})


@dataclass(frozen=True, slots=True)
class Filter:
    """Which containers; an empty field lets all pass."""

    namespaces: tuple[str, ...] = ()
    qos_classes: tuple[str, ...] = ()
    search: str = ""
    labels: tuple[tuple[str, str], ...] = ()

    def admits(self, member: SeriesMember) -> bool:
        subject = member.subject
        return (
            (not self.namespaces or (subject.label("l_namespace") or "") in self.namespaces)
            and (not self.qos_classes or (subject.label("l_qos_class") or "") in self.qos_classes)
            and all(label_values(member).get(key) == value for key, value in self.labels)
            and (not self.search or matches(member, self.search))
        )


def matches(member: SeriesMember, search: str) -> bool:
    """Every word of the search is somewhere: in the id, a name, the image, a label's value."""
    subject = member.subject
    texts = (member.id, member.name, subject.label("l_namespace") or "", *subject.details.values())
    hay = " ".join(texts).lower()
    return all(word in hay for word in search.lower().split())


def parse_labels(texts: Sequence[str]) -> tuple[tuple[str, str], ...]:
    pairs = []
    for text in texts:
        key, colon, value = text.partition(":")
        if not colon or not key:
            raise bad_request(f"labels={text[:80]!r} is not accepted; accepted: key:value, several by comma")
        pairs.append((key, value))
    return tuple(pairs)


def label_values(member: SeriesMember) -> dict[str, str]:
    """The pod's own labels where they are known, and what else was noted of the container."""
    details = member.subject.details
    found = {key: value for key, value in details.items() if value and key not in NOT_LABELS}
    try:
        pod = json.loads(found.pop("labels", "{}"))
    except ValueError:
        pod = {}
    if isinstance(pod, dict):
        found.update({str(key): str(value) for key, value in pod.items()})
    return found


# -- containers ---------------------------------------------------------------------


def answer_containers(
    engine: Engine,
    snapshot: Snapshot,
    nodes: Sequence[ServedNode],
    metric: str,
    span: TimeRange,
    wanted: Filter,
    sort: str,
    limit: int,
) -> Json:
    if sort not in SORTS:
        raise bad_request(f'sort="{sort[:40]}"{hint_nearest(sort, SORTS)} accepted: {", ".join(SORTS)}')
    fallback = "" if metric == NO_METRIC else unit_of(nodes, metric)
    there = [one for one in members_of(snapshot, nodes) if was_there(one, span) and wanted.admits(one)]
    order = Order("", span, {}) if metric == NO_METRIC else rank(engine, there, nodes, metric, span)
    ends = ends_by_id(nodes)
    ordered = sorted(there, key=lambda one: sort_key(one, order.figures.get(one.id), sort))[:limit]
    limits = limits_of(engine, ordered, order, metric)
    unit = order.unit or fallback
    return {
        "containers": [render_container(one, order, ends, limits, snapshot) for one in ordered],
        "total": len(there),
        "truncated": len(there) > limit,
        "metric": metric,
        "unit": unit,
        "ranked_from": order.span.from_ms / 1000,
        "ranked_to": order.span.to_ms / 1000,
    }


def unit_of(nodes: Sequence[ServedNode], metric: str) -> str:
    """Refused when no such name exists; a plain name that nobody measured here lists without values."""
    plain = PLAIN.get(metric)
    try:
        return next(iter(resolve(nodes, metric).values())).unit
    except Refused:
        if plain is None:
            raise
        return plain.unit


def was_there(member: SeriesMember, span: TimeRange) -> bool:
    subject = member.subject
    return subject.first_ms <= span.to_ms and subject.last_ms >= span.from_ms


def sort_key(member: SeriesMember, figure: Figure | None, sort: str) -> tuple[bool, float, str]:
    """The largest first, what was not measured last; names from a to z."""
    subject = member.subject
    if sort == "name":
        return False, 0.0, member.name
    if sort in ("first_seen", "last_seen"):
        moment = subject.first_ms if sort == "first_seen" else subject.last_ms
        return False, -float(moment), member.id
    if figure is None:
        return True, 0.0, member.name
    return False, -{"value": figure.value, "last": figure.last, "max": figure.most}[sort], member.id


def limits_of(engine: Engine, members: Sequence[SeriesMember], order: Order, metric: str) -> dict[str, float]:
    series = [
        Found(one.id, one.name, one.node, scope_of(one.subject), {}, order.figures[one.id].points)
        for one in members
        if one.id in order.figures
    ]
    return read_limits(engine, TimeseriesRequest(metric, order.span, 1, "auto"), series)


def render_container(
    member: SeriesMember, order: Order, ends: dict[str, str], limits: dict[str, float], snapshot: Snapshot
) -> Json:
    subject = member.subject
    figure = order.figures.get(member.id)
    return {
        "id": member.id,
        "short_id": member.id[:SHORT_CHARACTERS],
        "name": member.name,
        "scope": scope_of(subject),
        "container": subject.label("l_container_name"),
        "pod": subject.label("l_pod_name"),
        "namespace": subject.label("l_namespace"),
        "qos_class": subject.label("l_qos_class"),
        "node": member.node.name,
        "image": subject.details.get("image") or None,
        "labels": label_values(member),
        "restarts": count_of(subject.details.get("restarts")),
        "first_seen": subject.first_ms / 1000,
        "last_seen": subject.last_ms / 1000,
        "state": state_of(member, ends, snapshot),
        "value": number(figure.value) if figure else None,
        "last": number(figure.last) if figure else None,
        "max": number(figure.most) if figure else None,
        "spark": numbers(figure.points.mean) if figure else [],
        "limit": number(limits.get(member.id)),
    }


def count_of(text: str | None) -> int:
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 10 else 0


def state_of(member: SeriesMember, ends: dict[str, str], snapshot: Snapshot) -> str:
    end = ends.get(member.subject.label("l_container_id") or "")
    if end:
        return "oom_killed" if end == "oom" else "exited"
    newest = member.node.to_ms or snapshot.now_ms
    return "exited" if newest - member.subject.last_ms > GONE_MS else "running"


# -- filters and metrics ------------------------------------------------------------


def answer_filters(snapshot: Snapshot, nodes: Sequence[ServedNode]) -> Json:
    members = members_of(snapshot, nodes)
    labels: dict[str, set[str]] = {}
    for member in members:
        for key, value in label_values(member).items():
            labels.setdefault(key, set()).add(value)
    return {
        "namespaces": count_names(one.subject.label("l_namespace") for one in members),
        "qos_classes": count_names(one.subject.label("l_qos_class") for one in members),
        "nodes": [
            {"name": node.name, "count": sum(1 for one in members if one.node is node)}
            for node in snapshot.nodes
        ],
        # One value for each container tells nobody apart.
        "labels": {
            key: sorted(values)[:VALUES_SHOWN]
            for key, values in sorted(labels.items())
            if len(values) < max(2, len(members))
        },
    }


def count_names(names: Iterable[str | None]) -> list[Json]:
    counted = Counter(name for name in names if name)
    return [{"name": name, "count": count} for name, count in sorted(counted.items())]


def answer_metrics(nodes: Sequence[ServedNode]) -> Json:
    """Plain names first, in the order a person asks for them; then what the kernel calls them."""
    found: dict[str, Json] = {}
    for node in nodes:
        for plain in PLAIN.values():
            try:
                asked = resolve_plain(plain, node.metrics)
            except RequestRejected:
                continue
            scopes = node.scopes.get(asked.metrics[0].name, set())
            found.setdefault(plain.name, describe(plain.name, True, "gauge", asked.unit, plain.help, scopes))
        for metric in node.metrics.values():
            scopes = node.scopes.get(metric.name, set())
            found.setdefault(
                metric.name,
                describe(metric.name, False, metric.kind, metric.unit or "count", metric.help, scopes),
            )
    ordered = sorted(found.values(), key=lambda one: (one["priority"], one["name"]))
    return {"metrics": ordered}


def describe(name: str, plain: bool, kind: str, unit: str, text: str, scopes: set[str]) -> Json:
    rank_of = PRIORITY.index(name) if name in PRIORITY else 100 if plain else 1000
    # Services have what containers have; a pod's network is shown by container.
    words = sorted({"container" if scope in ("service", "pod") else scope for scope in scopes})
    scope = "container" if "container" in words else words[0] if words else "node"
    return {
        "name": name,
        "scope": scope,
        "plain": plain,
        "kind": kind,
        "unit": unit,
        "help": text,
        "priority": rank_of,
    }
