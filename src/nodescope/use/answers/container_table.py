"""The containers of a range, filtered and sorted, each with its state and how much it uses of a metric."""

import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from nodescope.base.metric_names import PLAIN
from nodescope.base.text import hint_nearest
from nodescope.base.time_range import TimeRange
from nodescope.use.answers.containers import GONE_MS, Life, group_lives, render_present
from nodescope.use.answers.events import ends_by_id
from nodescope.use.answers.limits import read_limits
from nodescope.use.answers.metrics import resolve
from nodescope.use.answers.ranked.ranking import Figure, Order, rank
from nodescope.use.answers.refusal import Refused, bad_request
from nodescope.use.answers.snapshots import ServedNode, View

# Instead of a metric: only who there is, which costs no look at any sample.
NO_METRIC = "none"
SORTS = ("value", "mean", "last", "max", "name", "first_seen", "last_seen")
# Not labels of their own: they have a field in the answer, or mean nothing to a person.
NOT_LABELS = frozenset(
    {
        *("id", "image", "restarts", "sandbox", "container", "name_source", "runtime"),
        *("workload", "workload_kind", "workload_known_by", "cpu_request", "memory_request"),
        "previous_exit",
    }
)


@dataclass(frozen=True, slots=True)
class ContainerRow:
    """One life in the table."""

    life: Life
    state: str
    """running, exited, oom_killed."""
    figure: Figure | None = None
    """None: not measured."""
    limit: float | None = None
    lives: tuple[str, ...] = ()
    """Ids of the lives that the row stands for, oldest first; empty: only its own."""
    restarts: int | None = None
    """Of a container over all its lives: how many of them began in the range; None of a single life."""
    kills: int = 0
    """Of these lives so many were killed for memory."""


@dataclass(frozen=True, slots=True)
class ContainerTable:
    """The first rows, and how many there would be."""

    rows: tuple[ContainerRow, ...]
    total: int
    metric: str
    unit: str
    span: TimeRange
    """What was ranked: the end of the range, where all of it were too much work."""
    sentence: str = ""
    """How many there are, in the words of every way out."""
    recorded_seconds: float | None = None
    """So much of the span was recorded, which is what its means are of; None where nobody said."""


@dataclass(frozen=True, slots=True)
class Filter:
    """Which containers; an empty field lets all pass."""

    namespaces: tuple[str, ...] = ()
    qos_classes: tuple[str, ...] = ()
    search: str = ""
    labels: tuple[tuple[str, str], ...] = ()

    @property
    def is_empty(self) -> bool:
        return self == Filter()

    def without_search(self) -> "Filter":
        return replace(self, search="")

    def admits(self, life: Life) -> bool:
        return (
            (not self.namespaces or life.namespace in self.namespaces)
            and (not self.qos_classes or life.qos_class in self.qos_classes)
            and all(labels_of(life).get(key) == value for key, value in self.labels)
            and (not self.search or matches(life, self.search))
        )


NO_FILTER = Filter()


def matches(life: Life, search: str) -> bool:
    """Every word of the search is somewhere: in the id, a name, the image, a label's value."""
    hay = " ".join((life.id, life.name, life.namespace, *life.subject.details.values())).lower()
    return all(word in hay for word in search.lower().split())


def labels_of(life: Life) -> dict[str, str]:
    """The pod's own labels where they are known, and what else was noted of the container."""
    details = life.subject.details
    found = {key: value for key, value in details.items() if value and key not in NOT_LABELS}
    return found | parse_labels(found.pop("labels", ""))


def parse_labels(text: str) -> dict[str, str]:
    """As the agent writes them, key=value with commas between; as JSON where a viewer sent them."""
    with suppress(ValueError, RecursionError):
        if isinstance(sent := json.loads(text), dict):
            return {str(key): str(value) for key, value in sent.items()}
    pairs = (label.partition("=") for label in text.split(","))
    return {key: value for key, sign, value in pairs if sign}


def list_containers(
    view: View, metric: str, span: TimeRange, wanted: Filter, sort: str, limit: int
) -> ContainerTable:
    check_sort(sort)
    fallback = "" if metric == NO_METRIC else unit_of(view.nodes, metric)
    there = [life for life in view.lives(span) if wanted.admits(life)]
    order = Order("", span, {}, {}) if metric == NO_METRIC else rank(view, there, metric, span)
    figures = order.figures
    shown = sorted(there, key=lambda life: sort_key(life, figures.get(life.id), sort))[:limit]
    ends_ms = {
        (life.node, life.id): order.ends_ms[life.id]
        for life in shown
        if life.scope == "container" and life.id in figures
    }
    limits = read_limits(view, metric, order.span, ends_ms)
    ends = ends_by_id(view.nodes)
    newest_ms = {node.name: node.to_ms or view.snapshot.now_ms for node in view.nodes}
    rows = (
        ContainerRow(
            life, state_of(life, ends, newest_ms[life.node]), figures.get(life.id), limits.get(life.id)
        )
        for life in shown
    )
    sentence = render_present(group_lives(there), newest_ms)
    unit = order.unit or fallback
    return ContainerTable(tuple(rows), len(there), metric, unit, order.span, sentence, order.longest.seconds)


def check_sort(sort: str) -> None:
    if sort not in SORTS:
        raise bad_request(f'sort="{sort[:40]}"{hint_nearest(sort, SORTS)} accepted: {", ".join(SORTS)}')


def unit_of(nodes: Sequence[ServedNode], metric: str) -> str:
    """Refused when no such name exists; a plain name that nobody measured here lists without values."""
    plain = PLAIN.get(metric)
    try:
        return next(iter(resolve(nodes, metric).values())).unit
    except Refused:
        if plain is None:
            raise
        return plain.unit


def sort_key(life: Life, figure: Figure | None, sort: str) -> tuple[bool, float, str]:
    """The largest first (`value`: use over the range), what was not measured last; names from a to z."""
    if sort == "name":
        return False, 0.0, life.name
    if sort in ("first_seen", "last_seen"):
        moment = life.first_ms if sort == "first_seen" else life.last_ms
        return False, -float(moment), life.id
    if figure is None:
        return True, 0.0, life.name
    by = {"value": figure.over_span, "mean": figure.value, "last": figure.last, "max": figure.most}
    return False, -by[sort], life.id


def state_of(life: Life, ends: dict[str, str], newest_ms: int) -> str:
    end = ends.get(life.subject.label("l_container_id") or "")
    if end:
        return "oom_killed" if end == "oom" else "exited"
    return "exited" if newest_ms - life.last_ms > GONE_MS else "running"
